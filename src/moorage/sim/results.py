"""The result of a run, in memory or as a folder.

    summary.json      measures at the end, means and maxima, assertions, problems
    series.csv        one row per sample, one column per measure
    placements.csv    one row per bound pod, then one per pod that is still pending at the end

The tables may also be series.parquet and placements.parquet. Reports and comparisons read the folder, and so
can other programs. Placements are written as they happen, so that a million of them take no memory.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from moorage.api.errors import MoorageError
from moorage.sim.tables import MEASURE, SECONDS, TEXT, ResultTable, TableFormat, read_table
from moorage.sim.tally import PlacedPod

SUMMARY, SERIES, PLACEMENTS = "summary.json", "series", "placements"
PLACED = dict(zip(PlacedPod._fields, (SECONDS, TEXT, TEXT, SECONDS, TEXT), strict=True))
"""Columns of the placements."""


@dataclass(slots=True)
class RunResult:
    """The result of one run."""

    name: str
    """The name of the configuration."""
    seed: int
    measures: dict[str, float]
    """Measures at the end. Waiting times are over all pods."""
    series: Mapping[str, array[float]]
    virtual_seconds: float = 0.0
    real_seconds: float = 0.0
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    """The scenario's assertions: the assertion, whether it holds, and a sentence."""
    problems: list[str] = field(default_factory=list)
    """Actions that failed, up to a thousand."""
    problem_count: int = 0
    placed: list[PlacedPod] | None = None
    """The placements, or None if they are in the folder."""
    folder: Path | None = None

    def __getitem__(self, measure: str) -> float:
        """Return a measure at the end."""
        if measure not in self.measures:
            raise _unknown(measure, self.measures)
        return self.measures[measure]

    @property
    def holds(self) -> bool:
        """Whether all assertions hold."""
        return all(verdict["holds"] for verdict in self.verdicts)

    @property
    def failed(self) -> list[str]:
        """The failed assertions, one sentence each."""
        return [verdict["text"] for verdict in self.verdicts if not verdict["holds"]]

    def placements(self) -> Iterator[PlacedPod]:
        """Yield the placements in the order of binding, then the pending pods."""
        if self.placed is not None:
            yield from self.placed
        elif self.folder is not None:
            yield from map(PlacedPod._make, read_table(self.folder, PLACEMENTS, PLACED)[1])

    def nodes(self) -> dict[str, str]:
        """Return pod → the node to which it was last bound, or an empty string if it is pending."""
        return {placed.pod: placed.node for placed in self.placements()}

    def mean(self, measure: str) -> float:
        """Return the mean over all samples of a measure."""
        return float(np.nanmean(self._column(measure)))

    def maximum(self, measure: str) -> float:
        """Return the maximum over all samples of a measure."""
        return float(np.nanmax(self._column(measure)))

    def _column(self, measure: str) -> array[float]:
        if measure not in self.series:
            raise _unknown(measure, self.series)
        column = self.series[measure]
        # The only value may have been in a sample that was dropped.
        return array("d", [0.0]) if all(map(isnan, column)) else column

    def summary(self) -> dict[str, Any]:
        """Return the content of summary.json."""
        sampled = [name for name in self.series if name != "time"]
        return {
            "name": self.name,
            "seed": self.seed,
            "virtualSeconds": self.virtual_seconds,
            "realSeconds": round(self.real_seconds, 3),
            "measures": self.measures,
            "means": {name: self.mean(name) for name in sampled},
            "maxima": {name: self.maximum(name) for name in sampled},
            "assertions": self.verdicts,
            "problems": self.problems,
            "problemCount": self.problem_count,
        }

    def write(self, folder: Path, form: TableFormat = TableFormat.CSV) -> None:
        """Write the result to a folder. Placements that are already there stay."""
        folder.mkdir(parents=True, exist_ok=True)
        with ResultTable(folder, SERIES, dict.fromkeys(self.series, MEASURE), form) as samples:
            for sample in zip(*self.series.values(), strict=True):
                samples.add(sample)
        if self.placed is not None:
            with ResultTable(folder, PLACEMENTS, PLACED, form) as placements:
                for placed in self.placed:
                    placements.add(placed)
        (folder / SUMMARY).write_text(json.dumps(self.summary(), indent=2) + "\n")
        self.folder = folder


def _unknown(measure: str, known: Iterable[str]) -> KeyError:
    return KeyError(f"there is no measure {measure!r}; known measures are {', '.join(known)}")


def read_result(folder: Path) -> RunResult:
    """Read a result that `write` has written."""
    try:
        summary = json.loads((folder / SUMMARY).read_text())
        names, samples = read_table(folder, SERIES, {})
        rows = list(samples)
        columns = zip(*rows, strict=True) if rows else ([] for _ in names)
        series = {name: array("d", column) for name, column in zip(names, columns, strict=True)}
        return RunResult(
            name=summary["name"],
            seed=summary["seed"],
            measures=summary["measures"],
            series=series,
            virtual_seconds=summary["virtualSeconds"],
            real_seconds=summary["realSeconds"],
            verdicts=summary["assertions"],
            problems=summary["problems"],
            problem_count=summary["problemCount"],
            folder=folder,
        )
    except RecursionError as error:
        raise MoorageError(f"{folder / SUMMARY} is nested too deeply for the result of a simulation") from error
    except KeyError as error:
        raise MoorageError(f"{folder / SUMMARY} is not the result of a simulation: it has no {error}") from error
    except (OSError, ValueError, TypeError) as error:
        raise MoorageError(f"{folder} does not contain the result of a simulation: {error}") from error
