"""The scores of the strategies.

LeastAllocated, MostAllocated and BalancedAllocation: each zone of a node is scored for a request, and the node gets the
lowest score above 0.

LeastNUMANodes: the fewer zones a request needs, the better, and better still if they are as near to each other as
possible on that node. Nodes whose zones have equal distances share the order in which sets of zones are tried, and each
set is tried for all of them at once. Follows pkg/noderesourcetopology/{score,least_numa}.go of scheduler-plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import numpy as np

from moorage.api.requests import CPU
from moorage.contrib.topology_match.aligning import Stock
from moorage.contrib.topology_match.args import BALANCED_ALLOCATION, LEAST_ALLOCATED, MOST_ALLOCATED
from moorage.contrib.topology_match.columns import ZoneColumns, ZoneSet, zone_sets
from moorage.contrib.topology_match.demands import ZoneRequest
from moorage.framework.nodes import BoolArray, FloatArray, IntArray

BEST = 100
Weights = Mapping[str, int]
Zone = Mapping[str, FloatArray]
"""Resource → what one zone of each node has available."""
Strategy = Callable[[ZoneRequest, Zone, Weights], FloatArray]
"""Points of a zone, one entry per node; whole numbers."""


def node_scores(
    strategy: Strategy, requests: Sequence[ZoneRequest], stock: Stock, zones: IntArray, weights: Weights
) -> FloatArray:
    """Return the mean score of the requests. An empty request has nothing to align. `zones` is the number of zones of a
    node."""
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


def least_allocated(request: ZoneRequest, zone: Zone, weights: Weights) -> FloatArray:
    return _weighted(request, zone, weights, lambda want, have: (have - want) * BEST)


def most_allocated(request: ZoneRequest, zone: Zone, weights: Weights) -> FloatArray:
    return _weighted(request, zone, weights, lambda want, have: np.full(have.shape, want * BEST))


def _weighted(
    request: ZoneRequest, zone: Zone, weights: Weights, share: Callable[[float, FloatArray], FloatArray]
) -> FloatArray:
    """Return the weighted mean; 0 for a resource that is missing or insufficient."""
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


def balanced_allocation(request: ZoneRequest, zone: Zone, weights: Weights) -> FloatArray:
    """Return 1 minus the variance of the used shares, without weights. A single share has no variance."""
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
    """Return whole units, rounded up; for cpu these are cores."""
    rounded: FloatArray = np.ceil(np.asarray(amount) / 1000) if name == CPU else np.asarray(amount)
    return rounded


STRATEGIES: dict[str, Strategy] = {
    LEAST_ALLOCATED: least_allocated,
    MOST_ALLOCATED: most_allocated,
    BALANCED_ALLOCATION: balanced_allocation,
}


def least_numa_scores(
    columns: ZoneColumns, places: IntArray, requests: Sequence[ZoneRequest], stock: Stock
) -> IntArray:
    scores = np.zeros(len(places), dtype=np.int64)
    numbers, layouts = columns.fact("layout")[places], columns.layouts()
    for number in np.flatnonzero(np.bincount(numbers)).tolist():
        rows = np.flatnonzero(numbers == number)
        # Most often there is one layout.
        mine = stock
        if len(rows) < len(places):
            mine = {name: [zone[rows] for zone in stock[name]] for name in stock}
        step = BEST // columns.fact("max_numa_nodes")[places[rows]]
        scores[rows] = _scores(zone_sets(layouts[number]), requests, mine, step)
    return scores


def _scores(sets: Sequence[ZoneSet], requests: Sequence[ZoneRequest], stock: Stock, step: IntArray) -> IntArray:
    """Score nodes of one layout. The resources of a request are missing for the next one."""
    most = np.zeros(len(step), dtype=np.int64)
    near, fits = np.ones((2, len(step)), dtype=np.bool_)
    for number, request in enumerate(requests, 1):
        # What no zone reports is of the node as a whole, and has no part in this.
        bound: dict[str, BoolArray] = {}
        asking = np.zeros(len(step), dtype=np.bool_)
        for name, _ in request.amounts:
            bound[name] = reduce(np.logical_or, (zone >= 0 for zone in stock[name]))
            asking |= bound[name]
        remaining = np.flatnonzero(asking & fits)
        for zones, nearest in sets:
            if not len(remaining):
                break
            done = _fits(request, stock, bound, zones, remaining)
            rows = remaining[done]
            most[rows] = np.maximum(most[rows], len(zones))
            near[rows] &= nearest
            for name, amount in request.amounts if number < len(requests) else ():
                _take(stock[name], rows, zones, amount)
            remaining = remaining[~done]
        fits[remaining] = False
    scores = BEST - most * step + np.where(near, step // 2, 0)
    return np.where(fits, np.where(most == 0, BEST, np.maximum(scores, 0)), 0)


def _fits(
    request: ZoneRequest, stock: Stock, bound: dict[str, BoolArray], zones: tuple[int, ...], rows: IntArray
) -> BoolArray:
    """Return which of these nodes have the requested amounts in these zones. Each zone must report all resources."""
    fits = np.ones(len(rows), dtype=np.bool_)
    for name, amount in request.amounts:
        available = [stock[name][zone][rows] for zone in zones]
        enough = sum(available) >= amount
        for zone in available:
            enough &= zone >= 0
        fits &= enough | ~bound[name][rows]
    return fits


def _take(available: Sequence[FloatArray], rows: IntArray, zones: tuple[int, ...], amount: int) -> None:
    """Take as much as available out of the first zones of a set."""
    missing = np.full(len(rows), float(amount))
    for zone in zones:
        taken = np.minimum(np.maximum(available[zone][rows], 0), missing)
        available[zone][rows] -= taken
        missing -= taken
