"""How evenly the resources of a node are used: 100 less one point per hundredth of standard deviation.

Scalar and vector forms round as kube-scheduler does, in the same order, because their results are cut to
integers. Resources that a node does not have are left out there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from mooring.framework.nodes import FloatArray, IntArray, Nodes, NodeView

NO_CHANGE = 75
"""What a pod scores that changes nothing; fewer than two resources are always in balance."""

Asks = tuple[tuple[str, int], ...]
"""Resource, and what comes on top of what the node's pods request of it."""


def score(asks: Asks, allocatable: Mapping[str, int], requested: Mapping[str, int]) -> int:
    """The change that the asks make on one node: 75 for none, 100 at best, 50 at worst."""
    nothing = tuple((name, 0) for name, _ in asks)
    difference = balance(asks, allocatable, requested) - balance(nothing, allocatable, requested)
    return 50 + int((50 + difference) / 2)


def prepared(asks: Asks) -> Callable[[NodeView], int]:
    """`score` with the asks read; written out for two resources, since this scores a row for every pod."""
    if len(asks) != 2:
        return lambda node: score(asks, node.allocatable, node.requested)
    (first, one), (second, other) = asks

    def score_pair(node: NodeView) -> int:
        allocatable, requested = node.allocatable, node.requested
        try:  # nearly every node has both, and this is half as long as asking for defaults
            left, right = allocatable[first], allocatable[second]
            used, taken = requested[first], requested[second]
        except KeyError:
            return score(asks, allocatable, requested)
        now, then = used + one, taken + other
        if not left or now > left or not right or then > right:  # it lacks one of them, or is full
            return score(asks, allocatable, requested)
        before, after = used * 1.0 / left - taken * 1.0 / right, now * 1.0 / left - then * 1.0 / right
        gained = int((1 - abs(after / 2)) * 100) - int((1 - abs(before / 2)) * 100)
        return 50 + int((50 + gained) / 2)

    return score_pair


def balance(asks: Asks, allocatable: Mapping[str, int], requested: Mapping[str, int]) -> int:
    """One node with the asks on top."""
    fractions = []
    for name, ask in asks:
        capacity = allocatable.get(name, 0)
        if capacity:
            fractions.append(min(float(requested.get(name, 0) + ask) / float(capacity), 1.0))
    return int((1 - deviation(fractions)) * 100)


def deviation(fractions: Sequence[float]) -> float:
    """The population standard deviation, in the short form for two."""
    count = len(fractions)
    if count < 2:
        return 0.0
    if count == 2:
        return abs((fractions[0] - fractions[1]) / 2)
    mean, total = _sum(fractions) / count, 0.0
    for fraction in fractions:
        total = total + (fraction - mean) * (fraction - mean)
    return math.sqrt(total / count)


def _sum(numbers: Sequence[float]) -> float:
    """From left to right; `sum` corrects rounding errors in newer Pythons, and upstream does not."""
    total = 0.0
    for number in numbers:
        total += number
    return total


class Pair:
    """Two resources of all nodes, by far the most common case: the columns and what does not depend on the
    pod, found once until a node changes, and work arrays."""

    __slots__ = ("_before_key", "_left", "_names", "_right", "_work")

    def __init__(self, nodes: Nodes, names: tuple[str, str]) -> None:
        # Infinite where a node lacks either of them: then both fractions are 0, and so is their difference.
        both = (nodes.allocatable(names[0]) != 0) & (nodes.allocatable(names[1]) != 0)
        capacities = [np.where(both, nodes.floats("allocatable", name), np.inf) for name in names]
        self._left = nodes.floats("requested", names[0]), capacities[0]
        self._right = nodes.floats("requested", names[1]), capacities[1]
        self._work = np.empty(len(nodes)), np.empty(len(nodes))
        self._names = names
        self._before_key = ("balance.before", names)

    def score_into(self, asks: Asks, nodes: Nodes, out: IntArray) -> None:
        left, right = self._work
        used, capacity = self._left
        np.add(used, float(asks[0][1]), out=left)
        np.divide(left, capacity, out=left)
        np.minimum(left, 1.0, out=left)
        used, capacity = self._right
        np.add(used, float(asks[1][1]), out=right)
        np.divide(right, capacity, out=right)
        np.minimum(right, 1.0, out=right)
        # `(1 - abs((a - b) / 2)) * 100` with the halving moved to the end: scaling by 2 rounds nothing.
        np.subtract(left, right, out=left)
        np.abs(left, out=left)
        np.subtract(2.0, left, out=left)
        np.multiply(left, 50.0, out=left)
        out[:] = left
        # 50 + (50 + after - before) // 2; balances are between 50 and 100, so nothing is negative.
        np.add(out, nodes.row_column(self._before_key, self._compute, self._compute_row), out=out)
        np.right_shift(out, 1, out=out)

    def _compute(self, nodes: Nodes) -> IntArray:
        """The part of twice the score that does not depend on the pod: 150 less the balance as it is."""
        now = balances(tuple((name, 0) for name in self._names), nodes)
        return cast(IntArray, (150 - now).astype(np.int64))

    def _compute_row(self, node: NodeView) -> int:
        allocatable, requested = node.allocatable, node.requested
        first, second = self._names
        left, right = allocatable.get(first, 0), allocatable.get(second, 0)
        if not left or not right:
            return 50  # a single resource is always in balance
        used, taken = requested.get(first, 0), requested.get(second, 0)
        apart = (used * 1.0 / left if used < left else 1.0) - (taken * 1.0 / right if taken < right else 1.0)
        return 150 - int((1 - abs(apart / 2)) * 100)


def scores(asks: Asks, nodes: Nodes) -> FloatArray:
    """All nodes, any number of resources."""
    nothing = tuple((name, 0) for name, _ in asks)

    def compute_row(node: NodeView) -> float:
        return balance(nothing, node.allocatable, node.requested)

    before = nodes.row_column(("balance", nothing), lambda some: balances(nothing, some), compute_row)
    return cast(FloatArray, 50 + np.trunc((50 + balances(asks, nodes) - before) / 2))


def balances(asks: Asks, nodes: Nodes) -> FloatArray:
    """The balance of all nodes with the asks on top."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fractions = [_fractions(name, ask, nodes) for name, ask in asks]
        return np.trunc((1 - _deviations(fractions, len(nodes))) * 100)


def _fractions(name: str, ask: int, nodes: Nodes) -> FloatArray:
    """How far one resource is used, at most 1; no number where the node has none."""
    capacity = nodes.allocatable(name)
    used = np.minimum((nodes.requested(name) + ask) / capacity.astype(np.float64), 1.0)
    return np.where(capacity == 0, np.nan, used)


def _deviations(fractions: Sequence[FloatArray], width: int) -> FloatArray:
    """`deviation` of the numbers in each column. Adding 0 for what is not there changes no sum."""
    count, total, difference = np.zeros(width), np.zeros(width), np.zeros(width)
    for fraction in fractions:
        present = ~np.isnan(fraction)
        used = np.where(present, fraction, 0.0)
        total = total + used
        difference += np.where(count == 0, used, np.where(count == 1, -used, 0.0))
        count += present
    mean, squares = total / count, np.zeros(width)
    for fraction in fractions:
        squares = squares + np.where(np.isnan(fraction), 0.0, (fraction - mean) * (fraction - mean))
    several = np.where(count == 2, np.abs(difference / 2), np.sqrt(squares / count))
    return np.where(count < 2, 0.0, several)
