"""The live rows of the table in snapshot order: as nodes, as all rows at once, and as names for records.

The order takes one node of each zone in turn. Under sampling it decides which nodes are looked at, so it has
to spread over zones and to be the same as upstream's. What is listed stays the same object until the order
changes; whoever keeps one knows by that whether it still holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from moorage.api.node import REGION, ZONE, Node
from moorage.framework.nodes import Columns, EveryRow, Nodes
from moorage.state.columns import read_only

Zone = tuple[str, str]
"""Region and zone; two empty strings where a node has neither label."""

_REGION = ("failure-domain.beta.kubernetes.io/region", REGION)
_ZONE = ("failure-domain.beta.kubernetes.io/zone", ZONE)
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class NodeEpoch:
    """Row → node name for as long as the set of nodes does not change; shared by all records of that time."""

    number: int
    names: Sequence[str]


def zone_of(node: Node) -> Zone:
    """The zone of a node; the old label names win, as upstream."""
    return _first_label(node, _REGION), _first_label(node, _ZONE)


def _first_label(node: Node, keys: tuple[str, ...]) -> str:
    labels = node.metadata.labels
    return next((labels[key] for key in keys if key in labels), "")


class NodeOrder:
    """Rows by zone. Zones are in the order in which they were first seen, rows in the order in which they
    came.

    A zone goes with its last row. Listing is always a permutation of the rows that were put and not removed.
    """

    __slots__ = ("_zone_of", "_zones")

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[int, None]] = {}
        """No zone is empty."""
        self._zone_of: dict[int, Zone] = {}

    def __len__(self) -> int:
        return len(self._zone_of)

    def put(self, row: int, zone: Zone) -> bool:
        """Add the row, or move it to the end of another zone. False when it is there already."""
        if self._zone_of.get(row) == zone:
            return False
        self.remove(row)
        self._zone_of[row] = zone
        self._zones.setdefault(zone, {})[row] = None
        return True

    def remove(self, row: int) -> bool:
        """False when the row is unknown."""
        zone = self._zone_of.pop(row, None)
        if zone is None:
            return False
        members = self._zones[zone]
        del members[row]
        if not members:
            del self._zones[zone]
        return True

    def rows(self) -> list[int]:
        """All rows: the first of each zone, then the second of each that has one, and so on."""
        turns = zip_longest(*self._zones.values(), fillvalue=_NOTHING)
        return [row for row in chain.from_iterable(turns) if row != _NOTHING]


class NodeListing:
    """Which rows are listed, and in which order. `names` are the table's own, row by row."""

    def __init__(self, columns: Columns, names: Sequence[str]) -> None:
        self._columns = columns
        self._names = names
        self._order = NodeOrder()
        self._nodes: Nodes | None = None
        self._every: EveryRow | None = None
        self._epoch: NodeEpoch | None = None
        self._epochs = 0
        """How often the order has changed; the number of the present epoch."""

    def __len__(self) -> int:
        return len(self._order)

    def put(self, row: int, zone: Zone) -> None:
        """A row has a node in this zone."""
        if self._order.put(row, zone):
            self._reordered()

    def remove(self, row: int) -> None:
        self._order.remove(row)
        self._reordered()

    def relaid(self) -> None:
        """Columns were replaced, which views made before do not know."""
        self._nodes = self._every = None

    def nodes(self) -> Nodes:
        """All live nodes in snapshot order."""
        if self._nodes is None:
            rows = np.array(self._order.rows(), dtype=np.int64)
            rows.flags.writeable = False
            self._nodes = Nodes(self._columns, rows)
        return self._nodes

    def every_row(self) -> EveryRow:
        """All rows up to the highest that was ever used."""
        if self._every is None:
            listed = self.nodes()
            order = listed.rows
            used = int(order.max()) + 1 if len(order) else 0
            alive = np.zeros(used, dtype=np.bool_)
            alive[order] = True
            positions = np.zeros(used, dtype=np.int64)
            positions[order] = np.arange(len(order))
            self._every = EveryRow(
                Nodes(self._columns, np.arange(used, dtype=np.int64)),
                listed,
                read_only(alive),
                read_only(positions),
                in_order=bool((order == np.arange(used)).all()) if len(order) == used else False,
            )
        return self._every

    def epoch(self) -> NodeEpoch:
        """The names of this moment; another one when a node comes, goes or changes its zone."""
        if self._epoch is None:
            self._epoch = NodeEpoch(self._epochs, tuple(self._names))
        return self._epoch

    def _reordered(self) -> None:
        self._epochs += 1
        self._epoch = None
        self.relaid()
