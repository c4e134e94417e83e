"""The HTTP client on a scripted transport: what is sent again and what not, turns, fences and observers."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from moorage.api.errors import (
    ApiError,
    BadAnswer,
    Conflict,
    NotSent,
    OutcomeUnknown,
    ServerError,
    TooManyRequests,
    TransportError,
)
from moorage.api.meta import Object
from moorage.api.resources import EVENTS, LEASES, PODS, custom
from moorage.client import pacing
from moorage.client.http_client import HttpClient
from moorage.client.pacing import RateLimits
from moorage.client.transport import HttpRequest
from moorage.framework.ports import ApiClient, WatchEvent
from moorage.sim import loop
from moorage.sim.loop import VirtualClock

POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "a", "uid": "u"}}
EVENT = {"kind": "Event", "metadata": {"name": "e", "namespace": "a"}}
LEASE = {"kind": "Lease", "metadata": {"name": "l", "namespace": "a"}}
WIDGETS = custom("example.com", "v1", "widgets", "Widget")


@dataclass
class Reply:
    status: int = 200
    body: Any = field(default_factory=lambda: POD)
    headers: Mapping[str, str] = field(default_factory=dict)

    async def chunks(self) -> AsyncIterator[bytes]:
        yield await self.read(0)

    async def read(self, limit: int) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Scripted:
    """A Transport that answers from a list; when that is used up, with a pod."""

    def __init__(self, *answers: Reply | Exception) -> None:
        self.answers = deque(answers)
        self.sent: list[tuple[float, HttpRequest]] = []
        self.closed = False

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncIterator[Reply]:
        self.sent.append((asyncio.get_running_loop().time(), request))
        answer = self.answers.popleft() if self.answers else Reply()
        if isinstance(answer, Exception):
            raise answer
        yield answer

    async def close(self) -> None:
        self.closed = True


def client_of(transport: Any, *, qps: float = 0.0, burst: int = 1, **options: Any) -> HttpClient:
    clock = VirtualClock()
    limits = RateLimits(clock, qps, burst)
    return HttpClient(transport, clock, Random(1), limits=limits, user_agent="moorage/test", **options)


CALLS = {
    "get": lambda client: client.get(PODS, "p", "a"),
    "list": lambda client: client.list(PODS),
    "create": lambda client: client.create(PODS, POD),
    "replace": lambda client: client.replace(PODS, POD),
    "patch": lambda client: client.patch(PODS, "p", {}, namespace="a"),
    "delete": lambda client: client.delete(PODS, "p", namespace="a"),
    "bind": lambda client: client.bind("p", "a", "u", "n"),
    "lease": lambda client: client.replace(LEASES, LEASE),
}
WRITES = ("create", "replace", "patch", "delete")


def times_sent(call: str, *answers: Reply | Exception) -> tuple[int, Exception | None, float]:
    """How often a call is sent, what it raises, and how long it takes."""

    async def main() -> tuple[int, Exception | None, float]:
        transport = Scripted(*answers)
        try:
            await CALLS[call](client_of(transport))
        except Exception as error:
            return len(transport.sent), error, asyncio.get_running_loop().time()
        return len(transport.sent), None, asyncio.get_running_loop().time()

    return loop.run(main())


def test_it_is_an_api_client():
    client: ApiClient = loop.run(_make())
    assert client


async def _make() -> HttpClient:
    return client_of(Scripted())


def busy(code: int = 429, seconds: int | None = 2) -> Reply:
    body = {"kind": "Status", "code": code, "message": "busy"}
    return Reply(code, body, {} if seconds is None else {"retry-after": str(seconds)})


# What is repeated


@pytest.mark.parametrize("call", ["get", *WRITES])
@pytest.mark.parametrize("code", [429, 503])
def test_a_server_that_asks_for_patience_gets_it(call, code):
    sent, error, seconds = times_sent(call, *[busy(code)] * 3)
    assert (sent, error) == (4, None)
    assert 6.0 <= seconds < 6.5


@pytest.mark.parametrize("call", ["get", *WRITES])
def test_patience_ends(call):
    sent, error, _ = times_sent(call, *[busy()] * 50)
    assert sent == pacing.ASKED + 1
    assert isinstance(error, TooManyRequests)


@pytest.mark.parametrize("call", [*CALLS])
@pytest.mark.parametrize("code", [429, 500, 503])
def test_without_retry_after_the_error_is_the_answer(call, code):
    sent, error, _ = times_sent(call, busy(code, None))
    assert sent == 1
    assert isinstance(error, ApiError)
    assert error.code == code


def test_only_reads_are_repeated_after_a_500_that_asks_for_it():
    assert times_sent("get", busy(500))[:2] == (2, None)
    for call in WRITES:
        sent, error, _ = times_sent(call, busy(500))
        assert sent == 1
        assert isinstance(error, ServerError)


@pytest.mark.parametrize("call", ["get", *WRITES])
def test_what_was_surely_not_sent_is_sent_again_soon(call):
    assert times_sent(call, *[NotSent("refused")] * 3)[:2] == (4, None)
    sent, error, seconds = times_sent(call, *[NotSent("refused")] * 9)
    assert (sent, type(error)) == (4, NotSent)
    assert seconds < 2.0


@pytest.mark.parametrize("call", [*WRITES, "bind", "lease"])
@pytest.mark.parametrize("answer", [OutcomeUnknown("reset"), Reply(200, b"<html>Sign in</html>")], ids=["lost", "page"])
def test_b8_a_write_that_may_have_happened_is_never_sent_again(call, answer):
    sent, error, _ = times_sent(call, answer)
    assert sent == 1
    assert isinstance(error, OutcomeUnknown)


def test_a_read_whose_answer_was_lost_is_sent_again():
    assert times_sent("get", *[OutcomeUnknown("reset")] * 3)[:2] == (4, None)
    sent, error, _ = times_sent("get", Reply(200, b"<html>"))
    assert (sent, type(error)) == (1, BadAnswer), "a page stays a page"


@pytest.mark.parametrize("call", ["bind", "list", "lease"])
@pytest.mark.parametrize("answer", [busy(), NotSent("refused"), OutcomeUnknown("reset")], ids=str)
def test_binds_lists_and_leases_are_sent_once(call, answer):
    """The scheduler, the reflector and the elector have patience of their own."""
    sent, error, seconds = times_sent(call, answer)
    assert sent == 1
    assert error is not None
    assert seconds == 0


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 422])
def test_refusals_are_not_argued_with(code):
    sent, error, _ = times_sent("create", busy(code))
    assert sent == 1
    assert isinstance(error, ApiError)


def test_b1_the_text_of_a_conflict_reaches_the_caller():
    body = {"kind": "Status", "code": 409, "reason": "Conflict", "message": 'pod p is already assigned to "b"'}
    _, error, _ = times_sent("bind", Reply(409, body))
    assert isinstance(error, Conflict)
    assert 'already assigned to "b"' in str(error)


# Turns


def test_b21_binds_overtake_status_patches_and_events_have_their_own_turns():
    async def main():
        transport = Scripted()
        client = client_of(transport, qps=10, burst=1)
        await client.get(PODS, "p", "a")  # the bucket is empty now

        async def status(i):
            await client.patch(PODS, f"s{i}", {}, namespace="a", subresource="status")

        async def event(i):
            transport.answers.clear()
            with suppress(BadAnswer):  # the scripted answer is a pod
                await client.create(EVENTS, {**EVENT, "metadata": {"name": f"e{i}", "namespace": "a"}})

        await asyncio.gather(
            *(status(i) for i in range(5)),
            *(client.bind(f"b{i}", "a", "u", "n") for i in range(5)),
            *(event(i) for i in range(3)),
        )
        return [(at, request.path.split("/")[-2:]) for at, request in transport.sent]

    sent = loop.run(main())
    binds = [at for at, path in sent if path[1] == "binding"]
    patches = [at for at, path in sent if path[1] == "status"]
    events = [at for at, path in sent if path[1] == "events"]
    assert max(binds) < sorted(patches)[1], "all but the one that is never starved"
    assert max(events) < 0.3


def test_b21_a_lease_is_renewed_at_once_whatever_waits():
    async def main():
        transport = Scripted()
        client = client_of(transport, qps=1, burst=1)
        waiting = [asyncio.create_task(client.bind(f"b{i}", "a", "u", "n")) for i in range(1000)]
        await asyncio.sleep(0.5)
        transport.answers.append(Reply(200, LEASE))
        await client.replace(LEASES, LEASE)
        took = asyncio.get_running_loop().time()
        for task in waiting:
            task.cancel()
        return took

    assert loop.run(main()) == 0.5


# The fence


def test_a_write_is_fenced_after_it_has_waited_for_its_turn():
    """The lease may be lost while a bind waits in the limiter: then it must not leave."""

    async def main():
        transport = Scripted()
        leading = True

        def fence() -> float:
            if not leading:
                raise NotSent("not leading")
            return 4.0

        client = client_of(transport, qps=1, burst=1, fence=fence)
        await client.bind("first", "a", "u", "n")
        second = asyncio.create_task(client.bind("second", "a", "u", "n"))
        await asyncio.sleep(0.5)
        leading = False
        with pytest.raises(NotSent, match="not leading"):
            await second
        return [(request.path.split("/")[-2], request.timeout) for _, request in transport.sent]

    assert loop.run(main()) == [("first", 4.0)], "and what leaves may take no longer than the lease lasts"


@pytest.mark.parametrize(("call", "fenced"), [*((call, True) for call in WRITES), ("get", False), ("lease", False)])
def test_which_calls_are_fenced(call, fenced):
    async def main():
        def fence() -> float:
            raise ZeroDivisionError

        transport = Scripted(Reply(body=LEASE if call == "lease" else POD))
        try:
            await CALLS[call](client_of(transport, fence=fence))
        except ZeroDivisionError:
            assert not transport.sent
            return True
        return False

    assert loop.run(main()) == fenced


# Observers


class Notes:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def answered(self, verb: str, method: str, code: str, seconds: float) -> None:
        self.calls.append(("answered", verb, method, code))

    def waited(self, verb: str, seconds: float) -> None:
        if seconds:
            self.calls.append(("waited", verb))

    def repeated(self, verb: str, method: str, code: str) -> None:
        self.calls.append(("repeated", verb, method, code))


def test_requests_are_observed():
    notes = Notes()

    async def main():
        transport = Scripted(busy(429, 1), NotSent("refused"))
        client = client_of(transport, qps=1, burst=1, observer=notes)
        await client.get(PODS, "p", "a")

    loop.run(main())
    assert notes.calls == [
        ("answered", "GET", "GET", "429"),
        ("repeated", "GET", "GET", "429"),
        ("answered", "GET", "GET", "<error>"),
        ("repeated", "GET", "GET", "<error>"),
        ("waited", "GET"),
        ("answered", "GET", "GET", "200"),
    ]


# Lists and watches


def test_a_list_comes_with_its_page_token_and_what_was_set_aside():
    items = [{"metadata": {"name": "good", "namespace": "a"}}, {"metadata": {"name": "bad", "labels": 3}}]
    body = {"kind": "PodList", "metadata": {"resourceVersion": "9", "continue": "next"}, "items": items}

    async def main():
        return await client_of(Scripted(Reply(200, body))).list(PODS, limit=2)

    answer = loop.run(main())
    assert [pod.name for pod in answer.items] == ["good"]
    assert [problem.key for problem in answer.malformed] == ["bad"]
    assert (answer.resource_version, answer.next_page) == ("9", "next")


@pytest.mark.parametrize("kind", ["PartialObjectMetadataList", "PodList"])
def test_metadata_alone_is_asked_for_where_no_more_is_wanted(kind):
    items = [{"metadata": {"name": "a", "namespace": "b", "resourceVersion": "7"}, "spec": {"nodeName": "n"}}]
    scripted = Scripted(Reply(200, {"kind": kind, "metadata": {"resourceVersion": "9"}, "items": items}))

    async def main():
        return await client_of(scripted).list(replace(PODS, type=Object))

    answer = loop.run(main())
    assert [(type(obj), obj.key, obj.resource_version) for obj in answer.items] == [(Object, "b/a", "7")]
    accept = scripted.sent[0][1].headers["Accept"]
    assert accept == "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


def test_a_long_list_leaves_the_loop_turns():
    items = [{"metadata": {"name": f"p{i}", "namespace": "a"}} for i in range(5000)]
    body = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": items}

    async def main():
        turns = 0
        listing = asyncio.create_task(client_of(Scripted(Reply(200, body))).list(PODS))
        while not listing.done():
            turns += 1
            await asyncio.sleep(0)
        return turns, len(listing.result().items)

    turns, found = loop.run(main())
    assert found == 5000
    assert turns >= 25


async def watched(transport: Scripted, resource: Any = PODS) -> list[WatchEvent]:
    return [event async for event in client_of(transport).watch(resource, resource_version="1", timeout=60)]


def test_a4_a_watch_that_is_cut_inside_a_line_drops_the_part():
    whole = json.dumps({"type": "ADDED", "object": POD}).encode()
    events = loop.run(watched(Scripted(Reply(200, whole + b"\n" + whole[:-20]))))
    assert [event.object.name for event in events] == ["p"]


def test_a_watch_of_a_custom_resource():
    widget = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "w", "resourceVersion": "4"}}
    line = json.dumps({"type": "ADDED", "object": widget}).encode() + b"\n"
    events = loop.run(watched(Scripted(Reply(200, line)), WIDGETS))
    assert [(event.object.kind, event.resource_version) for event in events] == [("Widget", "4")]


def test_a_refused_watch_raises_its_error():
    with pytest.raises(TooManyRequests) as error:
        loop.run(watched(Scripted(busy(429, 7))))
    assert error.value.retry_after == 7.0


def test_a28_compressed_answers_are_refused():
    for call in ("get", "list"):
        _, error, _ = times_sent(call, Reply(200, b"\x1f\x8b", {"content-encoding": "gzip"}))
        assert isinstance(error, BadAnswer)


def test_closing_closes_the_transport():
    async def main():
        transport = Scripted()
        await client_of(transport).close()
        return transport.closed

    assert loop.run(main())


def test_every_request_says_who_asks_and_refuses_compression():
    async def main():
        transport = Scripted()
        await client_of(transport).get(PODS, "p", "a")
        return transport.sent[0][1].headers

    headers = loop.run(main())
    assert headers["User-Agent"] == "moorage/test"
    assert headers["Accept-Encoding"] == "identity"


def test_a_transport_error_of_no_special_kind_is_the_answer():
    sent, error, _ = times_sent("get", TransportError("the answer is longer than allowed"))
    assert (sent, type(error)) == (1, TransportError)


class Endless(Reply):
    """A refusal whose body never ends."""

    async def read(self, limit: int) -> bytes:
        await asyncio.get_running_loop().create_future()
        raise AssertionError


def test_a11_a_refused_watch_does_not_wait_for_a_body_that_never_ends():
    async def story() -> tuple[float, float | None]:
        client = client_of(Scripted(Endless(429, headers={"retry-after": "7"})))
        with pytest.raises(TooManyRequests) as caught:
            await anext(aiter(client.watch(PODS, resource_version="5", timeout=300.0)))
        return asyncio.get_running_loop().time(), caught.value.retry_after

    seconds, asked = loop.run(story())
    assert (seconds <= 5.0, asked) == (True, 7.0)
