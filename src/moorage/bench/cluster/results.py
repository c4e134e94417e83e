"""Results: one line of JSON per measurement, and what the rounds say together."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from typing import Any

import msgspec

from moorage.api.errors import MoorageError
from moorage.bench.cluster.schedulers import CEILING, MOORAGE, SchedulerCommand
from moorage.bench.cluster.workloads import ClusterWorkload

COVERAGE = 0.95
FIGURES = ("pods_per_second", "start_seconds", "cpu_ms_per_pod", "peak_mb")
Key = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class ClusterResult:
    """One workload, scheduled once by one scheduler."""

    workload: str
    digest: str
    """The hash of the steps of the workload, with its size."""
    scheduler: str
    identity: str
    round: int
    nodes: int
    pods: int
    pods_per_second: float
    """From the first to the last bind on the watch."""
    start_seconds: float
    """From the start of the process to the first bind."""
    cpu_ms_per_pod: float
    """From the first to the last bind."""
    cpu_seconds: float
    """From the start of the process to the last bind."""
    peak_mb: float

    @property
    def key(self) -> Key:
        return self.workload, self.digest, self.scheduler, self.identity, self.round


def key_of(workload: ClusterWorkload, scheduler: SchedulerCommand, number: int) -> Key:
    """Return the key of a measurement that is still to be made."""
    return workload.name, workload.digest, scheduler.name, scheduler.identity, number


class ResultsFile:
    """The measurements of this run and of those before it in the same folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.jsonl"
        self.results: dict[Key, ClusterResult] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            content = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise MoorageError(f"{error.filename}: {error.strerror}; choose another --output-dir.") from error
        complete, _, rest = content.rpartition(b"\n")
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                result = msgspec.json.decode(line, type=ClusterResult)
            except msgspec.DecodeError as error:
                raise MoorageError(f"{self.path}, line {number} is not a result ({error}); remove the line.") from error
            self.results[result.key] = result
        if rest:  # a run was killed while it wrote
            os.truncate(self.path, len(content) - len(rest))

    def add(self, result: ClusterResult) -> None:
        """Write a result, so that a run that is killed later does not lose it."""
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.results[result.key] = result

    def rounds(self, workload: ClusterWorkload, scheduler: SchedulerCommand) -> dict[int, ClusterResult]:
        """Return the results of a scheduler by round."""
        wanted = key_of(workload, scheduler, 0)[:-1]
        return {result.round: result for key, result in self.results.items() if key[:-1] == wanted}


@dataclass(frozen=True)
class Estimate:
    """A median with an interval."""

    median: float
    low: float
    high: float
    is_range: bool
    """Whether there are too few values for the interval, so that it holds the lowest and the highest."""

    def __str__(self) -> str:
        digits = 0 if self.median >= 100 else 1 if self.median >= 10 else 2
        return f"{self.median:.{digits}f} [{self.low:.{digits}f}-{self.high:.{digits}f}]"


def estimate(values: Sequence[float]) -> Estimate:
    """Return the median with the narrowest interval of ranks that covers it with 95 %.

    A value is below the true median with probability 1/2, whatever the distribution; so the ranks follow from the
    binomial distribution. Fewer than six values cannot reach 95 %.
    """
    ordered, count = sorted(values), len(values)
    skipped, outside = 0, 0.0
    while True:
        outside += 2 * comb(count, skipped) / 2**count
        if outside > 1 - COVERAGE:
            break
        skipped += 1
    cut = max(skipped - 1, 0)
    return Estimate(statistics.median(ordered), ordered[cut], ordered[count - 1 - cut], skipped == 0)


@dataclass(frozen=True)
class SummaryRow:
    """One scheduler on one workload, over all rounds."""

    workload: str
    nodes: int
    running: int
    pods: int
    scheduler: str
    rounds: int
    figures: dict[str, Estimate]
    """FIGURES → their medians."""
    ceiling_share: Estimate | None
    moorage_times: dict[str, Estimate]
    """FIGURES → those of Moorage divided by those of this scheduler; only for another scheduler."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarize(
    file: ResultsFile, workloads: Iterable[ClusterWorkload], schedulers: Iterable[SchedulerCommand]
) -> list[SummaryRow]:
    """Return a row for every scheduler that has results."""
    rows = []
    for workload in workloads:
        ceiling, ours = file.rounds(workload, CEILING), file.rounds(workload, MOORAGE)
        for scheduler in schedulers:
            found = file.rounds(workload, scheduler)
            figures = {
                name: estimate([getattr(result, name) for result in found.values()]) for name in FIGURES if found
            }
            share = None if scheduler == CEILING else _ratio(found, ceiling, FIGURES[0])
            others = {} if scheduler in (CEILING, MOORAGE) else {name: _ratio(ours, found, name) for name in FIGURES}
            times = {name: ratio for name, ratio in others.items() if ratio}
            sizes = workload.nodes, workload.running, workload.measured
            if found:
                rows.append(SummaryRow(workload.name, *sizes, scheduler.name, len(found), figures, share, times))
    return rows


def _ratio(above: dict[int, ClusterResult], below: dict[int, ClusterResult], name: str) -> Estimate | None:
    """Divide within each round, because the speed of a machine changes between rounds."""
    pairs = [(getattr(above[number], name), getattr(below[number], name)) for number in above if number in below]
    quotients = [a / b for a, b in pairs if b]
    return estimate(quotients) if quotients else None
