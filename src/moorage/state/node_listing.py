"""The live rows of the table in snapshot order: as nodes, as all rows at once, and as names for records.

The order takes one node of each zone in turn, as pkg/scheduler/backend/cache/node_tree.go does. With sampling
it decides which nodes are evaluated, so it must spread over zones and equal upstream's order. A listing stays
the same object until the order changes, so that its holders can tell whether it is still valid.
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
"""Region and zone; two empty strings if a node has neither label."""

_REGION = ("failure-domain.beta.kubernetes.io/region", REGION)
_ZONE = ("failure-domain.beta.kubernetes.io/zone", ZONE)
_NOTHING = -1


def zone_of(node: Node) -> Zone:
    """Return the zone of a node. As upstream, the old label names win."""
    return _first_label(node, _REGION), _first_label(node, _ZONE)


def _first_label(node: Node, keys: tuple[str, ...]) -> str:
    labels = node.metadata.labels
    return next((labels[key] for key in keys if key in labels), "")


@dataclass(frozen=True, slots=True)
class NodeEpoch:
    """Maps rows to node names for as long as the set of nodes does not change; all records of that time share it."""

    number: int
    names: Sequence[str]


class NodeOrder:
    """Rows by zone: zones in the order in which they first appeared, rows in the order in which they were added.

    A zone disappears with its last row. `rows` is always a permutation of the rows that were added and not removed.
    """

    __slots__ = ("_zone_of", "_zones")

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[int, None]] = {}
        """Zone → rows. No zone is empty."""
        self._zone_of: dict[int, Zone] = {}

    def __len__(self) -> int:
        return len(self._zone_of)

    def put(self, row: int, zone: Zone) -> bool:
        """Add the row, or move it to the end of another zone. Returns False if nothing changed."""
        if self._zone_of.get(row) == zone:
            return False
        self.remove(row)
        self._zone_of[row] = zone
        self._zones.setdefault(zone, {})[row] = None
        return True

    def remove(self, row: int) -> bool:
        """Remove the row. Returns False if it is unknown."""
        zone = self._zone_of.pop(row, None)
        if zone is None:
            return False
        members = self._zones[zone]
        del members[row]
        if not members:
            del self._zones[zone]
        return True

    def rows(self) -> list[int]:
        """Return all rows: the first of each zone, then the second of each zone that has one, and so on."""
        turns = zip_longest(*self._zones.values(), fillvalue=_NOTHING)
        return [row for row in chain.from_iterable(turns) if row != _NOTHING]


class NodeListing:
    """The listed rows and their order. `names` is the table's own list, row by row."""

    def __init__(self, columns: Columns, names: Sequence[str]) -> None:
        self._columns = columns
        self._names = names
        self._order = NodeOrder()
        self._nodes: Nodes | None = None
        self._every: EveryRow | None = None
        self._epoch: NodeEpoch | None = None
        self._epochs = 0
        """How often the order has changed; the number of the current epoch."""

    def __len__(self) -> int:
        return len(self._order)

    def put(self, row: int, zone: Zone) -> None:
        """List a row whose node is in this zone."""
        if self._order.put(row, zone):
            self._order_changed()

    def remove(self, row: int) -> None:
        self._order.remove(row)
        self._order_changed()

    def forget_views(self) -> None:
        """Drop the views, because columns were replaced that they do not know."""
        self._nodes = self._every = None

    def nodes(self) -> Nodes:
        """Return all live nodes in snapshot order."""
        if self._nodes is None:
            rows = np.array(self._order.rows(), dtype=np.int64)
            rows.flags.writeable = False
            self._nodes = Nodes(self._columns, rows)
        return self._nodes

    def every_row(self) -> EveryRow:
        """Return all rows up to the highest one in use."""
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
        """Return the current names. A new object when a node is added, removed or changes its zone."""
        if self._epoch is None:
            self._epoch = NodeEpoch(self._epochs, tuple(self._names))
        return self._epoch

    def _order_changed(self) -> None:
        self._epochs += 1
        self._epoch = None
        self.forget_views()
