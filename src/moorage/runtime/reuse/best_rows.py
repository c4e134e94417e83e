"""The best rows of a baseline by total, so that the next choice does not check all of them.

The heap holds the best few hundred rows. An entry is outdated once the total of its row has changed, and is dropped
when it reaches the top; a row whose new total is among the best is pushed again. An empty heap is refilled from all
rows."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace

import numpy as np

from moorage.framework.nodes import IntArray

_ROWS = 256
_LONGEST = 4 * _ROWS
"""Entries that may pile up, most of them outdated, before the heap is made anew."""
_BEYOND = 1 << 62
"""More than any total."""
_NOTHING = (-_BEYOND, 0)
"""Before every entry."""
_EVERYTHING = (0, _BEYOND)
"""After every entry of a row that fits: their totals are not negative."""


class BestRows:
    """Positions in snapshot order by falling total; the first among equals comes first."""

    __slots__ = ("_heap", "_is_forgotten", "_last")

    def __init__(self) -> None:
        self._is_forgotten = False
        """Whether rows have changed and the heap does not know it."""
        self._heap: list[tuple[int, int]] = []
        """(total, negated; position). The first one is the best row if that is still its total."""
        self._last = _NOTHING
        """All rows up to this entry are in the heap."""

    def best(self, totals: IntArray) -> int:
        """Return the position of the highest total; at least one total is not negative."""
        heap = self._heap
        while heap:
            negated, position = heap[0]
            if totals[position] == -negated:
                return position
            heappop(heap)
        if self._is_forgotten:  # one look at all rows is cheaper than a heap that is used once
            self._is_forgotten = False
            return int(totals.argmax())
        self._fill(totals)
        return self._heap[0][1]

    def changed(self, position: int, total: int) -> None:
        """Record the new total of a row."""
        heap, entry = self._heap, (-total, position)
        if heap and heap[0][1] == position:  # the one that was taken: its entry is outdated
            if entry <= self._last:
                heapreplace(heap, entry)
            else:
                heappop(heap)
        elif entry <= self._last:
            heappush(heap, entry)
            if len(heap) > _LONGEST:
                self._heap, self._last = [], _NOTHING

    def forget(self) -> None:
        """Discard the heap, because many rows have changed."""
        self._heap, self._last, self._is_forgotten = [], _NOTHING, True

    def _fill(self, totals: IntArray) -> None:
        best = _best(totals)
        self._heap = list(zip((-totals[best]).tolist(), best.tolist(), strict=True))
        self._last = self._heap[-1] if len(best) == _ROWS else _EVERYTHING


def _best(totals: IntArray) -> IntArray:
    """Return the positions of the best rows, in order, without rows that do not fit."""
    floor = 0
    if len(totals) > _ROWS:
        floor = max(int(np.partition(totals, -_ROWS)[-_ROWS]), 0)
    near = np.flatnonzero(totals >= floor)
    found: IntArray = near[np.argsort(-totals[near], kind="stable")][:_ROWS]
    return found
