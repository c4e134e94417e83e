"""NodeTable: the cluster in columns, one row per node.

A row belongs to one node name:

    free ──set_node──▶ live ──remove_node──▶ free, or ghost while pods remain
    free ──add_pod───▶ ghost ──set_node────▶ live
                       ghost ──last remove_pod──▶ free

A live row is listed. A ghost (a node that is gone or not known yet) is accounted but never shown: it has no
name, no labels, no allocatable amounts and no place in the order. Free rows are reused, the lowest first.

`ClusterCache` decides which pods belong where; the table only adds up. It changes between cycles, never
during one. It takes the place of the snapshot in pkg/scheduler/backend/cache/snapshot.go.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from moorage.api.meta import ReadOnlyDict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import node_allocatable
from moorage.framework.nodes import ChangedRows, Compute, ComputeRow, EveryRow, IntArray, Nodes, NodeView
from moorage.state.amounts import StoredAmountColumns
from moorage.state.columns import CacheError, ChangeLog, DerivedColumns, clamp
from moorage.state.node_columns import StoredLabelColumns, TaintClasses
from moorage.state.node_listing import NodeListing, zone_of
from moorage.state.pod_entry import Observers, PodEntry, RowLoad
from moorage.state.ranking import LowerPods

_WIDTH = 64
_NO_AMOUNTS: Mapping[str, int] = {}


class LiveNode(NodeView):
    """The view of a live node.

    Its sums are those of the row's load, which stays the same object while the node exists: every scheduled
    pod reads them several times.
    """

    __slots__ = ("nonzero_requested", "requested")

    def __init__(self, columns: NodeTable, row: int, node: Node, allocatable: Mapping[str, int], load: RowLoad) -> None:
        super().__init__(columns, row, node, allocatable)
        self.requested = load.requested  # type: ignore[misc]
        self.nonzero_requested = load.nonzero_requested  # type: ignore[misc]


class NodeTable:
    """All nodes and the pods that they run. Implements `framework.nodes.Columns`; its arrays are read-only."""

    def __init__(self, width: int = _WIDTH) -> None:
        self.width = width
        """Length of every column."""
        self.node_version = 0
        """Number of the latest change of any node object."""
        self._rows: dict[str, int] = {}
        """Node name → row, of live nodes and ghosts."""
        self._names: list[str] = [""] * width
        """Row → name of a live node, otherwise empty."""
        self._views: list[NodeView | None] = [None] * width
        """Row → view, None if the row is not live."""
        self._loads: list[RowLoad] = [RowLoad() for _ in range(width)]
        self.listing = NodeListing(self, self._names)
        """The live rows in snapshot order."""
        self.amounts = StoredAmountColumns(width, self._amounts_of, self.listing.forget_views)
        self.labels = StoredLabelColumns(width)
        self.taints = TaintClasses(width)
        self._changes = ChangeLog(width)
        self._node_changes = ChangeLog(width)
        """Changes of node objects only."""
        self.forget_derived()
        self.observers = Observers(self._entries, self._live_nodes)
        """Notified of every pod that comes or goes and of every change of a node."""
        self._free: list[int] = list(range(width))
        """Heap of the rows without a name."""
        self._unwritten = self.amounts.unwritten

    # Rows and nodes

    def nodes(self) -> Nodes:
        """Return all live nodes in snapshot order."""
        return self.listing.nodes()

    def every_row(self) -> EveryRow:
        return self.listing.every_row()

    def node_names(self) -> Sequence[str]:
        return self._names

    def row_of(self, name: str) -> int:
        row = self._rows.get(name, -1)
        return row if row >= 0 and self._views[row] is not None else -1

    def rows_of(self, names: Sequence[str]) -> list[int]:
        """Return the rows of live nodes. Raises CacheError for a name that no live node has."""
        rows, views = [self._rows.get(name, -1) for name in names], self._views
        for name, row in zip(names, rows, strict=True):
            if row < 0 or views[row] is None:
                raise CacheError(f"Node {name!r} does not exist.")
        return rows

    def table_rows(self, rows: IntArray) -> IntArray:
        return rows

    def view(self, row: int) -> NodeView:
        view = self._views[row]
        if view is None:
            raise CacheError(f"Row {row} has no node.")
        return view

    def __len__(self) -> int:
        """Return the number of live nodes."""
        return len(self.listing)

    def __contains__(self, name: object) -> bool:
        """Return whether a live node has this name."""
        return isinstance(name, str) and self.row_of(name) >= 0

    # The pods of a row

    def load_on(self, row: int) -> RowLoad:
        return self._loads[row]

    def lower_pods_on(self, rows: Sequence[int], priority: int) -> list[LowerPods]:
        loads = self._loads
        return [(loads[row].ranking or loads[row].ranked()).below(priority) for row in rows]

    # Columns that plugins compute

    def node_column(self, key: Hashable, compute: Compute) -> npt.NDArray[Any]:
        found = self._by_node.current(key, self.width)
        return self._by_node.get(key, self, self.width, compute) if found is None else found

    def row_column(self, key: Hashable, compute: Compute, compute_row: ComputeRow | None = None) -> npt.NDArray[Any]:
        return self._by_row.get(key, self, self.width, compute, compute_row)

    def forget_derived(self) -> None:
        """Drop the columns that plugins computed, because new plugin code may reuse their keys."""
        self._by_node = DerivedColumns(self._node_changes, self._nodes_at, self._views)
        self._by_row = DerivedColumns(self._changes, self._nodes_at, self._views)
        self.listing.forget_views()

    # Reading changes

    @property
    def version(self) -> int:
        """Number of the latest change of any row."""
        return self._changes.version

    @property
    def versions(self) -> IntArray:
        """Row → number of its latest change."""
        return self._changes.versions

    def changed_since(self, version: int) -> list[int]:
        """Return the rows that changed after that version, each once, including ghosts and freed rows.

        The cost is proportional to the number of changes, at most one scan of the rows.
        """
        return self._changes.since(version)

    def settle(self) -> bool:
        amounts = self.amounts
        if amounts.unwritten:
            amounts.catch_up()
        return True

    def changes_since(self, version: int) -> ChangedRows:
        changes, views = self._changes, self._views
        now = changes.version
        if changes.version_before_row <= version < now:  # one changed row: the usual case
            view = views[changes.row]
            return now, self.node_version, [view] if view is not None else []
        found = [views[row] for row in changes.since(version)]
        return now, self.node_version, [view for view in found if view is not None]

    # Including ghosts; for checks and dumps, never for plugins

    def known_rows(self) -> Iterator[tuple[str, int]]:
        """Iterate over node names with their rows."""
        yield from self._rows.items()

    def pods_of(self, name: str) -> Sequence[Pod]:
        """Return the pods accounted on a node, or on its ghost."""
        row = self._rows.get(name, -1)
        return self._loads[row].pods() if row >= 0 else ()

    def ghosts(self) -> list[str]:
        """Return the names that have pods but no node."""
        return [name for name, row in self._rows.items() if self._views[row] is None]

    # Writing; called by ClusterCache

    def set_node(self, node: Node) -> int:
        """Add or update a node, or revive its ghost. Raises QuantityError and changes nothing if an amount is
        invalid."""
        if not node.name:
            raise CacheError("Cannot add a node without a name to the table.")
        row = self._rows.get(node.name, -1)
        old = self._views[row] if row >= 0 else None
        if old is not None and old.node.status.allocatable == node.status.allocatable:
            allocatable = old.allocatable
        else:
            amounts = node_allocatable(node)
            allocatable = ReadOnlyDict({name: clamp(amount) for name, amount in amounts.items()})
        if row < 0:
            row = self._take_row(node.name)
        self.amounts.set_node(row, old.allocatable if old else _NO_AMOUNTS, allocatable)
        self.labels.put(row, node.labels)
        self.taints.put(row, node)
        self._names[row] = node.name
        self._views[row] = LiveNode(self, row, node, allocatable, self._loads[row])
        self.listing.put(row, zone_of(node))
        self._node_changed(row, old.node if old else None, node)
        return row

    def remove_node(self, name: str) -> bool:
        """Remove a node. Its row stays as a ghost while it has pods. Returns False for an unknown node."""
        row = self.row_of(name)
        if row < 0:
            return False
        gone = self.view(row)
        self.amounts.set_node(row, gone.allocatable, _NO_AMOUNTS)
        self.labels.clear(row)
        self.taints.clear(row)
        self._names[row] = ""
        self._views[row] = None
        self.listing.remove(row)
        self._node_changed(row, gone.node, None)
        self._release_if_unused(name, row)
        return True

    def add_pod(self, node_name: str, entry: PodEntry) -> int:
        """Account a pod. An unknown node becomes a ghost. Raises CacheError if the UID is already there."""
        row = self._rows.get(node_name, -1)
        if row < 0:
            row = self._take_row(node_name)
        self._loads[row].add(entry)
        self._unwritten[row] = None
        self._changes.mark(row)
        observers = self.observers
        for observer in entry.listeners if entry.prepared_mark is observers.mark else observers.all:
            observer.pod_added(row, entry)
        return row

    def replace_pod(self, node_name: str, old: PodEntry, new: PodEntry) -> None:
        """Account a new version of a pod that stays on its node; its requests may have changed."""
        if new.amounts is old.amounts or new.amounts == old.amounts:
            row = self._rows[node_name]
            self._loads[row].replace(new)
            self._changes.mark(row)
            for observer in self.observers.all:
                observer.pod_replaced(row, old, new)
        else:
            self.remove_pod(node_name, old)
            self.add_pod(node_name, new)

    def remove_pod(self, node_name: str, entry: PodEntry) -> None:
        """Undo `add_pod`. The last pod of a ghost frees its row. Raises CacheError for an unknown pod."""
        row = self._rows.get(node_name, -1)
        if row < 0:
            raise CacheError(f"Cannot remove pod {entry.pod.key}: node {node_name!r} has no row.")
        self._loads[row].remove(entry)
        self._unwritten[row] = None
        self._changes.mark(row)
        for observer in self.observers.all:
            observer.pod_removed(row, entry)
        self._release_if_unused(node_name, row)

    def _node_changed(self, row: int, old: Node | None, new: Node | None) -> None:
        self._changes.mark(row)
        self._node_changes.mark(row)
        self.node_version = self._node_changes.version
        for observer in self.observers.of_nodes:
            observer.node_changed(row, old, new)

    def _entries(self) -> Iterator[tuple[int, PodEntry]]:
        """Iterate over all pods with their rows, including ghosts."""
        for row in self._rows.values():
            for entry in self._loads[row].entries.values():
                yield row, entry

    def _live_nodes(self) -> Iterator[tuple[int, Node]]:
        yield from ((row, view.node) for row, view in enumerate(self._views) if view is not None)

    def _take_row(self, name: str) -> int:
        if not self._free:
            self._grow()
        row = self._rows[name] = heapq.heappop(self._free)
        return row

    def _release_if_unused(self, name: str, row: int) -> None:
        """Free the row if it has neither node nor pods. All its sums are zero then."""
        if self._views[row] is None and not self._loads[row].entries:
            if row in self._unwritten:
                self.amounts.catch_up()
            del self._rows[name]
            self._loads[row] = RowLoad()
            heapq.heappush(self._free, row)

    def _grow(self) -> None:
        old, width = self.width, 2 * self.width
        for part in (self.amounts, self.labels, self.taints, self._changes, self._node_changes):
            part.grow(width)
        self._names.extend([""] * old)
        self._views.extend([None] * old)
        self._loads.extend(RowLoad() for _ in range(old))
        self._free = list(range(old, width))
        self.width = width

    def _nodes_at(self, rows: IntArray) -> Nodes:
        return Nodes(self, rows)

    def _amounts_of(self, row: int) -> tuple[RowLoad, Mapping[str, int]]:
        view = self._views[row]
        return self._loads[row], view.allocatable if view is not None else _NO_AMOUNTS
