"""NodeTable: the cluster in columns, one row per node. The `Columns` behind every view that plugins get.

A row belongs to one node name:

    free ──set_node──▶ live ──remove_node──▶ free, or ghost while pods remain
    free ──add_pod───▶ ghost ──set_node────▶ live
                       ghost ──last remove_pod──▶ free

A live row is listed. A ghost (a node that is gone, or not yet known) is accounted and never shown: it has no
name, no labels, no allocatable, and no place in the order. Free rows are reused, the lowest first.

Which pods belong where is decided by `ClusterCache`; this table only adds up. It is changed between cycles
only.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.requests import node_allocatable
from mooring.framework.nodes import (
    CodeArray,
    Compute,
    ComputeRow,
    FloatArray,
    IntArray,
    News,
    Nodes,
    NodeView,
    TaintClass,
)
from mooring.framework.ranking import LowerPods, RankedPods
from mooring.state.amount_columns import AmountColumns
from mooring.state.columns import CacheError, ChangeLog, clamp
from mooring.state.derived import DerivedColumns
from mooring.state.node_columns import LabelColumns, TaintClasses
from mooring.state.node_listing import NodeListing, zone_of
from mooring.state.node_load import NodeLoad
from mooring.state.observers import NodeObserver, Observer, Observers
from mooring.state.pod_entry import PodEntry

_WIDTH = 64
_NOTHING: Mapping[str, int] = {}


class LiveNode(NodeView):
    """The view of a node of the table. Its sums are those of the load itself, which stays the same object for
    as long as the node is here: every pod that is placed reads them several times."""

    __slots__ = ("nonzero_requested", "requested")

    def __init__(
        self, columns: NodeTable, row: int, node: Node, allocatable: Mapping[str, int], load: NodeLoad
    ) -> None:
        super().__init__(columns, row, node, allocatable)
        self.requested = load.shown  # type: ignore[misc]
        self.nonzero_requested = load.shown_nonzero  # type: ignore[misc]


class NodeTable:
    """All nodes and what runs there. Implements `framework.nodes.Columns`; arrays handed out are read-
    only."""

    def __init__(self, width: int = _WIDTH) -> None:
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
        self._free: list[int] = list(range(width))
        """Heap of the rows that no name has."""
        self._listing = NodeListing(self, self._names)
        self.nodes = self._listing.nodes
        self.every_row = self._listing.every_row
        self.epoch = self._listing.epoch
        self._amounts = AmountColumns(width, self._of_row, self._listing.relaid)
        self._unwritten = self._amounts.unwritten
        self.allocatable = self._amounts.allocatable
        self.requested = self._amounts.requested
        self.nonzero_requested = self._amounts.nonzero_requested
        self.free = self._amounts.free
        self.floats = self._amounts.floats
        self._labels = LabelColumns(width)
        self._taints = TaintClasses(width)
        self._changes = ChangeLog(width)
        self._observers = Observers()
        self.prepare = self._observers.prepare
        self.forget_prepared = self._observers.forget_prepared
        self._node_changes = ChangeLog(width)
        """Changes of the node objects alone."""
        self._by_node = DerivedColumns(self._node_changes, self._some, self._views)
        self._by_row = DerivedColumns(self._changes, self._some, self._views)

    # What views read: framework.nodes.Columns; the amounts are `AmountColumns`' own.

    def label_codes(self, key: str) -> CodeArray:
        return self._labels.codes(key)

    def label_values(self, key: str) -> Mapping[str, int]:
        """Codes stay valid for as long as this returns the same object."""
        return self._labels.values(key)

    def label_numbers(self, key: str) -> FloatArray:
        return self._labels.numbers(key)

    def taint_class_ids(self) -> CodeArray:
        return self._taints.ids

    def taint_classes(self) -> Sequence[TaintClass]:
        """Ids stay valid for as long as this returns the same object."""
        return self._taints.classes

    def node_column(self, key: Hashable, compute: Compute) -> npt.NDArray[Any]:
        found = self._by_node.current(key, self.width)
        return self._by_node.get(key, self, self.width, compute) if found is None else found

    def row_column(
        self, key: Hashable, compute: Compute, compute_row: ComputeRow | None = None
    ) -> npt.NDArray[Any]:
        return self._by_row.get(key, self, self.width, compute, compute_row)

    def _some(self, rows: IntArray) -> Nodes:
        return Nodes(self, rows)

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

    def view(self, row: int) -> NodeView:
        view = self._views[row]
        if view is None:
            raise CacheError(f"row {row} has no node")
        return view

    def pods_on(self, row: int) -> Sequence[Pod]:
        return self._loads[row].listing()

    def ranked_on(self, row: int) -> RankedPods:
        return self._loads[row].ranked()

    def lower_pods_on(self, rows: Sequence[int], priority: int) -> list[LowerPods]:
        loads = self._loads
        return [(loads[row].ranking or loads[row].ranked()).below(priority) for row in rows]

    def load_on(self, row: int) -> NodeLoad:
        """The pods and sums of a row; for overlays, which copy them."""
        return self._loads[row]

    def requested_on(self, row: int) -> Mapping[str, int]:
        return self._loads[row].shown

    def nonzero_requested_on(self, row: int) -> Mapping[str, int]:
        return self._loads[row].shown_nonzero

    # The set of nodes

    @property
    def order(self) -> IntArray:
        """Live rows in snapshot order."""
        return self.nodes().rows

    def __len__(self) -> int:
        """Number of live nodes."""
        return len(self._listing)

    def __contains__(self, name: object) -> bool:
        """Whether a live node has this name."""
        return isinstance(name, str) and self.row_of(name) >= 0

    def known_rows(self) -> Iterator[tuple[str, int]]:
        """Names with rows, ghosts included; for checks and dumps, never for plugins."""
        yield from self._rows.items()

    def pods_of(self, name: str) -> Sequence[Pod]:
        """Pods accounted on a node or on its ghost."""
        row = self._rows.get(name, -1)
        return self._loads[row].listing() if row >= 0 else ()

    def ghosts(self) -> list[str]:
        """Names that have pods and no node."""
        return [name for name, row in self._rows.items() if self._views[row] is None]

    def table_rows(self, rows: IntArray) -> IntArray:
        return rows

    def observe(self, observer: Observer) -> None:
        """Tell `observer` about all pods that are here, and from now on about every one that comes or goes.
        They stay on their row whatever becomes of the node."""
        self.tell(observer)
        self._observers.add(observer)

    def tell(self, observer: Observer) -> None:
        """Tell `observer` about all pods that are here."""
        for row in self._rows.values():
            for entry in self._loads[row].entries.values():
                observer.pod_added(row, entry)

    def observe_nodes(self, observer: NodeObserver) -> None:
        """Tell `observer` about all nodes that are here, and from now on about every change of one."""
        for row, view in enumerate(self._views):
            if view is not None:
                observer.node_changed(row, None, view.node)
        self._observers.of_nodes.append(observer)

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
        if self._unwritten:
            self._amounts.catch_up()
        return True

    def news(self, generation: int) -> News:
        changes, views = self._changes, self._views
        now = changes.generation
        if changes.before_row <= generation < now:  # one row, as for most pods
            view = views[changes.row]
            return now, self.node_generation, [view] if view is not None else []
        found = [views[row] for row in changes.since(generation)]
        return now, self.node_generation, [view for view in found if view is not None]

    # Changes

    def set_node(self, node: Node) -> int:
        """Add or update a node; revives its ghost. A QuantityError passes through and changes nothing."""
        if not node.name:
            raise CacheError("a node without a name has no place in the table")
        row = self._rows.get(node.name, -1)
        old = self._views[row] if row >= 0 else None
        if old is not None and old.node.status.allocatable == node.status.allocatable:
            allocatable = old.allocatable
        else:
            allocatable = {name: clamp(amount) for name, amount in node_allocatable(node).items()}
        if row < 0:
            row = self._take_row(node.name)
        self._amounts.set_node(row, old.allocatable if old else _NOTHING, allocatable)
        self._labels.put(row, node.labels)
        self._taints.put(row, node)
        self._names[row] = node.name
        self._views[row] = LiveNode(self, row, node, allocatable, self._loads[row])
        self._listing.put(row, zone_of(node))
        self._changes.mark(row)
        self._node_changes.mark(row)
        self.node_generation = self._node_changes.generation
        self._observers.node_changed(row, old.node if old else None, node)
        return row

    def remove_node(self, name: str) -> bool:
        """Take a node away. Its row stays as a ghost while it has pods. False when there is no such node."""
        row = self.row_of(name)
        if row < 0:
            return False
        gone = self.view(row)
        self._amounts.set_node(row, gone.allocatable, _NOTHING)
        self._labels.clear(row)
        self._taints.clear(row)
        self._names[row] = ""
        self._views[row] = None
        self._listing.remove(row)
        self._changes.mark(row)
        self._node_changes.mark(row)
        self.node_generation = self._node_changes.generation
        self._observers.node_changed(row, gone.node, None)
        self._release_if_unused(name, row)
        return True

    def add_pod(self, node_name: str, entry: PodEntry) -> int:
        """Account a pod; on an unknown node it makes a ghost. A UID that is there already is a CacheError."""
        row = self._rows.get(node_name, -1)
        if row < 0:
            row = self._take_row(node_name)
        self._loads[row].add(entry)
        self._unwritten[row] = None
        self._changes.mark(row)
        observers = self._observers
        for observer in entry.listeners if entry.prepared is observers.mark else observers.all:
            observer.pod_added(row, entry)
        return row

    def replace_pod(self, node_name: str, old: PodEntry, new: PodEntry) -> None:
        """A new version of a pod that stays on its node; its requests may have changed."""
        if new.amounts is old.amounts or new.amounts == old.amounts:
            row = self._rows[node_name]
            self._loads[row].replace(new)
            self._changes.mark(row)
            self._observers.pod_replaced(row, old, new)
        else:
            self.remove_pod(node_name, old)
            self.add_pod(node_name, new)

    def remove_pod(self, node_name: str, entry: PodEntry) -> None:
        """Undo `add_pod`; the last pod of a ghost frees its row. An unknown pod is a CacheError."""
        row = self._rows.get(node_name, -1)
        if row < 0:
            raise CacheError(f"no row for node {node_name!r} of pod {entry.pod.key}")
        self._loads[row].remove(entry)
        self._unwritten[row] = None
        self._changes.mark(row)
        self._observers.pod_removed(row, entry)
        self._release_if_unused(node_name, row)

    def _of_row(self, row: int) -> tuple[NodeLoad, Mapping[str, int]]:
        view = self._views[row]
        return self._loads[row], view.allocatable if view is not None else _NOTHING

    def _take_row(self, name: str) -> int:
        if not self._free:
            self._grow()
        row = self._rows[name] = heapq.heappop(self._free)
        return row

    def _release_if_unused(self, name: str, row: int) -> None:
        """A row is free again when it has neither node nor pods; all its sums are zero then."""
        if self._views[row] is None and not self._loads[row].entries:
            if row in self._unwritten:
                self._amounts.catch_up()
            del self._rows[name]
            self._loads[row] = NodeLoad()
            heapq.heappush(self._free, row)

    def _grow(self) -> None:
        old, width = self.width, 2 * self.width
        self._amounts.grow(width)
        self._labels.grow(width)
        self._taints.grow(width)
        self._changes.grow(width)
        self._node_changes.grow(width)
        self._names.extend([""] * old)
        self._views.extend([None] * old)
        self._loads.extend(NodeLoad() for _ in range(old))
        self._free = list(range(old, width))
        self.width = width
