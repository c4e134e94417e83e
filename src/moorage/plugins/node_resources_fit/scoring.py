"""Score nodes by the weighted mean over resources, with one of the three strategies.

Follows pkg/scheduler/framework/plugins/noderesources/{least_allocated,most_allocated,requested_to_capacity_ratio}.go.
All strategies start from a whole percentage, rounded down, of the free or of the requested capacity. The vector form
works in float64 with one true division and one floor. That gives the same integers while capacity x 100 stays below
2^53; larger capacities are computed in integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from moorage.api.requests import is_scalar_resource
from moorage.api.resource_weights import UtilizationShapePoint
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes, NodeView
from moorage.framework.status import MAX_NODE_SCORE
from moorage.plugins.node_resources_fit.args import LEAST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO, ScoringStrategy
from moorage.plugins.pod_demand import is_counted

EXACT = 2**53 // MAX_NODE_SCORE
"""Capacities below this are scored in float64."""
_INT64_EXACT = (2**63 - 1) // MAX_NODE_SCORE

_HUNDRED = float(MAX_NODE_SCORE)
_SHAPE_SCALE = 10
"""A shape gives points up to 10, a score goes up to 100."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """Maps the utilization of a resource to a score of 0-100."""

    counts_free: bool
    """LeastAllocated looks at what stays free, the others at what is taken."""
    shape: tuple[int, ...] = ()
    """RequestedToCapacityRatio: the score at 0, 1, … 100 percent."""

    def points(self, requested: int, capacity: int) -> int:
        """Score one resource of one node; the capacity is above zero."""
        free = capacity - requested
        part = (capacity if free < 0 else requested) if not self.counts_free else 0 if free < 0 else free
        percent = part * MAX_NODE_SCORE // capacity
        return self.shape[percent] if self.shape else percent

    def points_into(
        self, taken: FloatArray, ask: int, capacity: FloatArray, divisor: FloatArray, out: FloatArray
    ) -> None:
        """Score all nodes, whose capacities are below `EXACT`. `taken` is the amount that their pods request; `divisor`
        is the capacity, or infinity where the node has none, which gives 0. For LeastAllocated see
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
        """Score all nodes for LeastAllocated, from their free amounts in hundredths."""
        np.subtract(spare, ask * _HUNDRED, out=out)
        np.divide(out, divisor, out=out)
        np.maximum(out, 0.0, out=out)  # too much requested
        np.floor(out, out=out)

    def exactly(self, requested: IntArray, capacity: IntArray) -> IntArray:
        """Return the score, computed in integers of any size."""
        part = np.maximum(capacity - requested, 0) if self.counts_free else np.minimum(requested, capacity)
        wide = np.int64 if capacity.max() <= _INT64_EXACT else object
        percent = (part.astype(wide) * MAX_NODE_SCORE // np.maximum(capacity, 1).astype(wide)).astype(np.int64)
        return self._shaped(percent, capacity == 0) if self.shape else cast(IntArray, percent)

    def _shaped(self, percent: IntArray, lacking: BoolArray) -> IntArray:
        points: IntArray = np.array(self.shape)[percent]
        points[lacking] = 0
        return points


def strategy_of(args: ScoringStrategy) -> Strategy:
    """Return the strategy that the validated arguments name."""
    if args.type == REQUESTED_TO_CAPACITY_RATIO:
        ratio = args.requested_to_capacity_ratio
        return Strategy(False, shape_table(ratio.shape if ratio is not None else ()))
    return Strategy(args.type == LEAST_ALLOCATED)


def shape_table(points: Sequence[UtilizationShapePoint]) -> tuple[int, ...]:
    """Return the piecewise linear shape at each whole percentage; it is flat outside its points."""
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
    """Divide as Go does: truncate towards zero, also on a falling line."""
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)


_FEW = 16
"""The number of changed rows that are computed one by one; for more, all at once is cheaper."""
Asks = tuple[tuple[str, int, int], ...]
"""Resource, its weight, and what the pod asks of it."""


class Scorer:
    """Scores nodes with the configured strategy. A resource that a node does not have is ignored there; an extended
    resource counts only for pods that request it."""

    def __init__(self, args: ScoringStrategy) -> None:
        self._strategy = strategy_of(args)
        self._resources = tuple(spec for spec in args.resources if is_counted(spec.name))
        self._standard = not any(is_scalar_resource(spec.name) for spec in self._resources)
        alike = len(self._resources) == 2 and all(spec.weight == 1 for spec in self._resources)
        self._is_default = self._standard and alike and self._strategy.counts_free and not self._strategy.shape
        """Two resources that every pod asks for, that count alike and should stay free."""

    def asks(self, requests: Mapping[str, int]) -> Asks:
        """Return the amounts of a pod that count for the score; computed once per pod."""
        asks = [(spec.name, spec.weight, requests.get(spec.name, 0)) for spec in self._resources]
        return tuple(asks if self._standard else [ask for ask in asks if ask[2] or not is_scalar_resource(ask[0])])

    def score(self, asks: Asks, node: NodeView) -> int:
        """Score one node."""
        taken, allocatable = node.nonzero_requested, node.allocatable
        points, shaped = self._strategy.points, bool(self._strategy.shape)
        total = weights = 0
        for name, weight, ask in asks:
            capacity = allocatable.get(name, 0)
            if capacity:
                earned = points(taken.get(name, 0) + ask, capacity)
                if earned or not shaped:  # with a shape, resources that earn nothing do not count
                    total += weight * earned
                    weights += weight
        if not weights:
            return 0
        return (2 * total + weights) // (2 * weights) if shaped else total // weights

    def prepared(self, asks: Asks) -> Callable[[NodeView], int]:
        """Return `score` for requests that were read already. The default, LeastAllocated for two resources of equal
        weight, is written out."""
        if not self._is_default:
            return lambda node: self.score(asks, node)
        (first, _, one), (second, _, other) = asks

        def score(node: NodeView) -> int:
            allocatable, taken = node.allocatable, node.nonzero_requested
            try:
                left, right = allocatable[first], allocatable[second]
                free, spare = left - taken[first] - one, right - taken[second] - other
            except KeyError:
                return self.score(asks, node)
            if not left or not right:
                return self.score(asks, node)
            total = free * MAX_NODE_SCORE // left if free > 0 else 0
            return (total + spare * MAX_NODE_SCORE // right) // 2 if spare > 0 else total // 2

        return score

    def amounts(self, asks: Asks) -> tuple[int, ...] | None:
        """Return the amounts of a pod that `score_many` needs."""
        amounts = tuple([ask for _, _, ask in asks])
        return amounts if self._is_default and max(amounts) < EXACT else None

    def score_many(self, amounts: FloatArray, node: NodeView) -> IntArray | None:
        """Score one node for pods that request these amounts of the two resources."""
        allocatable, taken = node.allocatable, node.nonzero_requested
        capacities, free = [], []
        for spec in self._resources:
            capacity = allocatable.get(spec.name, 0)
            if not 0 < capacity < EXACT:
                return None
            capacities.append((capacity,))
            free.append((capacity - taken.get(spec.name, 0),))
        points: FloatArray = np.array(free) - amounts
        np.maximum(points, 0.0, out=points)
        points *= _HUNDRED
        points /= np.array(capacities)
        np.floor(points, out=points)
        total: FloatArray = points[0] + points[1]
        total *= 0.5
        return total.astype(np.int64)

    def score_into(self, asks: Asks, nodes: Nodes, out: IntArray) -> None:
        """Score all rows, including rows without a node."""
        if not asks:
            out.fill(0)
            return
        shares = tuple([(name, weight) for name, weight, _ in asks])
        found = nodes.kept(("NodeResourcesFit.score", shares), lambda some: Supply(some, shares))
        found.catch_up(nodes)
        earned, total = found.work
        if self._strategy.shape:
            self._rounded_mean(asks, found, nodes, earned, total)
        else:
            self._mean_into(asks, found, nodes, earned, total)
        out[:] = total

    def _mean_into(self, asks: Asks, found: Supply, nodes: Nodes, earned: FloatArray, total: FloatArray) -> None:
        for index, (name, weight, ask) in enumerate(asks):
            target = earned if index else total
            self._points_into(found.of[index], nodes, name, ask, target)
            if weight != 1:
                np.multiply(target, float(weight), out=target)
            if index:
                np.add(total, earned, out=total)
        np.divide(total, found.weights, out=total)

    def _rounded_mean(self, asks: Asks, found: Supply, nodes: Nodes, earned: FloatArray, total: FloatArray) -> None:
        total[:] = 0
        weights: FloatArray = np.zeros(len(nodes))
        for index, (name, weight, ask) in enumerate(asks):
            self._points_into(found.of[index], nodes, name, ask, earned)
            total += weight * earned
            weights += weight * (earned > 0)
        weights[weights == 0] = np.inf
        np.divide(total, weights, out=total)
        np.floor(total + 0.5, out=total)

    def _points_into(self, one: OneSupply, nodes: Nodes, name: str, ask: int, out: FloatArray) -> None:
        if one.is_large:
            out[:] = self._strategy.exactly(nodes.nonzero_requested(name) + ask, nodes.allocatable(name))
        elif self._strategy.counts_free:
            self._strategy.free_points_into(one.spare, ask, one.divisor, out)
        else:
            self._strategy.points_into(one.taken, ask, one.capacity, one.divisor, out)


class OneSupply(NamedTuple):
    """One resource of all nodes."""

    taken: FloatArray
    capacity: FloatArray
    divisor: FloatArray
    """The capacity, infinite where there is none: a node without any then earns 0 of it."""
    is_large: bool
    """Whether some capacity is too large for exact arithmetic in float64."""
    spare: FloatArray
    """What is free, times a hundred: kept by this module, brought up to date by `Supply.catch_up`."""


class Supply:
    """The columns that a score is computed from, kept until a node changes, and work arrays."""

    __slots__ = ("_version", "of", "weights", "work")

    def __init__(self, nodes: Nodes, shares: tuple[tuple[str, int], ...]) -> None:
        self._version = nodes.columns.version
        self.of = [_supply(nodes, name) for name, _ in shares]
        weights: FloatArray = np.zeros(len(nodes))
        for name, weight in shares:
            weights += weight * (nodes.allocatable(name) != 0)
        weights[weights == 0] = np.inf
        self.weights = weights
        """Sum of the weights of the resources that a node has; infinite where nothing weighs."""
        self.work = np.empty(len(nodes)), np.empty(len(nodes))

    def catch_up(self, nodes: Nodes) -> None:
        """Update `spare` after pods were added or removed; the other columns update themselves."""
        version = nodes.columns.version
        if version == self._version:
            return
        changed = nodes.columns.changed_since(self._version)
        self._version = version
        for taken, capacity, _, _, spare in self.of:
            if len(changed) > _FEW:
                np.subtract(capacity, taken, out=spare)
                np.multiply(spare, 100.0, out=spare)
                continue
            for row in changed:
                if row < len(spare):
                    spare[row] = (capacity[row] - taken[row]) * 100.0


def _supply(nodes: Nodes, name: str) -> OneSupply:
    capacity = nodes.floats("allocatable", name)
    divisor = np.where(capacity == 0, np.inf, capacity)
    large = bool(np.count_nonzero(nodes.allocatable(name) >= EXACT))
    taken = nodes.floats("nonzero_requested", name)
    return OneSupply(taken, capacity, divisor, large, (capacity - taken) * 100.0)
