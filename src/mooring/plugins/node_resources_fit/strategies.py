"""What one resource of a node earns: LeastAllocated, MostAllocated, RequestedToCapacityRatio.

All three start from a whole percentage, rounded down: of the capacity that stays free, or of that which
is taken. The vector form works in float64 with one true division and one floor, which gives the same integers
while capacity x 100 stays below 2^53; beyond that it counts in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np

from mooring.framework.args import UtilizationShapePoint
from mooring.framework.nodes import BoolArray, FloatArray, IntArray
from mooring.framework.scoring import MAX_NODE_SCORE
from mooring.plugins.node_resources_fit.args import (
    LEAST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    ScoringStrategy,
)

EXACT = 2**53 // MAX_NODE_SCORE
"""Capacities below this are scored in float64."""
_INT64_EXACT = (2**63 - 1) // MAX_NODE_SCORE

_HUNDRED = float(MAX_NODE_SCORE)
_SHAPE_SCALE = 10
"""A shape gives points up to 10, a score goes up to 100."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How full a resource is → 0-100."""

    counts_free: bool
    """LeastAllocated looks at what stays free, the others at what is taken."""
    shape: tuple[int, ...] = ()
    """RequestedToCapacityRatio: the score at 0, 1, … 100 percent."""

    def points(self, requested: int, capacity: int) -> int:
        """One resource of one node; the capacity is above zero."""
        free = capacity - requested
        part = (capacity if free < 0 else requested) if not self.counts_free else 0 if free < 0 else free
        percent = part * MAX_NODE_SCORE // capacity
        return self.shape[percent] if self.shape else percent

    def points_into(
        self, taken: FloatArray, ask: int, capacity: FloatArray, divisor: FloatArray, out: FloatArray
    ) -> None:
        """The same for all nodes, whose capacities are below `EXACT`. `taken` is what their pods have;
        `divisor` is the capacity, or infinite where there is none, which makes 0. For LeastAllocated see
        `free_points_into`."""
        np.add(taken, float(ask), out=out)
        np.minimum(capacity, out, out=out)
        np.multiply(out, _HUNDRED, out=out)
        np.divide(out, divisor, out=out)
        np.floor(out, out=out)
        if self.shape:
            out[:] = self._shaped(out.astype(np.int64), capacity == 0)

    @staticmethod
    def free_points_into(spare: FloatArray, ask: int, divisor: FloatArray, out: FloatArray) -> None:
        """LeastAllocated for all nodes, from what is free there, in hundredths."""
        np.subtract(spare, ask * _HUNDRED, out=out)
        np.divide(out, divisor, out=out)
        np.maximum(out, 0.0, out=out)  # too much requested
        np.floor(out, out=out)

    def exactly(self, requested: IntArray, capacity: IntArray) -> IntArray:
        """The same in integers of any size."""
        part = np.maximum(capacity - requested, 0) if self.counts_free else np.minimum(requested, capacity)
        wide = np.int64 if capacity.max() <= _INT64_EXACT else object
        percent = (part.astype(wide) * MAX_NODE_SCORE // np.maximum(capacity, 1).astype(wide)).astype(
            np.int64
        )
        return self._shaped(percent, capacity == 0) if self.shape else cast(IntArray, percent)

    def _shaped(self, percent: IntArray, lacking: BoolArray) -> IntArray:
        points: IntArray = np.array(self.shape)[percent]
        points[lacking] = 0
        return points


def strategy_of(args: ScoringStrategy) -> Strategy:
    """The strategy that the arguments name; they have been validated."""
    if args.type == REQUESTED_TO_CAPACITY_RATIO:
        ratio = args.requested_to_capacity_ratio
        return Strategy(False, shape_table(ratio.shape if ratio is not None else ()))
    return Strategy(args.type == LEAST_ALLOCATED)


def shape_table(points: Sequence[UtilizationShapePoint]) -> tuple[int, ...]:
    """The broken line through the points at each whole percentage, flat outside of them."""
    return tuple(_on_line(points, percent) for percent in range(101))


def _on_line(points: Sequence[UtilizationShapePoint], percent: int) -> int:
    for left, right in pairwise(points):
        if left.utilization < percent <= right.utilization:
            rise = (right.score - left.score) * _SHAPE_SCALE
            step = rise * (percent - left.utilization)
            return left.score * _SHAPE_SCALE + _cut(step, right.utilization - left.utilization)
    nearest = points[0] if percent <= points[0].utilization else points[-1]
    return nearest.score * _SHAPE_SCALE


def _cut(numerator: int, denominator: int) -> int:
    """Division as in Go: towards zero, also on a line that falls."""
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)
