"""The best rows of a baseline by total, so that the next choice and its record do not check all of them.

The list holds the best few hundred rows in order, and follows every change of a total. A list that has become too short
is made anew from all rows."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

import numpy as np

from moorage.framework.nodes import IntArray
from moorage.runtime.top_scores import RANKED_ROW_BYTES, TOP_NODES, KeptTop, RankedRow, ScoreLayout

_ROWS = 256
_LONGEST = 4 * _ROWS
"""Entries that may pile up before the list is cut to the best ones again."""
_BEYOND = 1 << 62
"""More than any total."""
_TEN_BYTES = 200
"""Bytes of a tuple of ten and the object that holds it."""
_NOTHING: RankedRow = (-_BEYOND, 0)
"""Before every entry."""
_EVERYTHING: RankedRow = (0, _BEYOND)
"""After every entry of a row that fits: their totals are not negative."""


class BestRows:
    """Rows by falling total; the first in snapshot order among equals comes first."""

    __slots__ = ("_changes", "_is_forgotten", "_last", "_ranked")

    def __init__(self) -> None:
        self._is_forgotten = False
        """Whether rows have changed and the list does not know it."""
        self._ranked: list[RankedRow] = []
        """In order."""
        self._last = _NOTHING
        """The list holds exactly the rows up to this total, negated, and position."""
        self._changes = TOP_NODES
        """The rows among the best ten that may differ from those of the last record, at most."""

    def best(self, totals: IntArray, rows: IntArray | None, varying: Sequence[IntArray]) -> int:
        """Return the position of the highest total; at least one total is not negative. `totals` are in snapshot order.
        `rows` are the rows in that order, None if both are the same; `varying` are the scores of plugins by row."""
        ranked = self._ranked
        if len(ranked) >= TOP_NODES or (ranked and self._last is _EVERYTHING):
            position = ranked[0][1]
            if totals[position] == -ranked[0][0]:
                return position
            self.forget()  # a row has changed without a call of `changed`
        if self._is_forgotten:  # one look at all rows is cheaper than a list that is used once
            self._is_forgotten = False
            return int(totals.argmax())
        self._fill(totals, rows, varying)
        return self._ranked[0][1]

    def best_ten(self, layout: ScoreLayout) -> KeptTop | None:
        """Return the ten best rows, or all that are feasible. None if the list does not know them; all rows must be
        checked then."""
        ranked = self._ranked
        if len(ranked) < TOP_NODES and self._last is not _EVERYTHING:
            return None
        changes, self._changes = self._changes, 0
        # The other entries are those of the last record.
        return KeptTop(layout, tuple(ranked[:TOP_NODES]), _TEN_BYTES + min(changes, TOP_NODES) * RANKED_ROW_BYTES)

    def changed(self, position: int, row: int, total: int, scores: Iterable[int], totals: IntArray) -> None:
        """Record the new total of a row, which is not in `totals` yet, and its scores."""
        ranked, last = self._ranked, self._last
        if ranked:
            if ranked[0][1] == position:  # the one that was taken last
                del ranked[0]
            else:
                old = (-int(totals[position]), position)
                if old <= last:
                    index = bisect_left(ranked, old)
                    if index == len(ranked) or ranked[index][1] != position:
                        self.forget()
                        return
                    del ranked[index]
            self._changes += 1
        if (-total, position) <= last:
            insort(ranked, (-total, position, row, *scores))
            if len(ranked) > _LONGEST:
                del ranked[_ROWS:]
                self._last = ranked[-1][:2]

    def forget(self) -> None:
        """Discard the list, because many rows or the plugins that score have changed."""
        self._ranked, self._last, self._is_forgotten = [], _NOTHING, True

    def _fill(self, totals: IntArray, order: IntArray | None, varying: Sequence[IntArray]) -> None:
        best = _best(totals)
        rows = best if order is None else order[best]
        positions = best.tolist()
        numbers = positions if order is None else rows.tolist()
        scores = [raw[rows].tolist() for raw in varying]
        self._ranked = list(zip((-totals[best]).tolist(), positions, numbers, *scores, strict=True))
        self._last = self._ranked[-1][:2] if len(best) == _ROWS else _EVERYTHING
        self._changes = TOP_NODES


def _best(totals: IntArray) -> IntArray:
    """Return the positions of the best rows, in order, without rows that do not fit."""
    floor = 0
    if len(totals) > _ROWS:
        floor = max(int(np.partition(totals, -_ROWS)[-_ROWS]), 0)
    near = np.flatnonzero(totals >= floor)
    found: IntArray = near[np.argsort(-totals[near], kind="stable")][:_ROWS]
    return found
