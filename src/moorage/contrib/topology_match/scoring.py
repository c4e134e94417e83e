"""Score by LeastAllocated, MostAllocated and BalancedAllocation: each zone of a node gets points for a
request, and the lowest that are not 0 are those of the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from moorage.api.requests import CPU
from moorage.contrib.topology_match.aligning import Stock
from moorage.contrib.topology_match.args import BALANCED_ALLOCATION, LEAST_ALLOCATED, MOST_ALLOCATED
from moorage.contrib.topology_match.demands import Request
from moorage.framework.nodes import FloatArray, IntArray

BEST = 100
Weights = Mapping[str, int]
Zone = Mapping[str, FloatArray]
"""Resource → what one zone of each node has available."""
Strategy = Callable[[Request, Zone, Weights], FloatArray]
"""Points of a zone, one entry per node; whole numbers."""


def node_scores(
    strategy: Strategy, requests: Sequence[Request], stock: Stock, zones: IntArray, weights: Weights
) -> FloatArray:
    """The mean of what the requests get. One that names nothing has nothing to align. `zones` is how many a
    node has."""
    asking = [request for request in requests if request.amounts]
    total = np.zeros(len(zones))
    for request in asking:
        lowest = np.full(len(zones), np.inf)
        for number in range(len(stock[request.amounts[0][0]])):
            zone = {name: stock[name][number] for name, _ in request.amounts}
            points = strategy(request, zone, weights)
            points[(points == 0) | (zones <= number)] = np.inf
            np.minimum(lowest, points, out=lowest)
        lowest[lowest == np.inf] = 0
        total += lowest
    mean: FloatArray = np.floor(total / len(asking))
    return mean


def least_allocated(request: Request, zone: Zone, weights: Weights) -> FloatArray:
    return _weighted(request, zone, weights, lambda want, have: (have - want) * BEST)


def most_allocated(request: Request, zone: Zone, weights: Weights) -> FloatArray:
    return _weighted(request, zone, weights, lambda want, have: np.full(have.shape, want * BEST))


def _weighted(
    request: Request, zone: Zone, weights: Weights, share: Callable[[float, FloatArray], FloatArray]
) -> FloatArray:
    """The weighted mean; nothing for a resource of which there is too little, or none."""
    total, sum_of_weights = np.zeros(len(zone[request.amounts[0][0]])), 0
    for name, amount in request.amounts:
        available, weight = zone[name], weights.get(name, 1)
        have, want = units(name, available), units(name, amount)
        points = np.floor(share(float(want), have) / np.maximum(have, 1))
        points[(available < amount) | (available <= 0)] = 0
        total += points * weight
        sum_of_weights += weight
    mean: FloatArray = np.floor(total / sum_of_weights)
    return mean


def balanced_allocation(request: Request, zone: Zone, weights: Weights) -> FloatArray:
    """1 less the variance of the shares that are used; weights have no part in it. A single share varies by
    nothing."""
    shares = []
    for name, amount in request.amounts:
        have = units(name, zone[name])
        shares.append(np.where(have <= 0, 1.0, units(name, amount) / np.maximum(have, 1)))
    columns = np.array(shares)
    deviations = columns - columns.sum(axis=0) / len(columns)
    squares = (deviations**2).sum(axis=0) - deviations.sum(axis=0) ** 2 / len(columns)
    variance = squares / max(len(columns) - 1, 1)
    return np.where((columns > 1).any(axis=0), 0, np.floor((1 - variance) * BEST))


def units(name: str, amount: FloatArray | int) -> FloatArray:
    """In whole units, rounded up; of cpu these are cores."""
    rounded: FloatArray = np.ceil(np.asarray(amount) / 1000) if name == CPU else np.asarray(amount)
    return rounded


STRATEGIES: dict[str, Strategy] = {
    LEAST_ALLOCATED: least_allocated,
    MOST_ALLOCATED: most_allocated,
    BALANCED_ALLOCATION: balanced_allocation,
}
