"""Prints how much GPU is in use when a load has arrived, both as per cent of all GPU, from results of
`moorage simulate` with openb.yaml.

python curves.py RESULTS [--trace default] [--record results.csv]
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moorage.sim.results import SUMMARY, RunResult, read_result

CAPACITY = 6_212_000
"""Milli of all cards of openb_node_list_gpu_node.csv.gz."""
RECORDED = (50, 60, 70, *range(80, 131))
"""Loads, in per cent of all GPU."""
PRINTED = (50, 80, 90, 100, 110, 120, 130)


class Measures(NamedTuple):
    """Per cent."""

    in_use: float
    """Of all GPU."""
    fragmented: float
    """Of all GPU."""
    fragmented_of_idle: float


class Curve:
    """What was measured, by whole per cent of load."""

    def __init__(self, result: RunResult) -> None:
        self.policy, self.seed = result.name, result.seed
        self.pods, self.failed = int(result["arrived"]), int(result["deleted"])
        self._events: dict[int, list[Measures]] = {}
        series = result.series
        columns = (series[name][: self.pods] for name in ("gpu.arrived", "gpu.used", "gpu.fragmented"))
        for arrived, used, fragmented in zip(*columns, strict=True):
            ratio = round(100 * fragmented / (CAPACITY - used), 2)
            found = Measures(round(100 * used / CAPACITY, 2), 100 * fragmented / CAPACITY, ratio)
            self._events.setdefault(round(100 * arrived / CAPACITY), []).append(found)

    def at(self, load: int) -> Measures:
        """The mean of all events at that load."""
        events = self._events.get(load) or self._events[load - 1] + self._events[load + 1]
        return Measures(*(round(float(np.mean(values)), 2) for values in zip(*events, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Curves of results on the trace openb.")
    parser.add_argument("results", type=Path, help="the folder that `moorage simulate --output-dir` has made")
    parser.add_argument("--trace", default="default")
    parser.add_argument("--record", type=Path, help="append every run to this file")
    options = parser.parse_args()
    print("policy         seed  pods failed", *(f"{load:6}" for load in PRINTED))
    for summary in sorted(options.results.rglob(SUMMARY)):
        curve = Curve(read_result(summary.parent))
        figures = (f"{curve.at(load).in_use:6.2f}" for load in PRINTED)
        print(f"{curve.policy:14} {curve.seed:4} {curve.pods:5} {curve.failed:6}", *figures)
        if options.record:
            record(options.record, options.trace, curve)


def record(path: Path, trace: str, curve: Curve) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if is_new:
            rows.writerow(["trace", "policy", "seed", "pods", "failed", *RECORDED])
        figures = (f"{curve.at(load).in_use:.2f}" for load in RECORDED)
        rows.writerow([trace, curve.policy, curve.seed, curve.pods, curve.failed, *figures])


if __name__ == "__main__":
    main()
