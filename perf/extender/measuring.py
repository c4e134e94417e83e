"""The cost of extenders on loopback, in both directions.

Measures pods that the engine schedules through an extender, by node names and by whole nodes, and the
response time of `moorage extender`.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.pod import Pod
from moorage.app.clock import SystemClock
from moorage.app.gc_tuning import production_gc
from moorage.bench.workloads import plain
from moorage.bench.world import BenchWorld
from moorage.config import Extender
from moorage.extender.client import HttpExtender
from moorage.extender.connecting import make_extenders
from moorage.scheduler.cycle import PodPlacement
from perf.extender.detailed_nodes import add_details

WARM_UP = 10
RESPONDER, SERVED = "perf.extender.responder", "perf.extender.served"


@dataclass(frozen=True, slots=True)
class ExtenderExchange:
    """A way of scheduling pods over HTTP."""

    name: str
    description: str
    names_only: bool = True
    serves: bool = False
    """Whether Moorage is the extender."""


EXCHANGES = (
    ExtenderExchange("names", "asks an extender with nodeCacheCapable"),
    ExtenderExchange("nodes", "asks an extender that wants whole nodes", names_only=False),
    ExtenderExchange("served", "is the extender, asked with names", serves=True),
)


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """The figures of one exchange.

    A pod is timed from pop to assume: one filter and one prioritize request, and all plugins. If Moorage is
    the extender, the two requests are timed at their sender.
    """

    exchange: str
    nodes: int
    node_bytes: int
    """Mean size of one node, or of its name, in a request."""
    measured: int
    median_ms: float
    p99_ms: float
    pods_per_second: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class NoAnswer(MoorageError):
    """The benchmark's extender was not called or did not respond."""


async def measure(
    exchange: ExtenderExchange, nodes: int, pods: int, count: int, seed: int, progress: Callable[[int], None]
) -> ExchangeResult:
    arguments = (SERVED, str(nodes), str(pods), str(seed)) if exchange.serves else (RESPONDER,)
    async with _process(*arguments) as url:
        configured = Extender(
            url_prefix=url, filter_verb="filter", prioritize_verb="prioritize", weight=1, http_timeout=30.0,
            node_cache_capable=exchange.names_only,
        )  # fmt: skip
        (extender,) = make_extenders([configured], SystemClock())
        try:
            asked = () if exchange.serves else (extender,)
            world = BenchWorld(nodes, pods, seed=seed, extenders=asked, finish_node=add_details)
            pending = plain(world)

            async def one() -> int:
                pod = next(pending)
                return await (_time_requests(extender, world, pod) if exchange.serves else _schedule_one(world, pod))

            with production_gc():
                for _ in range(WARM_UP):
                    await one()
                times = []
                for _ in range(count):
                    times.append(await one())
                    progress(1)
        finally:
            await extender.close()
    return result_of(exchange.name, nodes, _node_bytes(world, exchange), times)


def result_of(name: str, nodes: int, node_bytes: int, times: list[int]) -> ExchangeResult:
    """Compute the figures from times in nanoseconds."""
    return ExchangeResult(
        name,
        nodes,
        node_bytes,
        len(times),
        statistics.median(times) / 1e6,
        sorted(times)[min(len(times) - 1, int(len(times) * 0.99))] / 1e6,
        1e9 / statistics.mean(times),
    )


async def _schedule_one(world: BenchWorld, pod: dict[str, Any]) -> int:
    engine = world.engine
    world.enqueue(pod)
    began = time.perf_counter_ns()
    info = engine.queue.pop()
    assert info is not None, "no PreEnqueue plugin of the default profile rejects a plain pod"
    placed = await engine.cycle.run(info, world.profile)
    took = time.perf_counter_ns() - began
    if not isinstance(placed, PodPlacement):
        raise NoAnswer(f"{info.key} was not placed: {placed.message}")
    board = placed.attempt.board
    if board is None or not board.extended:
        raise NoAnswer(f"{info.key} was placed on {placed.node} without a score from the extender")
    world.confirm(info, placed.node)
    return took


async def _time_requests(extender: HttpExtender, world: BenchWorld, raw: dict[str, Any]) -> int:
    """Send the requests of kube-scheduler for a pod: filter all nodes, prioritize those that passed."""
    pod, every = msgspec.convert(raw, Pod), world.engine.services.nodes()
    began = time.perf_counter_ns()
    passed = (await extender.filter(pod, every)).names
    scores = await extender.prioritize(pod, every.where(every.named(*passed)))
    took = time.perf_counter_ns() - began
    if not passed or scores.keys() != passed:
        raise NoAnswer(f"{pod.key}: {len(passed)} nodes passed and {len(scores)} were scored")
    return took


def _node_bytes(world: BenchWorld, exchange: ExtenderExchange) -> int:
    views = world.engine.services.nodes()
    sent = [view.name if exchange.names_only else view.node for view in views]
    return round(statistics.mean(len(msgspec.json.encode(each)) for each in sent))


@asynccontextmanager
async def _process(module: str, *arguments: str) -> AsyncIterator[str]:
    """Run an extender in another process and yield its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = await process.stdout.readline()
        if not port:
            raise NoAnswer(f"`python -m {module}` ended with {await process.wait()}; see its error above")
        yield f"http://127.0.0.1:{int(port)}"
    finally:
        process.stdin.close()
        await process.stdout.read()
        await process.wait()
