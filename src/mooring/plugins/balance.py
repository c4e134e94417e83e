"""How evenly the resources of a node are used: 100 less one point per hundredth of standard deviation.

Scalar and vector forms round as kube-scheduler does, in the same order, because their results are cut to
integers. Resources that a node does not have are left out there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from mooring.framework.nodes import FloatArray, IntArray, Nodes, NodeView
from mooring.plugins.scratch import Scratch

NO_CHANGE = 75
"""What a pod scores that changes nothing; fewer than two resources are always in balance."""

Asks = tuple[tuple[str, int], ...]
"""Resource, and what comes on top of what the node's pods request of it."""


def score(asks: Asks, allocatable: Mapping[str, int], requested: Mapping[str, int]) -> int:
    """The change that the asks make on one node: 75 for none, 100 at best, 50 at worst."""
    if len(asks) == 2:
        return _pair(*asks, allocatable, requested)
    nothing = tuple((name, 0) for name, _ in asks)
    difference = balance(asks, allocatable, requested) - balance(nothing, allocatable, requested)
    return 50 + int((50 + difference) / 2)


def _pair(
    first: tuple[str, int],
    second: tuple[str, int],
    allocatable: Mapping[str, int],
    requested: Mapping[str, int],
) -> int:
    """The same for two resources, written out: a row that changes is scored by this, for every pod."""
    left, right = allocatable.get(first[0], 0), allocatable.get(second[0], 0)
    if not left or not right:
        return NO_CHANGE
    used, taken = requested.get(first[0], 0), requested.get(second[0], 0)
    before = min(float(used) / left, 1.0) - min(float(taken) / right, 1.0)
    after = min(float(used + first[1]) / left, 1.0) - min(float(taken + second[1]) / right, 1.0)
    gained = int((1 - abs(after / 2)) * 100) - int((1 - abs(before / 2)) * 100)
    return 50 + int((50 + gained) / 2)


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
    """Scores all nodes by two resources, by far the most common case; keeps its work arrays between calls."""

    def __init__(self) -> None:
        self._floats: Scratch[np.float64] = Scratch(2, np.float64)

    def score_into(self, asks: Asks, nodes: Nodes, out: IntArray) -> None:
        names = (asks[0][0], asks[1][0])
        left, right = self._floats.of(len(nodes))
        for index, fraction in enumerate((left, right)):
            np.add(nodes.floats("requested", names[index]), float(asks[index][1]), out=fraction)
            np.divide(fraction, _capacity(nodes, names, index), out=fraction)
            np.fmin(fraction, 1.0, out=fraction)  # 0/0 in a row without a node counts as 1
        _balance_into(left, right)
        np.multiply(left, 0.5, out=left)
        np.add(left, _before(nodes, names), out=left)
        out[:] = left


def _balance_into(left: FloatArray, right: FloatArray) -> None:
    """Two fractions per node become their balance, in `left`.

    `(1 - abs((a - b) / 2)) * 100` with the halving moved to the end: scaling by 2 rounds nothing.
    """
    np.subtract(left, right, out=left)
    np.abs(left, out=left)
    np.subtract(2.0, left, out=left)
    np.multiply(left, 50.0, out=left)
    np.trunc(left, out=left)


def _capacity(nodes: Nodes, names: tuple[str, str], index: int) -> FloatArray:
    """Allocatable of one of two resources. Infinite where a node lacks either of them: then both fractions
    are 0, and so is their difference."""

    def compute(some: Nodes) -> FloatArray:
        both = (some.allocatable(names[0]) != 0) & (some.allocatable(names[1]) != 0)
        return np.where(both, some.allocatable(names[index]).astype(np.float64), np.inf)

    return cast(FloatArray, nodes.node_column(("balance.capacity", names, index), compute))


def _before(nodes: Nodes, names: tuple[str, str]) -> FloatArray:
    """The part of the score that does not depend on the pod: 75 less half of the balance as it is."""
    nothing = tuple((name, 0) for name in names)

    def compute(some: Nodes) -> FloatArray:
        return 75 - balances(nothing, some) / 2

    def compute_row(node: NodeView) -> float:
        return 75 - balance(nothing, node.allocatable, node.requested) / 2

    return cast(FloatArray, nodes.row_column(("balance.before", names), compute, compute_row))


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
