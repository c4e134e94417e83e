"""What views read of the node table: the `Columns` behind every view that plugins get.

Nothing here changes a row; that is `node_table`'s part, on the same arrays and lists.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.nodes import Compute, ComputeRow, EveryRow, IntArray, News, Nodes, NodeView
from moorage.state.amount_columns import AmountColumns
from moorage.state.columns import CacheError, ChangeLog
from moorage.state.derived import DerivedColumns
from moorage.state.node_columns import LabelColumns, TaintClasses
from moorage.state.node_listing import NodeListing
from moorage.state.pod_entry import NodeLoad
from moorage.state.ranking import LowerPods

NOTHING: Mapping[str, int] = {}


class LiveNode(NodeView):
    """The view of a node of the table. Its sums are those of the load itself, which stays the same object for
    as long as the node is here: every pod that is placed reads them several times."""

    __slots__ = ("nonzero_requested", "requested")

    def __init__(
        self, columns: TableColumns, row: int, node: Node, allocatable: Mapping[str, int], load: NodeLoad
    ) -> None:
        super().__init__(columns, row, node, allocatable)
        self.requested = load.requested  # type: ignore[misc]
        self.nonzero_requested = load.nonzero_requested  # type: ignore[misc]


class TableColumns:
    """All nodes and what runs there. Implements `framework.nodes.Columns`; arrays handed out are read-
    only."""

    def __init__(self, width: int) -> None:
        self.width = width
        """Length of every column."""
        self.node_generation = 0
        """Number of the latest change of any node object."""
        self._rows: dict[str, int] = {}
        """Node name → row, live ones and ghosts."""
        self._names: list[str] = [""] * width
        """Row → name of a live node, else empty."""
        self._views: list[NodeView | None] = [None] * width
        """Row → view; set for live rows and no others."""
        self._loads: list[NodeLoad] = [NodeLoad() for _ in range(width)]
        self.listing = NodeListing(self, self._names)
        """The live rows in snapshot order."""
        self.amounts = AmountColumns(width, self._of_row, self.listing.relaid)
        self.labels = LabelColumns(width)
        self.taints = TaintClasses(width)
        self._changes = ChangeLog(width)
        self._node_changes = ChangeLog(width)
        """Changes of the node objects alone."""
        self.forget_computed()

    # Rows and nodes

    def nodes(self) -> Nodes:
        """All live nodes in snapshot order."""
        return self.listing.nodes()

    def every_row(self) -> EveryRow:
        return self.listing.every_row()

    def node_names(self) -> Sequence[str]:
        return self._names

    def row_of(self, name: str) -> int:
        row = self._rows.get(name, -1)
        return row if row >= 0 and self._views[row] is not None else -1

    def rows_of(self, names: Sequence[str]) -> list[int]:
        """The rows of live nodes. A name that no live node has is a CacheError."""
        rows, views = [self._rows.get(name, -1) for name in names], self._views
        for name, row in zip(names, rows, strict=True):
            if row < 0 or views[row] is None:
                raise CacheError(f"there is no node {name!r}")
        return rows

    def table_rows(self, rows: IntArray) -> IntArray:
        return rows

    def view(self, row: int) -> NodeView:
        view = self._views[row]
        if view is None:
            raise CacheError(f"row {row} has no node")
        return view

    def __len__(self) -> int:
        """Number of live nodes."""
        return len(self.listing)

    def __contains__(self, name: object) -> bool:
        """Whether a live node has this name."""
        return isinstance(name, str) and self.row_of(name) >= 0

    # Pods

    def load_on(self, row: int) -> NodeLoad:
        return self._loads[row]

    def lower_pods_on(self, rows: Sequence[int], priority: int) -> list[LowerPods]:
        loads = self._loads
        return [(loads[row].ranking or loads[row].ranked()).below(priority) for row in rows]

    # Columns that plugins compute

    def node_column(self, key: Hashable, compute: Compute) -> npt.NDArray[Any]:
        found = self._by_node.current(key, self.width)
        return self._by_node.get(key, self, self.width, compute) if found is None else found

    def row_column(
        self, key: Hashable, compute: Compute, compute_row: ComputeRow | None = None
    ) -> npt.NDArray[Any]:
        return self._by_row.get(key, self, self.width, compute, compute_row)

    def forget_computed(self) -> None:
        """Columns that plugins computed are computed anew: the same key may mean other code from now on."""
        self._by_node = DerivedColumns(self._node_changes, self._some, self._views)
        self._by_row = DerivedColumns(self._changes, self._some, self._views)
        self.listing.relaid()

    # What changed

    @property
    def generation(self) -> int:
        """Number of the latest change of any row."""
        return self._changes.generation

    @property
    def generations(self) -> IntArray:
        """Row → number of its latest change."""
        return self._changes.generations

    def changed_since(self, generation: int) -> list[int]:
        """Rows that changed after that generation, each once, ghosts and freed rows included. Costs as much
        as there were changes, and at most one scan of the rows."""
        return self._changes.since(generation)

    def settle(self) -> bool:
        amounts = self.amounts
        if amounts.unwritten:
            amounts.catch_up()
        return True

    def news(self, generation: int) -> News:
        changes, views = self._changes, self._views
        now = changes.generation
        if changes.before_row <= generation < now:  # one row, as for most pods
            view = views[changes.row]
            return now, self.node_generation, [view] if view is not None else []
        found = [views[row] for row in changes.since(generation)]
        return now, self.node_generation, [view for view in found if view is not None]

    # Ghosts included; for checks and dumps, never for plugins

    def known_rows(self) -> Iterator[tuple[str, int]]:
        """Names with rows."""
        yield from self._rows.items()

    def pods_of(self, name: str) -> Sequence[Pod]:
        """Pods accounted on a node or on its ghost."""
        row = self._rows.get(name, -1)
        return self._loads[row].pods() if row >= 0 else ()

    def ghosts(self) -> list[str]:
        """Names that have pods and no node."""
        return [name for name, row in self._rows.items() if self._views[row] is None]

    def _some(self, rows: IntArray) -> Nodes:
        return Nodes(self, rows)

    def _of_row(self, row: int) -> tuple[NodeLoad, Mapping[str, int]]:
        view = self._views[row]
        return self._loads[row], view.allocatable if view is not None else NOTHING
