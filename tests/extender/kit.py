"""An extender on a loopback socket that answers as a test says, and schedulers that ask it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from mooring.api.resources import EVENTS
from mooring.app.clock import SystemClock
from mooring.app.scheduler import Scheduler
from mooring.config import Extender
from mooring.extender.client import HttpExtender
from mooring.extender.connecting import make_extenders
from mooring.framework.nodes import Nodes
from mooring.state.node_table import NodeTable
from mooring.store.faults import Faults
from mooring.store.local import LocalClient
from mooring.store.store import Store
from mooring.telemetry.metrics import SchedulerMetrics
from mooring.testing import make_node, make_pod
from tests.client.raw_server import Connection, RawServer, Script, serve
from tests.scheduler.kit import config

T = TypeVar("T")
POD = make_pod("p", uid="uid-p")
VERBS = {"filter_verb": "filter", "prioritize_verb": "prioritize", "preempt_verb": "preempt",
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


class RealCluster:
    """A store with a scheduler on it, in real time: sockets know no other."""

    def __init__(self, extenders: str, server: RawServer, *plugins: str) -> None:
        self.server = server
        clock = SystemClock()
        self.store = Store(clock.wall, random.Random(1))
        self.faults = Faults(random.Random(2))
        self.client = LocalClient(self.store, clock, self.faults)
        self.metrics = SchedulerMetrics(clock.now)
        self.scheduler = Scheduler(
            self.client,
            config=config(*plugins, head=extenders),
            clock=clock,
            random=random.Random(3),
            discover=False,
            instance="test",
            metrics=self.metrics,
        )

    async def until(self, holds: Callable[[], bool], seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.sleep(0.005)

    def notes(self, reason: str) -> list[str]:
        events = self.store.list(EVENTS).items
        return [event["note"] for event in events if event["reason"] == reason]


def with_cluster(
    script: Script,
    extenders: str,
    act: Callable[[RealCluster], Awaitable[T]],
    *plugins: str,
    objects: Sequence[Any] = (),
) -> T:
    """Runs `act` with a scheduler that asks the extenders of a YAML text; `{url}` in it is the server."""

    async def main() -> T:
        async with serve(script) as server, _running(server, extenders, plugins, objects) as cluster:
            return await act(cluster)

    return asyncio.run(main())


@asynccontextmanager
async def _running(
    server: RawServer, extenders: str, plugins: Sequence[str], objects: Sequence[Any]
) -> AsyncIterator[RealCluster]:
    cluster = RealCluster(extenders.replace("{url}", server.url), server, *plugins)
    for resource, obj in objects:
        await cluster.client.create(resource, obj)
    async with cluster.scheduler:
        yield cluster
