"""The live rows of the table in snapshot order: as nodes, as all rows at once, and as names for records.

Each of these is the same object until the order changes; who keeps one knows by that whether it still holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.framework.nodes import Columns, EveryRow, Nodes
from mooring.framework.record import NodeEpoch
from mooring.state.node_order import NodeOrder, Zone
from mooring.state.read_only import read_only


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
