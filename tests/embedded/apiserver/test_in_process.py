"""The in-process transport under virtual time, against small applications."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moorage.api.errors import MoorageError, NotSent, OutcomeUnknown, TransportError
from moorage.client.transport import HttpRequest
from moorage.sim.loop import VirtualClock, run
from tests.embedded import wire_faults
from tests.embedded.in_process import AsgiTransport
from tests.embedded.wire_faults import Effect, WireFault, WireFaults

BODY = b"0123456789" * 3


class Server:
    """An application that remembers what it was asked, and answers BODY in three chunks."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.scopes: list[dict[str, Any]] = []
        self.disconnected = 0

    async def __call__(self, scope, receive, send) -> None:
        message = await receive()
        self.scopes.append(scope)
        self.asked.append((scope["method"], scope["path"], message["body"]))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-kind", b"test")]})
        if scope["path"] == "/endless":
            await self._endless(receive, send)
            return
        for start in range(0, 30, 10):
            more = start < 20
            await send({"type": "http.response.body", "body": BODY[start : start + 10], "more_body": more})

    async def _endless(self, receive, send) -> None:
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        self.disconnected += 1


def virtually(
    scenario: Callable[[AsgiTransport, Server, VirtualClock], Awaitable[object]],
    effect: Effect | None = None,
    **fault: object,
) -> object:
    """Runs a scenario with a fresh server, whose first fitting request is hit by the effect."""

    async def main() -> object:
        faults = WireFaults()
        if effect is not None:
            faults.add(WireFault(effect, **fault))  # type: ignore[arg-type]
        clock, server = VirtualClock(), Server()
        transport = AsgiTransport(server, clock, headers={"Authorization": "Bearer t"}, faults=faults)
        try:
            return await scenario(transport, server, clock)
        finally:
            await transport.close()

    return run(main(), timeout_virtual=1000)


async def fetch(transport: AsgiTransport, path: str = "/", **options) -> list[bytes]:
    async with transport.send(HttpRequest("GET", path, **options)) as response:
        return [chunk async for chunk in response.chunks()]


def test_a_request_and_its_answer_pass_unchanged():
    async def scenario(transport, server, clock):
        request = HttpRequest("POST", "/a%20b", {"q": "x y"}, {"X-A": "1"}, b"body")
        async with transport.send(request) as response:
            assert response.status == 200
            assert response.headers["X-Kind"] == response.headers["x-kind"] == "test"
            assert await response.read(100) == BODY
        assert server.asked == [("POST", "/a b", b"body")]
        scope = server.scopes[0]
        assert scope["query_string"] == b"q=x+y"
        assert dict(scope["headers"]) == {
            b"host": b"127.0.0.1:6443",
            b"authorization": b"Bearer t",
            b"x-a": b"1",
            b"content-length": b"4",
        }
        assert await fetch(transport) == [BODY[:10], BODY[10:20], BODY[20:]]

    virtually(scenario)


def test_an_answer_above_the_limit_is_refused():
    async def scenario(transport, server, clock):
        async with transport.send(HttpRequest("GET", "/")) as response:
            with pytest.raises(TransportError, match="30 bytes, more than the 29 allowed"):
                await response.read(29)

    virtually(scenario)


@pytest.mark.parametrize(
    ("effect", "error", "seen", "at"),
    [
        pytest.param(wire_faults.refuse(), NotSent, 0, 0, id="refused"),
        pytest.param(wire_faults.lose_request(), OutcomeUnknown, 0, 0, id="request lost"),
        pytest.param(wire_faults.lose_request(after=None), OutcomeUnknown, 0, 30, id="request lost silently"),
        pytest.param(wire_faults.lose_answer(after=5), OutcomeUnknown, 1, 5, id="answer lost"),
        pytest.param(wire_faults.lose_answer(after=None), OutcomeUnknown, 1, 30, id="answer lost silently"),
        pytest.param(wire_faults.delay(answer=40), OutcomeUnknown, 1, 30, id="answer after the timeout"),
        pytest.param(wire_faults.stall(), OutcomeUnknown, 1, 30, id="stalled before the first byte"),
        pytest.param(wire_faults.stall(15), OutcomeUnknown, 1, 30, id="stalled in the body"),
        pytest.param(wire_faults.cut(), OutcomeUnknown, 1, 0, id="cut before the first byte"),
        pytest.param(wire_faults.cut(15), OutcomeUnknown, 1, 0, id="cut in the body"),
        pytest.param(wire_faults.cut(30), OutcomeUnknown, 1, 0, id="cut after the last byte"),
    ],
)
def test_a_spoilt_exchange_fails_as_the_client_would_see_it(
    effect: Effect, error: type[MoorageError], seen: int, at: float
):
    async def scenario(transport, server, clock):
        with pytest.raises(error):
            await fetch(transport, timeout=30.0)
        assert (len(server.asked), clock.now()) == (seen, at)
        assert b"".join(await fetch(transport)) == BODY  # the fault is used up

    virtually(scenario, effect)


@pytest.mark.parametrize(
    ("effect", "chunks"),
    [
        pytest.param(wire_faults.split(7), [b"0123456", b"789"] * 3, id="one size"),
        pytest.param(wire_faults.split(1, 100), [b"0", b"123456789"] * 3, id="sizes in turn"),
        pytest.param(wire_faults.cut(15, quietly=True), [b"0123456789", b"01234"], id="a quiet cut"),
        pytest.param(wire_faults.cut(31), [b"0123456789"] * 3, id="a cut beyond the end"),
        pytest.param(wire_faults.delay(request=1, answer=2, chunk=3), [b"0123456789"] * 3, id="delays"),
        pytest.param(wire_faults.answer(429, b"slow down", retry_after="7"), [b"slow down"], id="canned"),
    ],
)
def test_chunks_arrive_as_the_fault_makes_them(effect: Effect, chunks: list[bytes]):
    async def scenario(transport, server, clock):
        assert await fetch(transport) == chunks
        assert clock.now() == (11 if effect.request_delay else 0)

    virtually(scenario, effect)


def test_a_canned_answer_never_reaches_the_server():
    async def scenario(transport, server, clock):
        async with transport.send(HttpRequest("GET", "/")) as response:
            assert (response.status, response.headers["Retry-After"]) == (429, "7")
        assert server.asked == []

    virtually(scenario, wire_faults.answer(429, b"slow down", retry_after="7"))


def test_a_delayed_request_arrives_although_the_client_gave_up():
    async def scenario(transport, server, clock):
        with pytest.raises(OutcomeUnknown, match="no answer within 5 s"):
            await fetch(transport, timeout=5.0)
        assert server.asked == []
        await asyncio.sleep(10)
        assert len(server.asked) == 1

    virtually(scenario, wire_faults.delay(request=8))


def test_the_application_learns_that_the_client_is_gone():
    async def scenario(transport, server, clock):
        async with transport.send(HttpRequest("GET", "/endless")) as response:
            async for chunk in response.chunks():
                assert chunk == b"first"
                break
        await asyncio.sleep(0.1)
        assert server.disconnected == 1

    virtually(scenario)


@pytest.mark.parametrize("quietly", [True, False])
def test_a_dying_server_cuts_what_is_open_and_refuses_what_is_new(quietly: bool):
    async def scenario(transport, server, clock):
        reading = asyncio.create_task(fetch(transport, "/endless"))
        await asyncio.sleep(1)
        transport.down = True
        assert transport.cut(quietly=quietly) == 1
        if quietly:
            assert await reading == [b"first"]
        else:
            with pytest.raises(OutcomeUnknown, match="reset"):
                await reading
        with pytest.raises(NotSent):
            await fetch(transport)
        transport.down = False
        assert b"".join(await fetch(transport)) == BODY

    virtually(scenario)


def test_an_unread_connection_makes_the_application_wait():
    sent = []

    async def flood(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(10):
            await send({"type": "http.response.body", "body": b"x" * 30_000, "more_body": number < 9})
            sent.append(number)

    async def main() -> None:
        transport = AsgiTransport(flood, VirtualClock())
        async with transport.send(HttpRequest("GET", "/")) as response:
            await asyncio.sleep(10)
            assert len(sent) == 2
            assert len(await response.read(10**6)) == 300_000
            assert len(sent) == 10

    run(main())


def test_a_failing_application_is_a_500_and_reported():
    async def broken(scope, receive, send) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        transport = AsgiTransport(broken, VirtualClock())
        async with transport.send(HttpRequest("GET", "/")) as response:
            assert (response.status, await response.read(100)) == (500, b"Internal Server Error")

    with pytest.raises(BaseExceptionGroup) as raised:
        run(main())
    assert isinstance(raised.value.exceptions[0], ZeroDivisionError)


def test_an_application_that_stops_early_breaks_the_connection():
    async def early(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def main() -> None:
        transport = AsgiTransport(early, VirtualClock())
        with pytest.raises(OutcomeUnknown, match="before the end"):
            await fetch(transport)

    run(main())


@pytest.mark.parametrize(
    ("fault", "hit"),
    [
        ({"method": "POST"}, False),
        ({"path": "/api/v1/pods"}, True),
        ({"path": lambda path: path.endswith("nodes")}, False),
        ({"watch": True}, False),
        ({"watch": False}, True),
        ({"skip": 1}, False),
        ({"times": 0}, False),
    ],
)
def test_faults_choose_their_requests(fault: dict[str, object], hit: bool):
    async def scenario(transport, server, clock):
        try:
            await fetch(transport, "/api/v1/pods")
        except NotSent:
            return True
        return False

    assert virtually(scenario, wire_faults.refuse(), **fault) is hit


def test_chances_follow_the_seed_and_need_one():
    with pytest.raises(ValueError, match="rng"):
        WireFaults().add(WireFault(wire_faults.refuse(), chance=0.5))
    faults = WireFaults(random.Random(3))
    fault = faults.add(WireFault(wire_faults.refuse(), chance=0.5, times=None))
    hits = [faults.sent(HttpRequest("GET", "/"), 0.0) is not None for _ in range(100)]
    assert 30 < sum(hits) < 70
    assert fault.hits == sum(hits)
    assert len(faults.log) == 100
    faults.clear()
    assert faults.sent(HttpRequest("GET", "/"), 0.0) is None
