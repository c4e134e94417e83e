"""What extenders cost on loopback, both ways: pods that the engine places through one, by names and by whole
nodes; and the time in which `moorage extender` answers."""

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
from moorage.app.gc_tuning import collected_as_when_running
from moorage.bench.workloads import plain
from moorage.bench.world import World
from moorage.config import Extender
from moorage.extender.client import HttpExtender
from moorage.extender.connecting import make_extenders
from moorage.scheduler.cycle import PodPlacement
from perf.extender.detailed_nodes import add_details

WARM_UP = 10
RESPONDER, SERVED = "perf.extender.responder", "perf.extender.served"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A way in which pods are decided over HTTP."""

    name: str
    what: str
    names_only: bool = True
    serves: bool = False
    """Moorage is the extender."""


EXCHANGES = (
    Exchange("names", "asks an extender with nodeCacheCapable"),
    Exchange("nodes", "asks an extender that wants whole nodes", names_only=False),
    Exchange("served", "is the extender, asked with names", serves=True),
)


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """A pod counts from pop to assume: one filter and one prioritize request, and all plugins. Where Moorage
    is the extender, the two requests count, as their sender sees them."""

    exchange: str
    nodes: int
    node_bytes: int
    """Of one node, or of its name, as it is sent; the mean."""
    measured: int
    median_ms: float
    p99_ms: float
    pods_per_second: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class NoAnswer(MoorageError):
    """The extender of the benchmark was not asked, or did not answer."""


async def measure(
    exchange: Exchange, nodes: int, pods: int, count: int, seed: int, progress: Callable[[int], None]
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
            world = World(nodes, pods, seed=seed, extenders=asked, finish_node=add_details)
            pending = plain(world)

            async def one() -> int:
                pod = next(pending)
                return await (_ask(extender, world, pod) if exchange.serves else _one(world, pod))

            with collected_as_when_running():
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
    """Of times in nanoseconds."""
    return ExchangeResult(
        name,
        nodes,
        node_bytes,
        len(times),
        statistics.median(times) / 1e6,
        sorted(times)[min(len(times) - 1, int(len(times) * 0.99))] / 1e6,
        1e9 / statistics.mean(times),
    )


async def _one(world: World, pod: dict[str, Any]) -> int:
    engine = world.engine
    world.enqueue(pod)
    began = time.perf_counter_ns()
    info = engine.queue.pop()
    assert info is not None, "a plain pod is refused by no PreEnqueue plugin of the default profile"
    placed = await engine.cycle.run(info, world.profile)
    took = time.perf_counter_ns() - began
    if not isinstance(placed, PodPlacement):
        raise NoAnswer(f"{info.key} was not placed: {placed.message}")
    board = placed.attempt.board
    if board is None or not board.extended:
        raise NoAnswer(f"{info.key} was placed on {placed.node} without a score of the extender")
    world.finish(info, placed.node)
    return took


async def _ask(extender: HttpExtender, world: World, raw: dict[str, Any]) -> int:
    """What kube-scheduler asks about a pod: all nodes to be filtered, those that passed to be scored."""
    pod, every = msgspec.convert(raw, Pod), world.engine.services.nodes()
    began = time.perf_counter_ns()
    passed = (await extender.filter(pod, every)).names
    scores = await extender.prioritize(pod, every.where(every.named(*passed)))
    took = time.perf_counter_ns() - began
    if not passed or scores.keys() != passed:
        raise NoAnswer(f"{pod.key}: {len(passed)} nodes passed and {len(scores)} were scored")
    return took


def _node_bytes(world: World, exchange: Exchange) -> int:
    views = world.engine.services.nodes()
    sent = [view.name if exchange.names_only else view.node for view in views]
    return round(statistics.mean(len(msgspec.json.encode(each)) for each in sent))


@asynccontextmanager
async def _process(module: str, *arguments: str) -> AsyncIterator[str]:
    """The URL of an extender in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        start_new_session=True,
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
