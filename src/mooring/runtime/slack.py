"""Room on nodes as plain numbers, for filters that hold sums of requests against a limit.

`slack` of a plugin says how much more other pods may request on each node. Putting victims back is then a
subtraction per pod, done for all nodes at the same time: first everybody's first victim, then the second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.hot import HeadroomFilterPlugin
from mooring.framework.nodes import BoolArray, IntArray, Nodes
from mooring.framework.ranking import Tails
from mooring.runtime.calling import failed


class Room:
    """What is left on every row of a dry run while victims return, per resource."""

    def __init__(self, tails: Tails) -> None:
        self._tails = tails
        self._left: dict[str, IntArray] = {}
        """Resource → row → amount; of no meaning on rows that nobody was asked about."""

    def limit(self, plugin: HeadroomFilterPlugin, state: CycleState, pod: Pod, nodes: Nodes) -> bool:
        """Take over what a plugin sees on these nodes. False when it cannot say, so it must be asked."""
        try:
            told = plugin.headroom(state, pod, nodes)
            for resource, column in (told or {}).items():
                left = np.full(len(self._tails), _PLENTY)
                left[nodes.rows] = column
                known = self._left.get(resource)
                self._left[resource] = left if known is None else np.minimum(known, left)
        except Exception as error:
            failed(plugin, "Slack", pod, error)  # logged; its filter can still be asked
            return False
        return told is not None

    def forget_plenty(self, rows: IntArray) -> None:
        """Leave out the resources of which there is enough for all victims of these rows."""
        self._left = {
            resource: left
            for resource, left in self._left.items()
            if (self._tails.totals(resource)[rows] > left[rows]).any()
        }

    def admits(self, row: int, number: int) -> bool:
        """Whether there is room for one victim of a row."""
        at = int(self._tails.offsets[row]) + number
        return all(self._tails.column(name)[at] <= left[row] for name, left in self._left.items())

    def take(self, row: int, number: int) -> None:
        at = int(self._tails.offsets[row]) + number
        for name, left in self._left.items():
            left[row] -= self._tails.column(name)[at]

    def fill(self, rows: IntArray, masks: Sequence[BoolArray | None], away: BoolArray) -> None:
        """Let the victims of these rows in, in order, wherever there is room, and mark the others as away.
        A mask names who has its turn; `None` is everybody."""
        resources = [(left, self._tails.column(name)) for name, left in self._left.items()]
        for mask in masks:
            self._fill(rows, resources, mask, away)

    def _fill(
        self,
        rows: IntArray,
        resources: Sequence[tuple[IntArray, IntArray]],
        mask: BoolArray | None,
        away: BoolArray,
    ) -> None:
        offsets, lengths = self._tails.offsets[rows], self._tails.lengths[rows]
        for number in range(int(lengths.max(initial=0))):
            longer = lengths > number
            if not longer.all():
                rows, offsets, lengths = rows[longer], offsets[longer], lengths[longer]
            here, at = rows, offsets + number
            if mask is not None:
                turn = mask[at]
                here, at = here[turn], at[turn]
            _enter(here, at, resources, away)


def _enter(
    rows: IntArray, at: IntArray, resources: Sequence[tuple[IntArray, IntArray]], away: BoolArray
) -> None:
    """One victim of each row: in if there is room in every respect, else away."""
    asked = [(left, column[at]) for left, column in resources]
    fits = np.ones(len(rows), dtype=np.bool_)
    for left, amount in asked:
        fits &= amount <= left[rows]
    for left, amount in asked:
        left[rows] -= amount * fits
    away[at] = ~fits


_PLENTY = np.int64(2**62)
