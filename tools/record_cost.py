"""Measure the cost of decision records: attempts of one workload with and without them, in one process.

    python tools/record_cost.py [WORKLOAD ...]     # default: plain, where every attempt is cold

Blocks of both kinds alternate, so that both see the same machine. Compares medians of CPU time.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable

from moorage.bench.measuring import Measurement, production_gc
from moorage.bench.workloads import WORKLOADS
from moorage.runtime.record import DecisionRecord
from moorage.scheduler import cycle

NODES, PODS = 5000, 50_000
BLOCK, BLOCKS = 10, 300


async def measure(name: str) -> tuple[float, float]:
    """Return the microseconds of an attempt with records, and without."""
    workload = next(workload for workload in WORKLOADS if workload.name == name)
    measurement = Measurement(workload, NODES, PODS, 0)
    measurement.timer = time.thread_time_ns
    ring, make = measurement.world.engine.records, cycle.make_record
    nothing = DecisionRecord("", "", "", 0, 0.0)

    def switch(on: bool) -> None:
        make_record: Callable[..., DecisionRecord] = make if on else lambda *args: nothing
        cycle.make_record = make_record
        if on:
            vars(ring).pop("add", None)
        else:
            ring.add = lambda record: None  # type: ignore[method-assign]

    times: dict[bool, list[int]] = {True: [], False: []}
    with production_gc():
        for _ in range(50):
            await measurement._schedule_one()
        for block in range(2 * BLOCKS):
            on = block % 2 == 0
            switch(on)
            times[on] += [await measurement._schedule_one() for _ in range(BLOCK)]
    switch(True)
    return statistics.median(times[True]) / 1e3, statistics.median(times[False]) / 1e3


def main() -> None:
    for name in sys.argv[1:] or ["plain"]:
        recorded, bare = asyncio.run(measure(name))
        share = 100 * (recorded - bare) / recorded
        print(f"{name}: {recorded:.1f} us with records, {bare:.1f} us without: {share:.1f} % of an attempt")


if __name__ == "__main__":
    main()
