"""Network costs between regions and zones from a NetworkTopology object, as two small matrices over the places of the
cluster.

A place is a region and a zone. Nodes are a column of place numbers, so a value per place is spread to all nodes in one
step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from moorage.api.meta import Int64, Record
from moorage.api.node import REGION, ZONE
from moorage.api.resources import custom
from moorage.framework.nodes import BoolArray, Columns, FloatArray, IntArray, Nodes

NETWORKTOPOLOGIES = custom("networktopology.diktyo.x-k8s.io", "v1alpha1", "networktopologies", "NetworkTopology")
SAME_PLACE, UNKNOWN = 1, 100
"""Costs that no object names: within a zone, and for unknown places."""
HIGHEST = 2**31
"""Costs above count as this, so that no sum leaves 64 bits."""
GONE = 0
"""The place of a node that is gone while its pods are still there."""


class Cost(Record):
    destination: str = ""
    network_cost: Int64 = 0


class Origin(Record):
    origin: str = ""
    cost_list: tuple[Cost, ...] = ()


class NetworkLevel(Record):
    """Costs between regions, or between zones."""

    topology_key: str = ""
    origin_list: tuple[Origin, ...] = ()


class Weights(Record):
    name: str = ""
    topology_list: tuple[NetworkLevel, ...] = ()


class TopologySpec(Record):
    weights: tuple[Weights, ...] = ()


class NetworkTopology(Record):
    """The fields of the object that the plugin reads."""

    spec: TopologySpec = TopologySpec()

    def costs(self, weights: str, key: str) -> Iterator[tuple[str, str, int]]:
        """Yield origin, destination and cost between values of one label, from the weights of that name."""
        levels = (level for found in self.spec.weights if found.name == weights for level in found.topology_list)
        for level in levels:
            if level.topology_key == key:
                for origin in level.origin_list:
                    for cost in origin.cost_list:
                        yield origin.origin, cost.destination, min(cost.network_cost, HIGHEST)


class NetworkPlace(NamedTuple):
    """The region and zone labels of a node; empty if it has none."""

    region: str
    zone: str


def place_of(labels: Mapping[str, str]) -> NetworkPlace:
    return NetworkPlace(labels.get(REGION, ""), labels.get(ZONE, ""))


class Places:
    """Numbers, from 1, for all places that nodes have been in."""

    def __init__(self) -> None:
        self._numbers: dict[NetworkPlace, int] = {}

    @property
    def size(self) -> int:
        """Return one more than the highest number."""
        return len(self._numbers) + 1

    def __iter__(self) -> Iterator[NetworkPlace]:
        return iter(self._numbers)

    def column(self, columns: Columns) -> IntArray:
        """Return the place number of each row; GONE for rows without a node."""
        return columns.node_column(self, self._numbered)

    def _numbered(self, nodes: Nodes) -> IntArray:
        found = (self._numbers.setdefault(place_of(node.labels), self.size) for node in nodes)
        return np.fromiter(found, dtype=np.int64, count=len(nodes))


class Matrices(NamedTuple):
    """Costs from each place (row) to each place (column) of the cluster, by number."""

    costs: FloatArray
    """What talking costs."""
    needed: FloatArray
    """The lowest maxNetworkCost that allows it: -inf within a zone, inf to a node without region and zone,
    NaN where the cost is not known. Comparing with NaN is false both ways: neither allowed nor forbidden."""
    nowhere: BoolArray
    """Which places have neither region nor zone: nodes there are far from each other."""


def matrices(topology: NetworkTopology | None, weights: str, places: Places) -> Matrices:
    """Return the matrices; without an object all costs are unknown."""
    regions, across_regions = _between([place.region for place in places], topology, weights, REGION)
    zones, across_zones = _between([place.zone for place in places], topology, weights, ZONE)
    same_region, same_zone = (np.equal.outer(found, found) for found in (regions, zones))
    needed = np.full((places.size, places.size), np.nan)
    within = np.where(same_zone, -np.inf, across_zones)
    needed[1:, 1:] = np.where(same_region, within, across_regions)
    nowhere = np.array([False, *(not any(place) for place in places)])
    needed[:, nowhere] = np.inf
    costs = np.where(np.isneginf(needed), SAME_PLACE, np.where(np.isfinite(needed), needed, UNKNOWN))
    return Matrices(costs, needed, nowhere)


def _between(names: list[str], topology: NetworkTopology | None, weights: str, key: str) -> tuple[IntArray, FloatArray]:
    """Return a number for the name of each place, and the costs between all places; NaN if unknown."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    table = np.full((len(numbers), len(numbers)), np.nan)
    for origin, destination, cost in topology.costs(weights, key) if topology is not None else ():
        if origin and origin in numbers and destination in numbers:
            table[numbers[origin], numbers[destination]] = cost
    column = np.array([numbers[name] for name in names], dtype=np.int64)
    return column, table[np.ix_(column, column)]
