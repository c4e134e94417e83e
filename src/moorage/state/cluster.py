"""The state of the cluster, and the callbacks that plugins register for its changes.

A change is noted when its store applies it. Callbacks run after all received changes have been applied, so
they see a consistent state of the whole cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moorage.api.resources import Resource
from moorage.framework.handle import OnChange
from moorage.state.cache import ClusterCache
from moorage.state.columns import Topologies
from moorage.state.counting import LazyCounting
from moorage.state.indexes import RowPodIndexes
from moorage.state.node_table import NodeTable
from moorage.state.overlay import OverlayRows
from moorage.state.stores import AssumeStore, Stores, Watcher
from moorage.telemetry import logs


class ClusterState:
    """The stores, cache, node table, counts and indexes of a process."""

    def __init__(self) -> None:
        self.stores = Stores()
        self.table = NodeTable()
        self.cache = ClusterCache(self.table)
        self.pod_indexes = RowPodIndexes()
        """The pod indexes that plugins of all generations use."""
        self.counting = LazyCounting(self.table)
        self.topologies = Topologies(self.table)
        self._assumed: dict[Resource, AssumeStore] = {}

    def version(self, resource: Resource) -> int:
        """Return a number that increases with every change of an object of this kind."""
        return self.stores[resource].version

    def assume_cache(self, resource: Resource) -> AssumeStore:
        """Return the assume cache of a kind, creating it on first use."""
        return self._assumed.setdefault(resource, AssumeStore(self.stores.lister(resource)))

    def dry_run_rows(self, node_names: Sequence[str]) -> OverlayRows:
        """Return copies of the rows of these nodes, for a dry run."""
        return OverlayRows(self.table, self.cache.entry, node_names)


_log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class _Noted:
    """A change that a callback has not received yet."""

    plugin: str
    resource: Resource
    callback: OnChange
    old: Any | None
    new: Any | None


class ChangeCallbacks:
    """The callbacks of plugins by kind. Kinds without a callback cost nothing."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._watchers: list[tuple[Resource, Watcher]] = []
        self.noted: deque[_Noted] = deque()
        """Changes that no callback has received yet, in order."""

    def add(self, plugin: str, resource: Resource, callback: OnChange) -> None:
        """Register a callback. Objects that are already in the store are delivered as additions."""

        def note(old: Any | None, new: Any | None) -> None:
            self.noted.append(_Noted(plugin, resource, callback, old, new))

        self._stores[resource].observe(note)
        self._watchers.append((resource, note))

    def close(self) -> None:
        """Unregister all callbacks."""
        for resource, watcher in self._watchers:
            self._stores[resource].ignore(watcher)
        self._watchers.clear()
        self.noted.clear()

    def call(self) -> None:
        """Deliver all noted changes. A callback that raises misses only that change."""
        while self.noted:
            change = self.noted.popleft()
            try:
                change.callback(change.old, change.new)
            except Exception as error:
                obj = change.new if change.new is not None else change.old
                _log.error(
                    "Change callback of plugin failed",
                    error=error,
                    stack=True,
                    plugin=change.plugin,
                    resource=change.resource,
                    object=getattr(obj, "key", "?"),
                )
