"""The mean over resources of what a strategy gives each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from mooring.api.requests import is_scalar_resource
from mooring.framework.nodes import FloatArray, IntArray, Nodes, NodeView
from mooring.framework.scoring import MAX_NODE_SCORE
from mooring.plugins.node_resources_fit.args import ScoringStrategy
from mooring.plugins.node_resources_fit.strategies import EXACT, strategy_of
from mooring.plugins.pod_demand import is_counted

_FEW = 16
"""Changed rows that are reckoned one by one; all at once costs as much as some more of them."""
Asks = tuple[tuple[str, int, int], ...]
"""Resource, its weight, and what the pod asks of it."""


class Scorer:
    """Scores nodes by one configured strategy. A resource that a node does not have does not count there; an
    extended resource counts only for pods that ask for it."""

    def __init__(self, args: ScoringStrategy) -> None:
        self._strategy = strategy_of(args)
        self._resources = tuple(spec for spec in args.resources if is_counted(spec.name))
        self._standard = not any(is_scalar_resource(spec.name) for spec in self._resources)

    def asks(self, requests: Mapping[str, int]) -> Asks:
        """What a pod's requests mean for the score; worked out once per pod."""
        asks = [(spec.name, spec.weight, requests.get(spec.name, 0)) for spec in self._resources]
        return tuple(
            asks if self._standard else [ask for ask in asks if ask[2] or not is_scalar_resource(ask[0])]
        )

    def score(self, asks: Asks, node: NodeView) -> int:
        """One node."""
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
        """`score` with the asks read: written out for the default, two resources that count alike and should
        stay free."""
        alike = len(asks) == 2 and all(weight == 1 for _, weight, _ in asks)
        if not alike or self._strategy.shape or not self._strategy.counts_free:
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

    def score_into(self, asks: Asks, nodes: Nodes, out: IntArray) -> None:
        """All nodes, also rows without one."""
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

    def _mean_into(
        self, asks: Asks, found: Supply, nodes: Nodes, earned: FloatArray, total: FloatArray
    ) -> None:
        for index, (name, weight, ask) in enumerate(asks):
            target = earned if index else total
            self._points_into(found.of[index], nodes, name, ask, target)
            if weight != 1:
                np.multiply(target, float(weight), out=target)
            if index:
                np.add(total, earned, out=total)
        np.divide(total, found.weights, out=total)

    def _rounded_mean(
        self, asks: Asks, found: Supply, nodes: Nodes, earned: FloatArray, total: FloatArray
    ) -> None:
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
    """The columns that a score is made of, found once until a node changes, and work arrays."""

    __slots__ = ("_generation", "of", "weights", "work")

    def __init__(self, nodes: Nodes, shares: tuple[tuple[str, int], ...]) -> None:
        self._generation = nodes.columns.generation
        self.of = [_supply(nodes, name) for name, _ in shares]
        weights: FloatArray = np.zeros(len(nodes))
        for name, weight in shares:
            weights += weight * (nodes.allocatable(name) != 0)
        weights[weights == 0] = np.inf
        self.weights = weights
        """Sum of the weights of the resources that a node has; infinite where nothing weighs."""
        self.work = np.empty(len(nodes)), np.empty(len(nodes))

    def catch_up(self, nodes: Nodes) -> None:
        """Pods have come and gone since `spare` was reckoned; the other columns change by themselves."""
        generation = nodes.columns.generation
        if generation == self._generation:
            return
        changed = nodes.columns.changed_since(self._generation)
        self._generation = generation
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
