"""/moorage/v1: what a running scheduler knows, as JSON. The paths, what each may be asked, and its refusals.

What the answers consist of is the process's part, behind `Views`; docs/api-v1.md has their fields.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Annotated, Any, Protocol, TypeVar, get_type_hints

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from moorage.endpoints.loop_bridge import NotNow
from moorage.serving.access import HEADERS

ROOT = "/moorage/v1"
LATEST = 2**63 - 1
"""Beyond the sequence of any record."""
PLACES = ("active", "backoff", "parked", "gated", "permit", "inflight")
RESULTS = ("scheduled", "unschedulable", "error")

Reason = str
"""Why there is no answer; a sentence."""
Answer = Mapping[str, Any] | Reason
"""A sentence: what was asked for does not exist."""
Q = TypeVar("Q", bound=msgspec.Struct)

UpTo100 = Annotated[int, Meta(ge=1, le=100, description="a number from 1 to 100")]
UpTo500 = Annotated[int, Meta(ge=1, le=500, description="a number from 1 to 500")]
UpTo1000 = Annotated[int, Meta(ge=1, le=1000, description="a number from 1 to 1000")]
Names = Annotated[int, Meta(ge=0, le=5000, description="a number from 0 to 5000")]
Sequence = Annotated[int, Meta(ge=1, le=LATEST, description=f"a number from 1 to {LATEST}")]
Text = Annotated[str, Meta(max_length=1000, description="1000 characters at most")]
PodKey = Annotated[str, Meta(pattern="/", max_length=1000, description="NAMESPACE/NAME")]
Place = Annotated[str, Meta(pattern=f"^({'|'.join(PLACES)})?$", description=", ".join(PLACES))]
Result = Annotated[str, Meta(pattern=f"^({'|'.join(RESULTS)})?$", description=", ".join(RESULTS))]


class RecordsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where one pod waits, and its attempts."""

    pod: PodKey
    limit: UpTo100 = 10
    """Records at most, the newest ones."""
    before: Sequence = LATEST
    """Only records with a smaller sequence."""
    nodes: Names = 100
    """Node names at most, for each refusal."""


class QueueQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pending pods, by name."""

    place: Place = ""
    reason: Text = ""
    """The plugins that hold a pod, sorted, with commas between them."""
    search: Text = ""
    """Part of namespace/name."""
    limit: UpTo500 = 100
    after: Text = ""
    """Only pods whose namespace/name is greater."""


class AttemptsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The attempts of all pods, the newest first."""

    limit: UpTo500 = 100
    before: Sequence = LATEST
    result: Result = ""


class AttemptQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The refused nodes of one attempt."""

    plugin: Text = ""
    """Only nodes that this one refused."""
    limit: UpTo1000 = 100
    after: Text = ""
    """The last node of the page before."""


class NodesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes, by name."""

    search: Text = ""
    """Part of the name, or of a label as key=value."""
    limit: UpTo1000 = 100
    after: Text = ""
    """Only nodes whose name is greater."""


class NodeQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pods of one node, by name."""

    limit: UpTo1000 = 250
    after: Text = ""
    """Only pods whose namespace/name is greater."""


class SummaryQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There is nothing to choose."""


class SnapshotQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole cluster as the scheduler sees it."""

    annotations: Annotated[bool, Meta(description="true or false")] = False
    """Whether to keep them."""


class Views(Protocol):
    """What the process answers; called on the endpoints' loop."""

    async def records(self, query: RecordsQuery) -> Answer: ...

    async def queue(self, query: QueueQuery) -> Answer: ...

    async def attempts(self, query: AttemptsQuery) -> Answer: ...

    async def attempt(self, query: AttemptQuery, sequence: int) -> Answer: ...

    async def nodes(self, query: NodesQuery) -> Answer: ...

    async def node(self, query: NodeQuery, name: str) -> Answer: ...

    async def summary(self, query: SummaryQuery) -> Answer: ...

    async def snapshot(self, query: SnapshotQuery) -> AsyncIterator[bytes]: ...


def routes(views: Views) -> list[Route]:
    return [
        Route(f"{ROOT}/records", _serve(RecordsQuery, views.records)),
        Route(f"{ROOT}/queue", _serve(QueueQuery, views.queue)),
        Route(f"{ROOT}/attempts", _serve(AttemptsQuery, views.attempts)),
        Route(f"{ROOT}/attempts/{{sequence:int}}", _serve(AttemptQuery, views.attempt)),
        Route(f"{ROOT}/nodes", _serve(NodesQuery, views.nodes)),
        Route(f"{ROOT}/nodes/{{name}}", _serve(NodeQuery, views.node)),
        Route(f"{ROOT}/summary", _serve(SummaryQuery, views.summary)),
        Route(f"{ROOT}/snapshot", _serve(SnapshotQuery, views.snapshot)),
    ]


def _serve(
    kind: type[Q], view: Callable[..., Awaitable[Answer | AsyncIterator[bytes]]]
) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        query = read_query(kind, request.query_params)
        if isinstance(query, Reason):
            return PlainTextResponse(f"{query}\n", 400, HEADERS)
        try:
            answer = await view(query, **request.path_params)
        except NotNow as error:
            return later(error)
        if isinstance(answer, AsyncIterator):
            return StreamingResponse(answer, headers={**HEADERS, "content-type": "application/gzip"})
        return PlainTextResponse(f"{answer}\n", 404, HEADERS) if isinstance(answer, str) else as_json(answer)

    return serve


def read_query(kind: type[Q], given: Mapping[str, str]) -> Q | Reason:
    """From the query of a URL; a sentence when it cannot be answered."""
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        return _problem(kind, given, str(error))


def _problem(kind: type[Q], given: Mapping[str, str], error: str) -> Reason:
    """The parameter, and what to write."""
    name = re.findall(r"`(?:\$\.)?([^`]*)`", error)[-1]
    hints = get_type_hints(kind, include_extras=True)
    if name not in hints:
        known = ", ".join(hints) or "nothing"
        return f"{name[:20]} is not known here: the query may have {known}"
    text = f"={given[name][:20]}" if name in given else " is missing"
    return f"{name}{text}: write {hints[name].__metadata__[0].description}"


def as_json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), headers={**HEADERS, "content-type": "application/json"})


def later(error: NotNow) -> Response:
    return PlainTextResponse(f"{error}\n", 503, {**HEADERS, "retry-after": "5"})
