"""The zones of all nodes as arrays, so that Filter and Score process all nodes at once.

A node has a place here as long as it has an object, independent of its row in the node table. All other nodes have
place 0: nothing is known about them."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from moorage.contrib.topology_match.demands import LARGEST
from moorage.contrib.topology_match.topology import POD, SINGLE_NUMA_NODE, Amounts, Zone, ZoneTopology
from moorage.framework.nodes import FloatArray, IntArray, Nodes

NOT_REPORTED = -1.0
_MAX_SETS = 1000
"""The maximum number of zone sets of one size: all sets of 12 zones, only small sets of more zones."""
_FACTS = np.dtype(
    [
        ("known", np.bool_),  # whether there is an object
        ("aligned", np.bool_),  # whether the kubelet refuses what does not fit into one zone
        ("by_pod", np.bool_),  # whether it aligns pods, not containers
        ("invalid", np.bool_),  # whether the data is not to be used now
        ("refused", np.bool_),  # whether Filter has refused the node since its data last changed
        ("zones", np.int64),  # how many there are
        ("layout", np.int64),  # a number for the distances of the zones from each other
        ("max_numa_nodes", np.int64),
    ]
)

Layout = tuple[tuple[int, ...], ...]
"""Distances of the zones of a node, each from all."""


class ZoneSet(NamedTuple):
    zones: tuple[int, ...]
    """Positions in the order of ids."""
    nearest: bool
    """Whether no other set of this size has a lower distance on average."""


class ZoneColumns:
    """Arrays with one entry per place."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        """Places that nodes without object have left."""
        self._changes = 0
        """How often a node got or lost its place."""
        self._resources: dict[str, int] = {}
        self._layouts: dict[Layout, int] = {}
        self._facts = np.zeros(64, dtype=_FACTS)
        self._available: FloatArray = np.full((4, 1, 64), NOT_REPORTED)
        """Resources by zones by places: long rows are what NumPy is fast with."""

    def places(self, nodes: Nodes) -> IntArray:
        """Return the place of each node."""
        found: IntArray = nodes.node_column(
            (self, self._changes),
            lambda view: np.array([self._places.get(name, 0) for name in view.names], dtype=np.int64),
        )
        return found

    def fact(self, name: str) -> npt.NDArray[Any]:
        """Return one of `_FACTS`, by place."""
        return self._facts[name]

    def facts_of(self, node: str) -> Any:
        """Return all facts of one node, to be read and written; None for a node without an object."""
        place = self._places.get(node)
        return self._facts[place] if place is not None else None

    def layouts(self) -> list[Layout]:
        """Return the layouts by number."""
        return list(self._layouts)

    def put(self, name: str, topology: ZoneTopology, reserved: Amounts) -> None:
        """Store the zones of a node; `reserved` is missing in each of its zones."""
        place, zones, manager = self._place(name), topology.zones, topology.manager
        self._widen(zones=len(zones))
        self._available[:, :, place] = NOT_REPORTED
        for position, zone in enumerate(zones):
            for resource, amount in remaining(zone, reserved).items():
                index = self._resource(resource)
                self._available[index, position, place] = amount
        facts = self._facts[place]
        facts["known"], facts["zones"] = True, len(zones)
        layout = tuple(zone.distances for zone in zones)
        facts["layout"] = self._layouts.setdefault(layout, len(self._layouts))
        facts["max_numa_nodes"] = manager.max_numa_nodes
        facts["aligned"], facts["by_pod"] = manager.policy == SINGLE_NUMA_NODE, manager.scope == POD

    def drop(self, name: str) -> None:
        """Forget a node that no longer has an object."""
        place = self._places.pop(name)
        self._facts[place] = 0
        self._free.append(place)
        self._changes += 1

    def _place(self, name: str) -> int:
        if name in self._places:
            return self._places[name]
        self._changes += 1
        place = self._places[name] = self._free.pop() if self._free else len(self._places) + 1
        if place >= len(self._facts):
            more = np.zeros(len(self._facts), dtype=_FACTS)
            self._facts = np.concatenate([self._facts, more])
            self._widen(places=len(self._facts))
        return place

    @property
    def width(self) -> int:
        """Return the largest number of zones of any node."""
        return len(self._available[0])

    def available(self, resource: str, places: IntArray) -> list[FloatArray]:
        """Return a copy of the available amounts of each zone; `NOT_REPORTED` where it does not report the resource."""
        index = self._resources.get(resource)
        if index is None:
            return [np.full(len(places), NOT_REPORTED) for _ in range(self.width)]
        return [zone.take(places) for zone in self._available[index]]

    def _resource(self, name: str) -> int:
        index = self._resources.setdefault(name, len(self._resources))
        self._widen(resources=index + 1)
        return index

    def _widen(self, resources: int = 0, places: int = 0, zones: int = 0) -> None:
        old = self._available
        shape = tuple(map(max, old.shape, (resources, zones, places)))
        if shape != old.shape:
            self._available = np.full(shape, NOT_REPORTED)
            self._available[tuple(map(slice, old.shape))] = old


def remaining(zone: Zone, reserved: Amounts) -> Amounts:
    """Return what is available in a zone after subtracting the reserved amounts."""
    return {name: max(min(amount, LARGEST) - reserved.get(name, 0), 0) for name, amount in zone.available.items()}


@lru_cache(maxsize=256)
def zone_sets(distances: Layout) -> list[ZoneSet]:
    """Return the sets of zones of a node, without sizes that have too many: small sets first, and among them those
    whose zones are near each other."""
    found = []
    for size in range(1, len(distances) + 1):
        if comb(len(distances), size) > _MAX_SETS:
            break
        sums = {
            zones: sum(distances[one][other] for one in zones for other in zones)
            for zones in combinations(range(len(distances)), size)
        }
        least = min(sums.values())
        found += [ZoneSet(zones, sums[zones] == least) for zones in sorted(sums, key=lambda z: (sums[z], z))]
    return found
