"""The zones of all nodes as arrays, so that Filter and Score look at all nodes at once.

A node has a place here from the day on that it or its object is first seen, whatever its row in the node
table is. Place 0 belongs to no node: it is what rows without a node show."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from mooring.contrib.topology_match.demands import LARGEST
from mooring.contrib.topology_match.topology import POD, SINGLE_NUMA_NODE, Amounts, Topology, Zone
from mooring.framework.nodes import BoolArray, FloatArray, IntArray, Nodes

NOT_REPORTED = -1.0
_MOST_SETS = 5000
"""Sets of zones of one size that are looked at; 16 zones have more of size 8."""


class ZoneSet(NamedTuple):
    zones: tuple[int, ...]
    """Positions in the order of ids."""
    nearest: bool
    """Whether no other set of this size has a lower distance on average."""


class ZoneColumns:
    """One entry per place in every array."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._resources: dict[str, int] = {}
        self._layouts: dict[tuple[tuple[int, ...], ...], int] = {}
        self.zone_sets: list[list[ZoneSet]] = []
        """By layout: the distances of zones from each other. Small sets first, near ones first among them."""
        self._available: FloatArray = np.full((4, 1, 64), NOT_REPORTED)
        """Resources by zones by places: long rows are what NumPy is fast with."""
        self.zones: IntArray = np.zeros(64, dtype=np.int64)
        """How many a node has."""
        self.layouts: IntArray = np.zeros(64, dtype=np.int64)
        self.max_numa_nodes: IntArray = np.ones(64, dtype=np.int64)
        self.known: BoolArray = np.zeros(64, dtype=np.bool_)
        """Whether there is an object."""
        self.aligned: BoolArray = np.zeros(64, dtype=np.bool_)
        """Whether the kubelet refuses what does not fit into one zone."""
        self.by_pod: BoolArray = np.zeros(64, dtype=np.bool_)
        """Whether it aligns pods, not containers."""
        self.invalid: BoolArray = np.zeros(64, dtype=np.bool_)
        """Whether the data is not to be used now."""
        self.refused: BoolArray = np.zeros(64, dtype=np.bool_)
        """Whether Filter has refused the node since the data was last looked at."""

    def place(self, name: str) -> int:
        place = self._places.setdefault(name, len(self._places) + 1)
        if place >= len(self.known):
            for column in (
                "zones",
                "layouts",
                "max_numa_nodes",
                "known",
                "aligned",
                "by_pod",
                "invalid",
                "refused",
            ):
                setattr(self, column, np.resize(getattr(self, column), 2 * place))
                getattr(self, column)[place:] = 0
            self._widen(places=2 * place)
        return place

    def places(self, nodes: Nodes) -> IntArray:
        """The place of each node."""
        found: IntArray = nodes.node_column(
            self, lambda view: np.array([self.place(name) for name in view.names], dtype=np.int64)
        )
        return found

    def put(self, name: str, topology: Topology, reserved: Amounts) -> None:
        """What is known of a node now; `reserved` is missing in each of its zones."""
        place, zones = self.place(name), topology.zones
        self._widen(zones=len(zones))
        self._available[:, :, place] = NOT_REPORTED
        for position, zone in enumerate(zones):
            for resource, amount in remaining(zone, reserved).items():
                index = self._resource(resource)
                self._available[index, position, place] = amount
        manager = topology.manager
        self.zones[place], self.known[place] = len(zones), True
        self.layouts[place] = self._layout(tuple(zone.distances for zone in zones))
        self.max_numa_nodes[place] = manager.max_numa_nodes
        self.aligned[place] = manager.policy == SINGLE_NUMA_NODE
        self.by_pod[place] = manager.scope == POD

    def drop(self, name: str) -> None:
        """There is no object of this node any more."""
        self.known[self.place(name)] = False

    @property
    def width(self) -> int:
        """Zones of the node that has the most."""
        return len(self._available[0])

    def available(self, resource: str, places: IntArray) -> FloatArray:
        """Zones by places, `NOT_REPORTED` where a zone does not know the resource; a copy."""
        index = self._resources.get(resource)
        if index is None:
            return np.full((self.width, len(places)), NOT_REPORTED)
        return np.take(self._available[index], places, axis=1)

    def _resource(self, name: str) -> int:
        index = self._resources.setdefault(name, len(self._resources))
        self._widen(resources=index + 1)
        return index

    def _layout(self, distances: tuple[tuple[int, ...], ...]) -> int:
        if distances not in self._layouts:
            self._layouts[distances] = len(self._layouts)
            self.zone_sets.append(zone_sets(distances))
        return self._layouts[distances]

    def _widen(self, resources: int = 0, places: int = 0, zones: int = 0) -> None:
        old = self._available
        shape = tuple(map(max, old.shape, (resources, zones, places)))
        if shape != old.shape:
            self._available = np.full(shape, NOT_REPORTED)
            self._available[tuple(map(slice, old.shape))] = old


def remaining(zone: Zone, reserved: Amounts) -> Amounts:
    """What a zone has beside that."""
    return {
        name: max(min(amount, LARGEST) - reserved.get(name, 0), 0) for name, amount in zone.available.items()
    }


def zone_sets(distances: tuple[tuple[int, ...], ...]) -> list[ZoneSet]:
    """The sets of zones of a node, as far as there are not too many of a size."""
    found = []
    for size in range(1, len(distances) + 1):
        if comb(len(distances), size) > _MOST_SETS:
            break
        sums = {
            zones: sum(distances[one][other] for one in zones for other in zones)
            for zones in combinations(range(len(distances)), size)
        }
        least = min(sums.values())
        found += [ZoneSet(zones, sums[zones] == least) for zones in sorted(sums, key=lambda z: (sums[z], z))]
    return found
