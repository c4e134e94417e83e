"""The paths and query parameters of /moorage/v1, shared by the server and its clients. docs/api-v1.md
documents them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from moorage.endpoints.answers import PLACES, RESULTS

ROOT = "/moorage/v1"
LATEST = 2**63 - 1
"""Greater than the sequence of any record."""

Reason = str
"""Why there is no answer; a sentence."""
Q = TypeVar("Q", bound=msgspec.Struct)

UpTo100 = Annotated[int, Meta(ge=1, le=100, description="a number from 1 to 100")]
UpTo500 = Annotated[int, Meta(ge=1, le=500, description="a number from 1 to 500")]
UpTo1000 = Annotated[int, Meta(ge=1, le=1000, description="a number from 1 to 1000")]
Names = Annotated[int, Meta(ge=0, le=5000, description="a number from 0 to 5000")]
Sequence = Annotated[int, Meta(ge=1, le=LATEST, description=f"a number from 1 to {LATEST}")]
Text = Annotated[str, Meta(max_length=1000, description="at most 1000 characters")]
PodKey = Annotated[str, Meta(pattern="/", max_length=1000, description="NAMESPACE/NAME")]
Place = Annotated[str, Meta(pattern=f"^({'|'.join(PLACES)})?$", description=", ".join(PLACES))]
Result = Annotated[str, Meta(pattern=f"^({'|'.join(RESULTS)})?$", description=", ".join(RESULTS))]


class RecordsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of one pod, and its attempts."""

    pod: PodKey
    limit: UpTo100 = 10
    """The number of records, newest first."""
    before: Sequence = LATEST
    """Only records with a smaller sequence."""
    nodes: Names = 100
    """The number of node names for each refusal."""


class QueueQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pending pods, by name."""

    place: Place = ""
    reason: Text = ""
    """The plugins that hold a pod, sorted and joined by commas."""
    search: Text = ""
    """Part of namespace/name."""
    limit: UpTo500 = 100
    after: Text = ""
    """Only pods whose namespace/name is greater."""


class AttemptsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The attempts of all pods, newest first."""

    limit: UpTo500 = 100
    before: Sequence = LATEST
    result: Result = ""


class AttemptQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes that one attempt rejected."""

    plugin: Text = ""
    """Only nodes that this plugin rejected."""
    limit: UpTo1000 = 100
    after: Text = ""
    """The last node of the previous page."""


class NodesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes, by name."""

    search: Text = ""
    """Part of the name, or of a label written as key=value."""
    limit: UpTo1000 = 100
    after: Text = ""
    """Only nodes whose name is greater."""


class NodeQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pods of one node, by name."""

    limit: UpTo1000 = 250
    after: Text = ""
    """Only pods whose namespace/name is greater."""


class SummaryQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query without parameters."""


class SnapshotQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole cluster as the scheduler sees it."""

    annotations: Annotated[bool, Meta(description="true or false")] = False
    """Whether to include the annotations of objects."""


def read_query(kind: type[Q], given: Mapping[str, str]) -> Q | Reason:
    """Read the query of a URL. Returns a sentence if it is not valid."""
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        return _problem(kind, given, str(error))


def write_query(query: msgspec.Struct) -> dict[str, str]:
    """Return the parameters of a URL, without those that have their default."""
    pairs = ((name.name, getattr(query, name.name), name.default) for name in msgspec.structs.fields(query))
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value, default in pairs
        if value != default
    }


def _problem(kind: type[Q], given: Mapping[str, str], error: str) -> Reason:
    """Name the parameter, and say what it may be."""
    name = re.findall(r"`(?:\$\.)?([^`]*)`", error)[-1]
    hints = get_type_hints(kind, include_extras=True)
    if name not in hints:
        known = ", ".join(hints) or "no parameters"
        return f"unknown parameter {name[:20]}; this path takes {known}"
    text = f"={given[name][:20]}" if name in given else " is missing"
    return f"{name}{text}: expected {hints[name].__metadata__[0].description}"
