"""What differs between configurations that ran the same workload: measures, and pods on other nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from moorage.sim.report import report
from moorage.sim.results import Result
from moorage.sim.tables import NUMBER, TEXT, Table, TableFormat

DIFFERENCES, REPORT = "differences", "report.html"
OVER_TIME = ("running", "pending", "utilisation.", "largestPod", "zoneSkew")
"""Beginnings of the names of measures whose mean over the run says more than their last value."""


class Different(NamedTuple):
    """A pod that two configurations have put on different nodes."""

    seed: int
    pod: str
    first: str
    """Its node under the first configuration; empty for one that was pending."""
    configuration: str
    node: str
    decided_by: str
    """The plugin that decided for `node`, where that is on record."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of one configuration, over its seeds."""

    value: float
    spread: float
    """The deviation over seeds; 0 with one."""
    change: float | None
    """Compared with the first configuration; None for that one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Results of several configurations, the first being what the others are compared with."""

    names: tuple[str, ...]
    results: dict[str, list[Result]]
    """Configuration → one result for each seed, in the same order for all."""

    def figures(self) -> Iterator[tuple[str, list[Figure]]]:
        """Measure → its figures, one for each configuration."""
        for label, values in self._rows():
            first = mean(values[0])
            yield (
                label,
                [
                    Figure(
                        mean(found),
                        stdev(found) if len(found) > 1 else 0.0,
                        mean(found) - first if place else None,
                    )
                    for place, found in enumerate(values)
                ],
            )

    def _rows(self) -> Iterator[tuple[str, list[list[float]]]]:
        runs = [self.results[name] for name in self.names]
        everywhere = [run for found in runs for run in found]
        known = dict.fromkeys(name for run in everywhere for name in run.measures)
        for name in known:
            yield name, [[run.measures.get(name, 0.0) for run in found] for found in runs]
            if name.startswith(OVER_TIME) and not name.endswith((".min", ".max")):
                yield f"{name} (mean)", [[_mean(run, name) for run in found] for found in runs]

    def differences(self) -> Iterator[Different]:
        """Pods that were bound elsewhere than under the first configuration, or not at all."""
        for first, *others in zip(*(self.results[name] for name in self.names), strict=True):
            expected = first.nodes()
            for other in others:
                seen = set()
                for placed in _last(other):
                    seen.add(placed.pod)
                    if (before := expected.get(placed.pod, "")) != placed.node:
                        yield Different(
                            first.seed, placed.pod, before, other.name, placed.node, placed.decided_by
                        )
                for pod, node in expected.items():
                    if node and pod not in seen:
                        yield Different(first.seed, pod, node, other.name, "", "")

    def write_differences(self, folder: Path, form: TableFormat = TableFormat.CSV) -> None:
        """differences.csv."""
        columns = {name: NUMBER if name == "seed" else TEXT for name in Different._fields}
        with Table(folder, DIFFERENCES, columns, form) as table:
            for different in self.differences():
                table.add(different)

    def table(self) -> Iterator[list[str]]:
        """As people read it: a heading, then a row for every measure."""
        yield [
            "measure",
            *(cell for place, n in enumerate(self.names) for cell in ([n, "change"] if place else [n])),
        ]
        for label, figures in self.figures():
            cells = [label]
            for figure in figures:
                spread = f" ± {figure.spread:.4g}" if figure.spread else ""
                cells.append(_number(figure.value) + spread)
                if figure.change is not None:
                    cells.append(f"{figure.change:+.4g}" if figure.change else "=")
            yield cells

    def write(self, folder: Path, title: str, form: TableFormat = TableFormat.CSV) -> None:
        """Beside the results: the report, and with several configurations differences.csv."""
        if len(self.names) > 1:
            self.write_differences(folder, form)
        runs = [result for name in self.names for result in self.results[name]]
        (folder / REPORT).write_text(report(title, runs, self.table()), encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            label: {
                name: {"value": figure.value, "stddev": figure.spread, "change": figure.change}
                for name, figure in zip(self.names, figures, strict=True)
            }
            for label, figures in self.figures()
        }


def compare(results: Sequence[Result]) -> Comparison:
    """Results of all configurations with all seeds."""
    by_name: dict[str, list[Result]] = {}
    for result in results:
        by_name.setdefault(result.name, []).append(result)
    return Comparison(tuple(by_name), by_name)


def _last(result: Result) -> Iterator[Any]:
    """The last placement of every pod."""
    yield from {placed.pod: placed for placed in result.placements()}.values()


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.4g}"


def _mean(run: Result, name: str) -> float:
    return run.mean(name) if name in run.series else 0.0
