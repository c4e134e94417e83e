"""Score by LeastNUMANodes: the fewer zones a request needs, the better, and better still where they are as
near to each other as zones of the node can be.

Nodes whose zones have equal distances share the order in which sets of zones are tried, and each set is tried
for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from moorage.contrib.topology_match.aligning import Stock
from moorage.contrib.topology_match.columns import ZoneColumns, ZoneSet, zone_sets
from moorage.contrib.topology_match.demands import Request
from moorage.contrib.topology_match.scoring import BEST
from moorage.framework.nodes import BoolArray, FloatArray, IntArray


def node_scores(
    columns: ZoneColumns, places: IntArray, requests: Sequence[Request], stock: Stock
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


def _scores(sets: Sequence[ZoneSet], requests: Sequence[Request], stock: Stock, step: IntArray) -> IntArray:
    """For nodes of one layout. What a request gets is missing for the next one."""
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
    request: Request, stock: Stock, bound: dict[str, BoolArray], zones: tuple[int, ...], rows: IntArray
) -> BoolArray:
    """Which of these nodes have what is asked for in these zones. Each zone has to report all of it."""
    fits = np.ones(len(rows), dtype=np.bool_)
    for name, amount in request.amounts:
        available = [stock[name][zone][rows] for zone in zones]
        enough = sum(available) >= amount
        for zone in available:
            enough &= zone >= 0
        fits &= enough | ~bound[name][rows]
    return fits


def _take(available: Sequence[FloatArray], rows: IntArray, zones: tuple[int, ...], amount: int) -> None:
    """Out of the first zones of a set, as much as is there."""
    missing = np.full(len(rows), float(amount))
    for zone in zones:
        taken = np.minimum(np.maximum(available[zone][rows], 0), missing)
        available[zone][rows] -= taken
        missing -= taken
