"""Score by LeastAllocated, MostAllocated and BalancedAllocation: each zone of a node gets points for a
request, and the lowest that are not 0 are those of the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mooring.api.requests import CPU
from mooring.contrib.topology_match.aligning import Stock
from mooring.contrib.topology_match.args import BALANCED_ALLOCATION, LEAST_ALLOCATED, MOST_ALLOCATED
from mooring.contrib.topology_match.demands import Request
from mooring.framework.nodes import BoolArray, IntArray

BEST = 100
Weights = Mapping[str, int]
Strategy = Callable[[Request, Stock, Weights], IntArray]
"""Points of each zone, nodes by zones."""


def node_scores(
    strategy: Strategy, requests: Sequence[Request], stock: Stock, real: BoolArray, weights: Weights
) -> IntArray:
    """The mean of what the requests get. One that names nothing has nothing to align. `real` says which zones
    a node has."""
    asking = [request for request in requests if request.amounts]
    total = np.zeros(len(real), dtype=np.int64)
    if not asking:
        return total + BEST
    for request in asking:
        points = np.where(real, strategy(request, stock, weights), 0)
        lowest = np.where(points == 0, BEST + 1, points).min(axis=1)
        total += np.where(lowest > BEST, 0, lowest)
    return total // len(asking)


def least_allocated(request: Request, stock: Stock, weights: Weights) -> IntArray:
    return _weighted(request, stock, weights, lambda want, have: (have - want) * BEST // have)


def most_allocated(request: Request, stock: Stock, weights: Weights) -> IntArray:
    return _weighted(request, stock, weights, lambda want, have: want * BEST // have)


def _weighted(
    request: Request, stock: Stock, weights: Weights, points: Callable[[int, IntArray], IntArray]
) -> IntArray:
    """The weighted mean; nothing for a resource of which there is too little, or none."""
    total, sum_of_weights = None, 0
    for name, amount in request.amounts:
        available = stock[name]
        enough = (available > 0) & (available >= amount)
        have = np.where(enough, units(name, available), 1)
        found = np.where(enough, points(int(units(name, amount)), have), 0) * weights.get(name, 1)
        total = found if total is None else total + found
        sum_of_weights += weights.get(name, 1)
    assert total is not None
    mean: IntArray = total // sum_of_weights
    return mean


def balanced_allocation(request: Request, stock: Stock, weights: Weights) -> IntArray:
    """1 less the variance of the shares that are used; weights have no part in it. A single share varies by
    nothing."""
    shares = []
    for name, amount in request.amounts:
        have = units(name, np.maximum(stock[name], 0))
        shares.append(np.where(have == 0, 1.0, units(name, amount) / np.maximum(have, 1)))
    columns = np.array(shares)
    deviations = columns - columns.sum(axis=0) / len(columns)
    squares = (deviations**2).sum(axis=0) - deviations.sum(axis=0) ** 2 / len(columns)
    variance = squares / max(len(columns) - 1, 1)
    points: IntArray = np.where((columns > 1).any(axis=0), 0, (1 - variance) * BEST).astype(np.int64)
    return points


def units(name: str, amount: int | IntArray) -> IntArray:
    """In whole units, rounded up; of cpu these are cores."""
    rounded: IntArray = -(-np.asarray(amount) // 1000) if name == CPU else np.asarray(amount)
    return rounded


STRATEGIES: dict[str, Strategy] = {
    LEAST_ALLOCATED: least_allocated,
    MOST_ALLOCATED: most_allocated,
    BALANCED_ALLOCATION: balanced_allocation,
}
