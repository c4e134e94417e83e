"""Filter: which nodes have no zone for a pod, or for one of its containers. What the kubelet would find with
policy single-numa-node, on arrays of all nodes.

A zone has to have all that a request names. The kubelet takes the first one that has; what a container gets
there is missing for the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mooring.contrib.topology_match.demands import Demand, Request, is_host_resource
from mooring.framework.nodes import BoolArray, FloatArray, IntArray

Stock = Mapping[str, FloatArray]
"""Resource → what is available, zones by nodes; below 0 where a zone does not report the resource."""


class Misaligned(NamedTuple):
    mask: BoolArray
    what: str


def misaligned(
    demand: Demand, requests: Sequence[Request], stock: Stock, known: Mapping[str, BoolArray]
) -> Iterator[Misaligned]:
    """Nodes without a zone for a request, each once. `known` says which nodes have a resource at all that not
    all have. What is given is taken out of `stock`."""
    refused = np.zeros(next(iter(stock.values())).shape[1], dtype=np.bool_)
    for number, request in enumerate(requests, 1):
        amounts = [(name, amount) for name, amount in request.amounts if amount]
        if not amounts:
            continue
        zones = fitting_zones(demand, amounts, stock, known)
        lacking: BoolArray = ~(refused | np.any(zones, axis=0))
        refused |= lacking
        if lacking.any():
            yield Misaligned(lacking, request.what)
        if request.runs_on and number < len(requests):
            taken = zones.argmax(axis=0)
            for name, amount in amounts:
                if demand.exact(name):
                    take(stock[name], taken, amount)


def fitting_zones(
    demand: Demand, amounts: Sequence[tuple[str, int]], stock: Stock, known: Mapping[str, BoolArray]
) -> BoolArray:
    """Zones by nodes."""
    fitting: BoolArray = np.ones(stock[amounts[0][0]].shape, dtype=np.bool_)
    for name, amount in amounts:
        available = stock[name]
        fits = available >= (amount if demand.exact(name) else 0)
        if is_host_resource(name):
            fits |= (available < 0).all(axis=0)
        fitting &= fits
        if name in known:
            fitting &= known[name]
    return fitting


def take(available: FloatArray, zones: IntArray, amount: int) -> None:
    """Out of one zone of each node, where it reports the resource."""
    nodes = np.arange(len(zones))
    there = available[zones, nodes]
    available[zones, nodes] = np.where(there >= amount, there - amount, there)
