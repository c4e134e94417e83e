"""An extender on a loopback socket that answers as a test says, and one in virtual time."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from moorage.app.clock import SystemClock
from moorage.client.transport import HttpRequest, Response
from moorage.config import Extender
from moorage.extender.client import HttpExtender
from moorage.extender.connecting import make_extenders
from moorage.framework.nodes import Nodes
from moorage.framework.ports import Clock
from moorage.state.node_table import NodeTable
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.testing import make_node, make_pod
from tests.client.raw_server import Connection, Script, serve

T = TypeVar("T")
POD = make_pod("p", uid="uid-p")
VERBS: dict[str, Any] = {"filter_verb": "filter", "prioritize_verb": "prioritize", "preempt_verb": "preempt",
         "bind_verb": "bind", "weight": 1}  # fmt: skip


def nodes_of(*names: str) -> Nodes:
    table = NodeTable()
    for name in names:
        table.set_node(make_node(name))
    return table.nodes()


THREE = nodes_of("a", "b", "c")


def replying(answer: Callable[[str, Any], Any], status: int = 200, **headers: str) -> Script:
    """Answers every request with what `answer(verb, question)` gives: bytes, or a value to encode."""

    async def script(connection: Connection) -> None:
        while True:
            request = await connection.request()
            verb = request.line.split()[1].rpartition("/")[2]
            found = answer(verb, json.loads(request.body))
            body = found if isinstance(found, bytes) else msgspec.json.encode(found)
            await connection.answer(status, body, **{"content_type": "application/json", **headers})

    return script


def saying(body: Any, status: int = 200, **headers: str) -> Script:
    return replying(lambda verb, question: body, status, **headers)


def in_turn(*scripts: Script) -> Script:
    """The first connection is handled by the first script, the next one by the next."""
    waiting = list(scripts)

    async def script(connection: Connection) -> None:
        await waiting.pop(0)(connection)

    return script


@contextmanager
def extender_server(script: Script) -> Iterator[str]:
    """Serve from a thread of its own, for callers that block; the value is the URL."""
    loop, ready, done = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    found: list[str] = []

    async def main() -> None:
        async with serve(script) as server:
            found.append(server.url)
            ready.set()
            await done.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)
        loop.close()


def asked(
    script: Script,
    ask: Callable[[HttpExtender], Awaitable[T]],
    *,
    tls: Any = None,
    url: str = "",
    metrics: SchedulerMetrics | None = None,
    **fields: Any,
) -> T:
    """What `ask` gets from the extender behind the script; `fields` are those of its configuration."""

    async def main() -> T:
        async with serve(script, tls=tls) as server:
            prefix = url.format(port=server.port) or server.url
            given = Extender(**{"url_prefix": prefix, "http_timeout": 2.0, **VERBS, **fields})
            (extender,) = make_extenders([given], SystemClock(), metrics)
            try:
                return await ask(extender)
            finally:
                await extender.close()

    return asyncio.run(main())


def filtered(script: Script, **fields: Any) -> Any:
    return asked(script, lambda extender: extender.filter(POD, THREE), **fields)


class FakeTransport:
    """Answers in the process, in virtual time. `answer(verb, question)` gives a value, an HTTP status with a
    value, or an exception to raise."""

    def __init__(self, answer: Callable[[str, Any], Any]) -> None:
        self._answer = answer

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncIterator[Response]:
        await asyncio.sleep(0)
        found = self._answer(request.path.removeprefix("/"), json.loads(request.body))
        if isinstance(found, Exception):
            raise found
        status, value = found if isinstance(found, tuple) else (200, found)
        yield FakeResponse(status, {"Content-Type": "application/json"}, msgspec.json.encode(value))

    async def close(self) -> None:
        return


@dataclass
class FakeResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    async def read(self, limit: int) -> bytes:
        return self.body


def extender_of(
    answer: Callable[[str, Any], Any],
    *verbs: str,
    made: type[HttpExtender] = HttpExtender,
    clock: Clock | None = None,
    **fields: Any,
) -> HttpExtender:
    """An extender in virtual time that offers these verbs."""
    offered = {f"{verb}_verb": verb for verb in verbs}
    given = Extender(**{"url_prefix": "http://extender", "weight": 1, **offered, **fields})
    return made(given, FakeTransport(answer), clock or SystemClock())
