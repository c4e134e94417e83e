"""The best rows by total: the winner, and those behind it that records tell of."""

from __future__ import annotations

import numpy as np

from mooring.framework.nodes import EveryRow, IntArray


class Ranker:
    """Finds the best rows. Remembers how far apart they were last time: with that guess a handful of rows is
    sorted instead of all being counted."""

    def __init__(self) -> None:
        self._gap = 16
        """Points between the best row and the last one that is looked at."""

    def rank(self, masked: IntArray, every: EveryRow, count: int) -> list[int]:
        """The same as `rank` in snapshot order."""
        if not len(masked):
            return []
        best = int(masked[masked.argmax()])
        if best < 0:
            return []
        near = self._near(masked, best, count)
        if near is None:
            return rank(masked, every.listed.rows, count)
        totals = masked[near]
        if every.in_order and len(near) > _A_HANDFUL:
            first: list[int] = near[:count].tolist()
            return first
        if every.in_order:
            order = (-totals).argsort(kind="stable")[:count]
        else:
            order = np.lexsort((every.positions[near], -totals))[:count]
        nearest: list[int] = near[order].tolist()
        return nearest

    def _near(self, masked: IntArray, best: int, count: int) -> IntArray | None:
        """A few rows that hold the best ones, in row order; None where the guess does not lead there.
        Thousands of nodes may share the best totals, or few be near the best: the gap is halved or
        doubled."""
        for _ in range(_TRIES):
            near: IntArray = (masked >= max(best - self._gap, 0)).nonzero()[0]
            if len(near) > _A_HANDFUL and self._gap:
                self._gap //= 2
            elif len(near) < count and self._gap < best:
                self._gap = 2 * self._gap + 2
            else:
                return near  # more than a handful only where all of them are equally good
        return None


_A_HANDFUL = 400
_TRIES = 4


def rank(masked: IntArray, order: IntArray, count: int, tie_break: IntArray | None = None) -> list[int]:
    """Up to `count` rows in order of their totals; negative ones are left out. Equals stand in snapshot
    order (the rows of `order`), or by falling `tie_break` where there is one."""
    totals = masked.take(order)
    if tie_break is not None:
        by_tie = np.lexsort((-tie_break.take(order), -totals))[:count]
        return [row for row in order[by_tie].tolist() if masked[row] >= 0]
    if count == 1:
        best = int(np.argmax(totals))
        return [int(order[best])] if totals[best] >= 0 else []
    threshold = _threshold(totals, count)
    above = np.flatnonzero(totals > threshold)
    level = np.flatnonzero(totals == threshold)[: count - len(above)] if threshold >= 0 else above[:0]
    best_first = above[np.argsort(-totals[above], kind="stable")]
    found: list[int] = order[np.concatenate((best_first, level))].tolist()
    return found


_SMALL = 1 << 16


def _threshold(masked: IntArray, count: int) -> int:
    """The total of the `count`-th best row; -1 when there are not so many. Totals are small integers as a
    rule, for which a histogram is cheaper than a partition; large weights make large ones."""
    best = int(masked.max())
    if np.count_nonzero(masked == best) >= count:
        return best
    if best >= _SMALL:
        return max(int(np.partition(masked, -count)[-count]), -1) if len(masked) >= count else -1
    counts = np.bincount(np.maximum(masked, -1) + 1)
    enough = np.flatnonzero(np.cumsum(counts[:0:-1]) >= count)
    return best - int(enough[0]) if len(enough) else -1
