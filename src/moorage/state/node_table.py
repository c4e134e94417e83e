"""NodeTable: the cluster in columns, one row per node; and how rows change.

A row belongs to one node name:

    free ──set_node──▶ live ──remove_node──▶ free, or ghost while pods remain
    free ──add_pod───▶ ghost ──set_node────▶ live
                       ghost ──last remove_pod──▶ free

A live row is listed. A ghost (a node that is gone, or not yet known) is accounted and never shown: it has no
name, no labels, no allocatable, and no place in the order. Free rows are reused, the lowest first.

Which pods belong where is decided by `ClusterCache`; this table only adds up. It is changed between cycles
only. What is read of it is in `table_columns`.

Observers (counters, indexes, terms) are notified of what happens here. Most pods concern one or two of them:
a pending pod is shown to all in advance, and when it is placed only those are notified that it concerns."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from moorage.api.meta import ReadOnlyDict
from moorage.api.node import Node
from moorage.api.requests import node_allocatable
from moorage.state.columns import CacheError, clamp
from moorage.state.node_listing import zone_of
from moorage.state.pod_entry import NodeLoad, PodEntry
from moorage.state.table_columns import NOTHING, LiveNode, TableColumns

_WIDTH = 64


class NodeTable(TableColumns):
    """All nodes and what runs there, to be changed by `ClusterCache`."""

    def __init__(self, width: int = _WIDTH) -> None:
        super().__init__(width)
        self.observers = Observers(self._entries, self._live_nodes)
        """Notified of every pod that comes or goes, and of every change of a node."""
        self._free: list[int] = list(range(width))
        """Heap of the rows that no name has."""
        self._unwritten = self.amounts.unwritten

    def set_node(self, node: Node) -> int:
        """Add or update a node; revives its ghost. A QuantityError passes through and changes nothing."""
        if not node.name:
            raise CacheError("a node without a name has no place in the table")
        row = self._rows.get(node.name, -1)
        old = self._views[row] if row >= 0 else None
        if old is not None and old.node.status.allocatable == node.status.allocatable:
            allocatable = old.allocatable
        else:
            amounts = node_allocatable(node)
            allocatable = ReadOnlyDict({name: clamp(amount) for name, amount in amounts.items()})
        if row < 0:
            row = self._take_row(node.name)
        self.amounts.set_node(row, old.allocatable if old else NOTHING, allocatable)
        self.labels.put(row, node.labels)
        self.taints.put(row, node)
        self._names[row] = node.name
        self._views[row] = LiveNode(self, row, node, allocatable, self._loads[row])
        self.listing.put(row, zone_of(node))
        self._node_changed(row, old.node if old else None, node)
        return row

    def remove_node(self, name: str) -> bool:
        """Take a node away. Its row stays as a ghost while it has pods. False when there is no such node."""
        row = self.row_of(name)
        if row < 0:
            return False
        gone = self.view(row)
        self.amounts.set_node(row, gone.allocatable, NOTHING)
        self.labels.clear(row)
        self.taints.clear(row)
        self._names[row] = ""
        self._views[row] = None
        self.listing.remove(row)
        self._node_changed(row, gone.node, None)
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
        observers = self.observers
        for observer in entry.listeners if entry.prepared is observers.mark else observers.all:
            observer.pod_added(row, entry)
        return row

    def replace_pod(self, node_name: str, old: PodEntry, new: PodEntry) -> None:
        """A new version of a pod that stays on its node; its requests may have changed."""
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
        """Undo `add_pod`; the last pod of a ghost frees its row. An unknown pod is a CacheError."""
        row = self._rows.get(node_name, -1)
        if row < 0:
            raise CacheError(f"no row for node {node_name!r} of pod {entry.pod.key}")
        self._loads[row].remove(entry)
        self._unwritten[row] = None
        self._changes.mark(row)
        for observer in self.observers.all:
            observer.pod_removed(row, entry)
        self._release_if_unused(node_name, row)

    def _node_changed(self, row: int, old: Node | None, new: Node | None) -> None:
        self._changes.mark(row)
        self._node_changes.mark(row)
        self.node_generation = self._node_changes.generation
        for observer in self.observers.of_nodes:
            observer.node_changed(row, old, new)

    def _entries(self) -> Iterator[tuple[int, PodEntry]]:
        """All pods with their rows, ghosts included."""
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
        """A row is free again when it has neither node nor pods; all its sums are zero then."""
        if self._views[row] is None and not self._loads[row].entries:
            if row in self._unwritten:
                self.amounts.catch_up()
            del self._rows[name]
            self._loads[row] = NodeLoad()
            heapq.heappush(self._free, row)

    def _grow(self) -> None:
        old, width = self.width, 2 * self.width
        for part in (self.amounts, self.labels, self.taints, self._changes, self._node_changes):
            part.grow(width)
        self._names.extend([""] * old)
        self._views.extend([None] * old)
        self._loads.extend(NodeLoad() for _ in range(old))
        self._free = list(range(old, width))
        self.width = width


class NodeObserver(Protocol):
    """Notified of every change of a node, after it has happened."""

    def node_changed(self, row: int, old: Node | None, new: Node | None) -> None: ...


class Observer(Protocol):
    """Notified of every pod that comes or goes, after it has happened. Ghost rows have pods and no node."""

    def prepare(self, entry: PodEntry) -> bool:
        """The pod may come: what can be worked out about it now need not be when it does. False: this
        observer need not be notified when it comes."""
        ...

    def pod_added(self, row: int, entry: PodEntry) -> None: ...

    def pod_removed(self, row: int, entry: PodEntry) -> None: ...

    def pod_replaced(self, row: int, old: PodEntry, new: PodEntry) -> None:
        """A new version of a pod that stays on its row with the same demand; most change nothing here."""
        ...


class Observers:
    """All of one table. `pods` and `nodes` say what is there already, with the rows."""

    __slots__ = ("_nodes", "all", "mark", "of_nodes", "pods")

    def __init__(
        self,
        pods: Callable[[], Iterable[tuple[int, PodEntry]]],
        nodes: Callable[[], Iterable[tuple[int, Node]]],
    ) -> None:
        self.pods = pods
        """All pods that are here, with their rows."""
        self._nodes = nodes
        self.all: list[Observer] = []
        self.of_nodes: list[NodeObserver] = []
        self.mark = object()
        """What entries are marked with that the observers of now have prepared."""

    def observe(self, observer: Observer) -> None:
        """Notify `observer` of all pods that are here, and from now on of every one that comes or goes. Pods
        stay on their row whatever becomes of the node."""
        self.show_pods(observer)
        self.all.append(observer)
        self.forget_prepared()

    def show_pods(self, observer: Observer) -> None:
        """Notify `observer` of all pods that are here."""
        for row, entry in self.pods():
            observer.pod_added(row, entry)

    def observe_nodes(self, observer: NodeObserver) -> None:
        """Notify `observer` of all nodes that are here, and from now on of every change of one."""
        for row, node in self._nodes():
            observer.node_changed(row, None, node)
        self.of_nodes.append(observer)

    def ignore_nodes(self, observer: NodeObserver) -> None:
        """Notify `observer` no longer."""
        self.of_nodes.remove(observer)

    def prepare(self, entry: PodEntry) -> None:
        """Show a pending pod to all observers."""
        entry.listeners = tuple([observer for observer in self.all if observer.prepare(entry)])
        entry.prepared = self.mark

    def forget_prepared(self) -> None:
        """An observer has become interested in other pods than before."""
        self.mark = object()
