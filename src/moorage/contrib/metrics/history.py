"""The samples of the last minutes in columns of equal order, and functions over a window of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from moorage.api.meta import Record
from moorage.api.problems import Problem, child, invalid, unsupported
from moorage.framework.nodes import FloatArray

LATEST_VALUE, AVERAGE, PERCENTILE, DEVIATION = "Latest", "Average", "Percentile", "Deviation"
FUNCTIONS = (LATEST_VALUE, AVERAGE, PERCENTILE)
"""The functions that a user can choose; a deviation is not a usage."""


class Window(Record):
    """How the samples of a period are combined into one value."""

    function: str = LATEST_VALUE
    seconds: float = 300.0
    """For all but Latest."""
    percentile: float = 95.0
    """For Percentile: the smallest value that this percentage of the samples does not exceed."""

    def validate(self, path: str) -> Iterator[Problem]:
        if self.function not in FUNCTIONS:
            yield unsupported(child(path, "function"), self.function, FUNCTIONS)
        if not 1 <= self.seconds <= 86400:
            yield invalid(child(path, "seconds"), self.seconds, "must be from 1 to 86400")
        if not 0 < self.percentile <= 100:
            yield invalid(child(path, "percentile"), self.percentile, "must be above 0 and at most 100")


LATEST = Window()


@dataclass(frozen=True, slots=True)
class _Tick:
    time: float
    columns: Mapping[str, FloatArray]


class UsageHistory:
    """Ticks, oldest first; entry `i` of every column belongs to `names[i]`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._ticks: deque[_Tick] = deque()

    def add(self, time: float, names: list[str], columns: Mapping[str, FloatArray], keep: float) -> None:
        """Add a tick of these nodes; forget other nodes and ticks older than `keep` seconds."""
        if names != self.names:
            self._realign(names)
        self._ticks.append(_Tick(time, columns))
        while self._ticks[0].time < time - keep:
            self._ticks.popleft()

    def _realign(self, names: list[str]) -> None:
        known = {name: index for index, name in enumerate(self.names)}
        old = np.array([known.get(name, -1) for name in names], dtype=np.int64)
        self._ticks = deque(
            _Tick(tick.time, {key: np.append(column, np.nan)[old] for key, column in tick.columns.items()})
            for tick in self._ticks
        )
        self.names = names

    def has(self, measure: str) -> bool:
        """Return whether any tick has this measure."""
        return any(measure in tick.columns for tick in self._ticks)

    def value(self, measure: str, window: Window = LATEST) -> FloatArray:
        """Return one value per node; NaN if there is none."""
        rows = self._rows(measure, window)
        if not rows:
            return np.full(len(self.names), np.nan)
        if window.function == LATEST_VALUE:
            return rows[-1]
        samples = np.stack(rows)
        if window.function == PERCENTILE:
            return _percentile(samples, window.percentile)
        return _deviation(samples) if window.function == DEVIATION else _average(samples)

    def _rows(self, measure: str, window: Window) -> list[FloatArray]:
        if not self._ticks:
            return []
        since = -np.inf if window.function == LATEST_VALUE else self._ticks[-1].time - window.seconds
        return [tick.columns[measure] for tick in self._ticks if tick.time >= since and measure in tick.columns]

    def as_of(self, measure: str, times: FloatArray) -> FloatArray:
        """Return the newest value of each node that is not later than its time in `times`, or else the oldest value."""
        found: FloatArray = np.full(len(self.names), np.nan)
        for tick in self._ticks:
            if measure in tick.columns:
                column = tick.columns[measure]
                found = np.where((tick.time <= times) & ~np.isnan(column) | np.isnan(found), column, found)
        return found


def _average(samples: FloatArray) -> FloatArray:
    known = ~np.isnan(samples)
    counts = known.sum(axis=0)
    sums: FloatArray = np.where(known, samples, 0.0).sum(axis=0)
    found: FloatArray = np.divide(sums, counts, out=np.full(samples.shape[1], np.nan), where=counts > 0)
    return found


def _deviation(samples: FloatArray) -> FloatArray:
    found: FloatArray = np.sqrt(_average((samples - _average(samples)) ** 2))
    return found


def _percentile(samples: FloatArray, percent: float) -> FloatArray:
    ordered = np.sort(samples, axis=0)  # what is not known comes last
    counts = (~np.isnan(samples)).sum(axis=0)
    ranks = np.maximum(np.ceil(counts * percent / 100).astype(np.int64) - 1, 0)
    found: FloatArray = ordered[ranks, np.arange(samples.shape[1])]
    return found
