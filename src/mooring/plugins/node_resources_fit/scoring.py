"""The mean over resources of what a strategy gives each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np

from mooring.api.requests import is_scalar_resource
from mooring.config.plugin_args import ScoringStrategy
from mooring.framework.nodes import BoolArray, FloatArray, IntArray, Nodes, NodeView
from mooring.plugins.node_resources_fit.strategies import EXACT, strategy_of
from mooring.plugins.pod_demand import is_counted
from mooring.plugins.scratch import Scratch

Asks = tuple[tuple[str, int, int], ...]
"""Resource, its weight, and what the pod asks of it."""


class Scorer:
    """Scores nodes by one configured strategy. A resource that a node does not have does not count there; an
    extended resource counts only for pods that ask for it."""

    def __init__(self, args: ScoringStrategy) -> None:
        self._strategy = strategy_of(args)
        self._resources = tuple(spec for spec in args.resources if is_counted(spec.name))
        self._floats: Scratch[np.float64] = Scratch(2, np.float64)

    def asks(self, requests: Mapping[str, int]) -> Asks:
        """What a pod's requests mean for the score; worked out once per pod."""
        return tuple(
            (spec.name, spec.weight, requests.get(spec.name, 0))
            for spec in self._resources
            if requests.get(spec.name, 0) or not is_scalar_resource(spec.name)
        )

    def score(self, asks: Asks, node: NodeView) -> int:
        """One node."""
        taken, points = node.nonzero_requested, []
        for name, weight, ask in asks:
            capacity = node.allocatable.get(name, 0)
            if capacity:
                points.append((weight, self._strategy.points(taken.get(name, 0) + ask, capacity)))
        return self._mean(points)

    def _mean(self, points: Iterable[tuple[int, int]]) -> int:
        """Rounded down. With a shape, resources that earn nothing do not count and the mean is rounded."""
        if self._strategy.shape:
            points = [(weight, earned) for weight, earned in points if earned > 0]
        total = sum(weight * earned for weight, earned in points)
        weights = sum(weight for weight, _ in points)
        if not weights:
            return 0
        return (2 * total + weights) // (2 * weights) if self._strategy.shape else total // weights

    def score_into(self, asks: Asks, nodes: Nodes, out: IntArray) -> None:
        """All nodes, also rows without one."""
        if not asks:
            return
        earned, total = self._floats.of(len(nodes))
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._strategy.shape:
                self._rounded_mean(asks, nodes, earned, total)
            else:
                self._mean_into(asks, nodes, earned, total)
        out[:] = total

    def _mean_into(self, asks: Asks, nodes: Nodes, earned: FloatArray, total: FloatArray) -> None:
        for index, (name, weight, ask) in enumerate(asks):
            target = earned if index else total
            self._points_into(nodes, name, ask, target)
            if weight != 1:
                np.multiply(target, float(weight), out=target)
            if index:
                np.add(total, earned, out=total)
        np.divide(total, _weights(nodes, asks), out=total)
        np.fmax(total, 0.0, out=total)  # no number where nothing weighs

    def _rounded_mean(self, asks: Asks, nodes: Nodes, earned: FloatArray, total: FloatArray) -> None:
        total[:] = 0
        weights: FloatArray = np.zeros(len(nodes))
        for name, weight, ask in asks:
            self._points_into(nodes, name, ask, earned)
            total += weight * earned
            weights += weight * (earned > 0)
        np.divide(total, weights, out=total)
        np.fmax(total, 0.0, out=total)
        np.floor(total + 0.5, out=total)

    def _points_into(self, nodes: Nodes, name: str, ask: int, out: FloatArray) -> None:
        if _is_large(nodes, name):
            exact = self._strategy.exactly(nodes.nonzero_requested(name) + ask, nodes.allocatable(name))
            out[:] = exact
            return
        taken, capacity = nodes.floats("nonzero_requested", name), nodes.floats("allocatable", name)
        self._strategy.points_into(taken, ask, capacity, out)


def _is_large(nodes: Nodes, resource: str) -> bool:
    """Whether some capacity is too large for exact arithmetic in float64. Looked up, not computed: the column
    is kept until a node changes."""

    def compute(some: Nodes) -> BoolArray:
        large: BoolArray = some.allocatable(resource) >= EXACT
        return large

    return bool(np.count_nonzero(nodes.node_column(("NodeResourcesFit.large", resource), compute)))


def _weights(nodes: Nodes, asks: Asks) -> FloatArray:
    """Sum of the weights of the resources that a node has."""
    shares = tuple((name, weight) for name, weight, _ in asks)

    def compute(some: Nodes) -> FloatArray:
        total: FloatArray = np.zeros(len(some))
        for name, weight in shares:
            total += weight * (some.allocatable(name) != 0)
        return total

    return cast(FloatArray, nodes.node_column(("NodeResourcesFit.weights", shares), compute))
