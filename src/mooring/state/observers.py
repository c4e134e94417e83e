"""The parts of the state that are notified of what happens in the node table: counters, indexes, terms.

Most pods concern one or two of them. A pending pod is shown to all observers in advance, and when it is
placed only those are notified that it concerns. The table itself calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from mooring.api.node import Node
from mooring.state.pod_entry import PodEntry


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

    __slots__ = ("_nodes", "_pods", "all", "mark", "of_nodes")

    def __init__(
        self,
        pods: Callable[[], Iterable[tuple[int, PodEntry]]],
        nodes: Callable[[], Iterable[tuple[int, Node]]],
    ) -> None:
        self._pods = pods
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
        for row, entry in self._pods():
            observer.pod_added(row, entry)

    def observe_nodes(self, observer: NodeObserver) -> None:
        """Notify `observer` of all nodes that are here, and from now on of every change of one."""
        for row, node in self._nodes():
            observer.node_changed(row, None, node)
        self.of_nodes.append(observer)

    def prepare(self, entry: PodEntry) -> None:
        """Show a pending pod to all observers."""
        entry.listeners = tuple([observer for observer in self.all if observer.prepare(entry)])
        entry.prepared = self.mark

    def forget_prepared(self) -> None:
        """An observer has become interested in other pods than before."""
        self.mark = object()
