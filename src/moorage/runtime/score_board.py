"""The scores of one attempt: a column per plugin, and the totals by row."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.framework._contract import writes
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import WholeTableScorePlugin
from moorage.framework.nodes import BoolArray, EveryRow, IntArray, Nodes
from moorage.framework.optional import VectorScorePlugin
from moorage.framework.points import ScorePlugin
from moorage.framework.status import Normalization, Status
from moorage.runtime import lifting
from moorage.runtime.top_scores import TOP_NODES, KeptColumn, TopScores

Scores = IntArray | int
"""One score per row, or one for all."""

NEVER = -(2**40)
"""The total of a row that is not feasible: scores that are added to it leave it below zero."""


ScoreInto = Callable[[CycleState, Pod, Nodes, IntArray], Status | int | None]
"""Writes a score per node into the array, or returns one for all."""


class ScoreStep:
    """One score plugin of a profile, with its weight and the functions that compute and normalise its scores; what does
    not change between pods is looked up once."""

    __slots__ = (
        "is_summed",
        "name",
        "normalization",
        "normalize_nodes",
        "normalize_rows",
        "plugin",
        "score_into",
        "shared",
        "weight",
        "whole_table",
    )

    def __init__(self, plugin: ScorePlugin, weight: int) -> None:
        self.plugin = plugin
        self.name: str = plugin.name
        self.weight = weight
        self.shared: KeptColumn = self.name, weight, 0, 0
        """What records keep where all rows have one score, as it was the last time: most often it is that."""
        self.whole_table = isinstance(plugin, WholeTableScorePlugin)
        """Whether it is asked about every row, and trusted with the range of its scores."""
        self.normalization: Normalization | None = plugin.normalization
        normalizes, self.normalize_nodes = _normalizer(plugin)
        self.normalize_rows = (
            plugin.normalize_rows
            if isinstance(plugin, WholeTableScorePlugin) and writes(plugin, "normalize_rows")
            else None
        )
        self.is_summed = self.normalization is None and not normalizes
        """Whether a raw score counts as it is, so that rows can be added up one by one."""
        self.score_into: ScoreInto = (
            plugin.score_into
            if isinstance(plugin, WholeTableScorePlugin)
            else functools.partial(lifting.fill_scores, _scorer(plugin))
        )


def _scorer(plugin: ScorePlugin) -> Callable[[CycleState, Pod, Nodes], Any]:
    if isinstance(plugin, VectorScorePlugin):
        return plugin.score_nodes
    return functools.partial(lifting.lift_score, plugin)


def _normalizer(plugin: ScorePlugin) -> tuple[bool, Callable[[CycleState, Pod, IntArray, Nodes], Any]]:
    """Return whether the plugin normalises its scores, and its vector function for that."""
    if isinstance(plugin, VectorScorePlugin) and writes(plugin, "normalize_nodes"):
        return True, plugin.normalize_nodes
    return writes(plugin, "normalize_scores"), functools.partial(lifting.lift_normalize, plugin)


class PluginColumn:
    """One plugin's scores."""

    __slots__ = ("normalized", "raw", "step")

    def __init__(self, step: ScoreStep, raw: Scores, normalized: Scores) -> None:
        self.step = step
        self.raw = raw
        self.normalized = normalized

    def of(self, rows: IntArray) -> KeptColumn:
        """Return a few rows, for the record."""
        raw, normalized, step = self.raw, self.normalized, self.step
        if type(raw) is int and type(normalized) is int:
            shared = step.shared
            if shared[2] != raw or shared[3] != normalized:
                shared = step.shared = step.name, step.weight, raw, normalized
            return shared
        few = raw if isinstance(raw, int) else raw[rows].tobytes()
        if normalized is raw:
            return step.name, step.weight, few, few
        counted = normalized if isinstance(normalized, int) else normalized[rows].tobytes()
        return step.name, step.weight, few, counted

    def weighted(self, row: int) -> int:
        score = self.normalized if isinstance(self.normalized, int) else int(self.normalized[row])
        return self.step.weight * score


EXTENDER_SCORE_FACTOR = 10
"""Extenders score up to 10, plugins up to 100."""


@dataclass(frozen=True, slots=True)
class ExtenderColumn:
    """One extender's scores."""

    name: str
    weight: int
    raw: IntArray

    def of(self, rows: IntArray) -> KeptColumn:
        few = self.raw[rows]
        return self.name, self.weight, few.tobytes(), (few * EXTENDER_SCORE_FACTOR).tobytes()


@dataclass(slots=True)
class ScoreBoard:
    """All scores of an attempt, by row."""

    every: EveryRow
    feasible: BoolArray
    totals: IntArray
    columns: list[PluginColumn] = field(default_factory=list)
    extended: list[ExtenderColumn] = field(default_factory=list)
    """Apart from `columns`, which a baseline may keep."""
    tie_break: IntArray | None = None
    """Where extenders scored: a random number per row that decides between equal totals."""
    is_masked: bool = False
    """Whether `totals` is below zero already in rows that are not feasible."""

    def mask(self, known: BoolArray, *, all_known: bool) -> None:
        """Mask infeasible rows. The totals of a baseline are below zero for nodes that it rejects (`known`); this
        attempt may have rejected a few more, unless `all_known`."""
        if not all_known:
            self.totals[(known > self.feasible).nonzero()[0]] = NEVER
        self.is_masked = True

    def masked(self) -> IntArray:
        """Return the totals, below zero in rows that are not feasible; totals of feasible rows never are."""
        return self.totals if self.is_masked else np.where(self.feasible, self.totals, NEVER)

    def ranking(self, ranker: Ranker) -> IntArray:
        """Return the best rows, the winner first: highest total, and in snapshot order among equals."""
        if self.tie_break is None:
            return ranker.rank(self.masked(), self.every, TOP_NODES)
        return rank_by_ties(self.masked(), self.every.listed.rows, TOP_NODES, self.tie_break)

    def top(self, ranking: IntArray) -> TopScores:
        """Return these rows with their scores, as bytes: keeping many small arrays would fragment the C heap."""
        columns = [column.of(ranking) for column in self.columns]
        if self.extended:
            columns += [column.of(ranking) for column in self.extended]
        return TopScores(ranking.tobytes(), self.totals[ranking].tobytes(), columns)


class Ranker:
    """Finds the best rows. It remembers how far apart they were last time: with that guess only a few rows are sorted,
    instead of counting all."""

    def __init__(self) -> None:
        self._gap = 1
        """Points between the best row and the last one that is considered."""
        self._window = _MIN_WINDOW
        """The number of rows in which the best ten may be found, if all have the highest total."""
        self._level: IntArray = np.zeros((), dtype=np.int64)
        """The total that rows are compared with: an array, because numpy takes twice as long for a Python number."""
        self._first: IntArray = np.zeros((), dtype=np.int64)

    def rank(self, masked: IntArray, every: EveryRow, count: int) -> IntArray:
        """Return up to `count` rows in order of their totals, equals in snapshot order, without negative ones."""
        if not len(masked):
            return NO_ROWS
        best = int(masked.argmax())
        return self.rank_from(best, masked, every, count) if masked[best] >= 0 else NO_ROWS

    def rank_from(self, first: int, masked: IntArray, every: EveryRow, count: int) -> IntArray:
        """Do the same where a row with the highest total is known; in snapshot order, it is the first of these."""
        if every.in_order:
            equal = self.equals(first, masked.item(first), masked, count)
            if equal is not None:
                return equal
        return self.rank_all(first, masked, every, count)

    def rank_all(self, first: int, masked: IntArray, every: EveryRow, count: int) -> IntArray:
        """Do the same where `equals` does not find them."""
        best = masked.item(first)
        if every.in_order and self._gap <= 1 and best:
            ranked = self._two_levels(first, best, masked, count)
            if ranked is not None:
                return ranked
        near = self._near(masked, best, count)
        totals = masked[near]
        if len(near) > _A_HANDFUL:
            near, totals = _fewer(near, totals, every, count)
        if every.in_order:
            order = (-totals).argsort(kind="stable")[:count]
        else:
            order = np.lexsort((every.positions[near], -totals))[:count]
        nearest: IntArray = near[order]
        if every.in_order and len(nearest) == count and totals[order[-1]] == best:
            self._window = min(3 * (int(nearest[-1]) - first) // 2 + _MIN_WINDOW, _MAX_WINDOW)
        return nearest

    def equals(self, first: int, best: int, masked: IntArray, count: int) -> IntArray | None:
        """Return the first `count` rows with the highest total, where rows are in snapshot order. None if they are not
        near each other, or there are fewer."""
        # Most often hundreds of nodes share the highest total. This is done for nearly every record, and what counts
        # is the number of calls of numpy.
        window, self._level[()], self._first[()] = self._window, best, first
        equal: IntArray = (masked[first : first + window] == self._level).nonzero()[0]
        found = len(equal)
        if found < count:
            return None
        if found > 8 * count:
            self._window = window // 2
        equal = equal[:count]
        equal += self._first
        return equal

    def _two_levels(self, first: int, best: int, masked: IntArray, count: int) -> IntArray | None:
        """Return the best rows in snapshot order if they have the highest total or one point less. None if others are
        among them, or the latter are not near the beginning."""
        self._level[()], self._first[()] = best, first
        highest: IntArray = (masked[first:] == self._level).nonzero()[0]
        highest += self._first
        missing = count - len(highest)
        if missing <= 0:
            self._window = min(3 * (int(highest[count - 1]) - first) // 2 + _MIN_WINDOW, _MAX_WINDOW)
            return highest[:count]
        self._level[()] = best - 1
        second: IntArray = (masked[:_MAX_WINDOW] == self._level).nonzero()[0]
        return np.concatenate((highest, second[:missing])) if len(second) >= missing else None

    def _near(self, masked: IntArray, best: int, count: int) -> IntArray:
        """Return rows that contain the best ones, in row order: a few, unless thousands of nodes have nearly the same
        total."""
        while True:
            self._level[()] = max(best - self._gap, 0)
            near: IntArray = (masked >= self._level).nonzero()[0]
            if len(near) >= count or self._gap >= best:
                break
            self._gap = 2 * self._gap + 1
        if len(near) > _A_HANDFUL:
            self._gap //= 2  # for the next time
        return near


def _fewer(near: IntArray, totals: IntArray, every: EveryRow, count: int) -> tuple[IntArray, IntArray]:
    """Return those among many rows that can be among the best, with their totals: all above the total of the last of
    the best, and as many with that total as are needed."""
    last = np.partition(totals, -count)[-count]
    above, level = (totals > last).nonzero()[0], (totals == last).nonzero()[0]
    missing = count - len(above)
    if every.in_order:
        level = level[:missing]
    elif len(level) > missing:
        level = level[np.argpartition(every.positions[near[level]], missing - 1)[:missing]]
    some = np.sort(np.concatenate((above, level)))
    return near[some], totals[some]


NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)
_A_HANDFUL = 400
_MIN_WINDOW, _MAX_WINDOW = 32, 1024
"""Rows; in more than that, finding all rows near the best is nearly as fast."""


def rank_by_ties(masked: IntArray, order: IntArray, count: int, tie_break: IntArray) -> IntArray:
    """Return up to `count` of the rows in `order` by their totals, without negative ones; equals by falling
    `tie_break`."""
    ranked = np.lexsort((-tie_break.take(order), -masked.take(order)))[:count]
    best_rows: IntArray = order[ranked]
    return best_rows[masked[best_rows] >= 0]


class Buffers:
    """Arrays of zeros of one length. An array that was taken belongs to the attempt until `reset`, which begins the
    next one; it must not be kept longer."""

    def __init__(self) -> None:
        self._arrays: list[IntArray] = []
        self._taken = 0
        self._length = 0

    def reset(self, length: int) -> None:
        if length != self._length:
            self._arrays.clear()
            self._length = length
        self._taken = 0

    def take_as_is(self) -> IntArray:
        """Return an uninitialised array, for callers that write all of it."""
        if self._taken == len(self._arrays):
            return self.take()
        self._taken += 1
        return self._arrays[self._taken - 1]

    def take(self) -> IntArray:
        if self._taken == len(self._arrays):
            self._arrays.append(np.zeros(self._length, dtype=np.int64))
        else:
            self._arrays[self._taken].fill(0)
        self._taken += 1
        return self._arrays[self._taken - 1]
