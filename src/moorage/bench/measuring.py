"""Time blocks of pods between blocks of the kernel, so that both see the same machine.

The kernel is the yardstick: the arithmetic for one plain pod over all nodes in NumPy (filter by three
resources, LeastAllocated, balance with and without the pod, `where`, `argmax`; int64 with temporaries).
Machines differ, so results are given in multiples of it.
"""

from __future__ import annotations

import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration, configure
from moorage.app.gc_tuning import production_gc
from moorage.bench.workloads import EngineWorkload
from moorage.bench.world import BenchWorld
from moorage.framework.events import QueuedPod
from moorage.framework.nodes import FloatArray, IntArray
from moorage.runtime.attempt import Attempt
from moorage.scheduler.choosing import NodeChooser
from moorage.scheduler.failing import Failure


class Kernel:
    """A bare evaluation of `nodes` nodes per call."""

    def __init__(self, nodes: int, seed: int = 0) -> None:
        draw = random.Random(seed)
        self._cpu = _column(draw.choice((8_000, 16_000, 32_000)) for _ in range(nodes))
        self._memory = _column(draw.choice((32, 64, 128)) << 30 for _ in range(nodes))
        self._pods = _column(110 for _ in range(nodes))
        self._used_cpu = _column(draw.randrange(0, 4_000) for _ in range(nodes))
        self._used_memory = _column(draw.randrange(0, 16 << 30) for _ in range(nodes))
        self._used_pods = _column(draw.randrange(0, 30) for _ in range(nodes))

    def __call__(self, cpu: int = 100, memory: int = 200 << 20) -> int:
        free_cpu, free_memory = self._cpu - self._used_cpu, self._memory - self._used_memory
        fits = (free_cpu >= cpu) & (free_memory >= memory) & (self._used_pods + 1 <= self._pods)
        least = (free_cpu - cpu) * 100 // self._cpu + (free_memory - memory) * 100 // self._memory
        before = _balance(self._used_cpu / self._cpu, self._used_memory / self._memory)
        after = _balance((self._used_cpu + cpu) / self._cpu, (self._used_memory + memory) / self._memory)
        total = least // 2 + 50 + (50 + after - before) // 2
        return int(np.argmax(np.where(fits, total, -1)))


def _balance(first: FloatArray, second: FloatArray) -> IntArray:
    spread = np.abs(np.minimum(first, 1.0) - np.minimum(second, 1.0)) / 2
    result: IntArray = ((1.0 - spread) * 100).astype(np.int64)
    return result


def _column(values: Iterable[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)


POD_BLOCK, KERNEL_BLOCK = 25, 15
SHORT_BLOCK = 5
"""Pods per block if each takes milliseconds, because machines change their speed."""
CHECK_EVERY = 100
"""One placement in this many is compared with a fresh evaluation."""


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The figures of one workload. A pod is timed from pop to assume, including its record."""

    workload: str
    nodes: int
    pods: int
    measured: int
    median_us: float
    p99_us: float
    kernel_us: float
    multiple: float
    """Median over blocks of (median pod of the block / median kernel before and after it)."""
    pods_per_second: float
    rss_mb: float
    checked: int
    """Number of placements that a fresh evaluation confirmed."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Mismatch(MoorageError):
    """The engine chose another node than a fresh evaluation."""


class Unplaced(MoorageError):
    """A pod of a schedulable workload was not scheduled, because the profile rejects it."""


class Measurement:
    """One workload on one world, with the first profile of a configuration or the default one."""

    def __init__(
        self,
        workload: EngineWorkload,
        nodes: int,
        pods: int,
        measure: int,
        seed: int = 0,
        configured: Configuration | None = None,
    ) -> None:
        self.workload = workload
        if workload.nodes:
            nodes, pods = workload.nodes, pods * workload.nodes // nodes
        self.running = nodes * workload.per_node if workload.per_node else pods
        self.measure = workload.attempts or measure
        if configured is None and workload.config:
            configured = configure(workload.config, discover=False)
        self.world = BenchWorld(
            nodes,
            self.running,
            seed=seed,
            per_node=workload.per_node,
            configured=configured,
            finish_node=workload.finish_node,
        )
        self.kernel = Kernel(nodes)
        self.timer: Callable[[], int] = time.perf_counter_ns
        self._pods = workload.pods(self.world)
        self.checked = 0

    async def run(self, progress: Callable[[int], None]) -> EngineResult:
        with production_gc():
            for _ in range(self.workload.warm_up):
                await self._schedule_one()
                self.kernel()
            kernels, blocks = [self._kernel_block()], []
            for size in self._block_sizes():
                blocks.append(await self._pod_block(size, progress))
                kernels.append(self._kernel_block())
        times = [t for block in blocks for t in block]
        ratios = [
            statistics.median(block) / statistics.median(before + after)
            for block, (before, after) in zip(blocks, pairwise(kernels), strict=True)
        ]
        median = statistics.median(times)
        return EngineResult(
            self.workload.name,
            self.world.nodes,
            self.running,
            len(times),
            median / 1e3,
            sorted(times)[min(len(times) - 1, int(len(times) * 0.99))] / 1e3,
            statistics.median([t for beside in kernels for t in beside]) / 1e3,
            statistics.median(ratios),
            1e9 / statistics.mean(times),
            rss_mb(),
            self.checked,
        )

    def _block_sizes(self) -> Iterator[int]:
        remaining, size = self.measure, SHORT_BLOCK if self.workload.attempts else POD_BLOCK
        while remaining > 0:
            yield min(size, remaining)
            remaining -= size

    async def _pod_block(self, size: int, progress: Callable[[int], None]) -> list[int]:
        times = []
        for _ in range(size):
            times.append(await self._schedule_one())
        progress(size)
        return times

    def _kernel_block(self) -> list[int]:
        return [self._time_kernel() for _ in range(KERNEL_BLOCK)]

    def _time_kernel(self) -> int:
        began = time.perf_counter_ns()
        self.kernel()
        return time.perf_counter_ns() - began

    async def _schedule_one(self) -> int:
        """Time one pod from pop to placement. Enqueueing and confirming are not timed."""
        world, engine = self.world, self.world.engine
        world.enqueue(next(self._pods))
        expected = await self._evaluate_afresh() if self._is_check_due() else None
        began = self.timer()
        info = engine.queue.pop()
        if info is None:
            raise Unplaced("a pod did not reach the active queue, because PreEnqueue rejects it")
        result = await engine.cycle.run(info, world.profile)
        took = self.timer() - began
        self._settle(info, result, expected)
        return took

    def _is_check_due(self) -> bool:
        # With sampling, the result depends on where the last search ended.
        return (
            self.workload.schedulable
            and not self.world.profile.samples
            and len(self.world.engine.cache) % CHECK_EVERY == 0
        )

    async def _evaluate_afresh(self) -> str:
        """Return the node of the next pod, chosen without cached results."""
        info = next(info for info, _ in self.world.engine.queue.pending)
        attempt = Attempt(QueuedPod(info.pod, 0.0), self.world.profile, self.world.engine.services.nodes())
        await NodeChooser().choose(attempt)
        return attempt.node

    def _settle(self, info: QueuedPod, result: Any, expected: str | None) -> None:
        engine = self.world.engine
        if isinstance(result, Failure):
            if self.workload.schedulable:
                raise Unplaced(f"{info.key} was not scheduled: {result.message}")
            engine.queue.done(info.uid)
            engine.queue.delete(info.pod)
            return
        if expected is not None:
            if expected != result.node:
                raise Mismatch(f"{info.key} was placed on {result.node}, but a fresh evaluation chose {expected}")
            self.checked += 1
        self.world.confirm(info, result.node)


def rss_mb() -> float:
    """Return the resident memory of this process in MB, or its peak if the system has no figure."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
