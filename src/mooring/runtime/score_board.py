"""The scores of one attempt: a column per plugin, and the totals by row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mooring.framework.nodes import BoolArray, EveryRow, IntArray
from mooring.framework.record import TOP_NODES, ScoreColumn, TopScores
from mooring.runtime.ranking import Ranker, rank
from mooring.runtime.score_steps import ScoreStep

Scores = IntArray | int
"""One score per row, or one for all."""

NEVER = -(2**40)
"""The total of a row that is not feasible: scores that are added to it leave it below zero."""


class Column:
    """One plugin's scores."""

    __slots__ = ("normalized", "raw", "step", "told")

    def __init__(self, step: ScoreStep, raw: Scores, normalized: Scores) -> None:
        self.step = step
        self.raw = raw
        self.normalized = normalized
        self.told: ScoreColumn | None = None
        """What `of` says of any rows, where all have the same score and it was asked before."""

    def of(self, rows: IntArray) -> ScoreColumn:
        """These rows only, for the record."""
        raw, normalized, step = self.raw, self.normalized, self.step
        if type(raw) is int and type(normalized) is int:
            self.told = ScoreColumn(step.name, step.weight, raw, normalized)
            return self.told
        few = raw if isinstance(raw, int) else raw.take(rows)
        if normalized is raw:
            return ScoreColumn(step.name, step.weight, few, few)
        return ScoreColumn(
            step.name, step.weight, few, normalized if isinstance(normalized, int) else normalized.take(rows)
        )

    def weighted(self, row: int) -> int:
        score = self.normalized if isinstance(self.normalized, int) else int(self.normalized[row])
        return self.step.weight * score


@dataclass(slots=True)
class ScoreBoard:
    """All scores of an attempt, by row."""

    every: EveryRow
    feasible: BoolArray
    totals: IntArray
    columns: list[Column] = field(default_factory=list)
    tie_break: IntArray | None = None
    """Where extenders scored: a random number per row that decides between equal totals."""
    is_masked: bool = False
    """Whether `totals` is below zero already in rows that are not feasible."""

    def masked(self) -> IntArray:
        """Totals, below zero in rows that are not feasible; totals of feasible ones never are."""
        return self.totals if self.is_masked else np.where(self.feasible, self.totals, NEVER)

    def ranking(self, ranker: Ranker) -> list[int]:
        """The best rows, the winner first: highest total, among equals the first in snapshot order."""
        if self.tie_break is None:
            return ranker.rank(self.masked(), self.every, TOP_NODES)
        return rank(self.masked(), self.every.listed.rows, TOP_NODES, self.tie_break)

    def margin(self, ranking: list[int]) -> int | None:
        """How far the winner is ahead of the next; None when it is alone."""
        return int(self.totals[ranking[0]] - self.totals[ranking[1]]) if len(ranking) > 1 else None

    def top(self, ranking: list[int]) -> TopScores:
        """The best rows with their scores."""
        rows = np.array(ranking)
        columns = [column.told or column.of(rows) for column in self.columns]
        return TopScores(ranking, self.totals.take(rows), columns)
