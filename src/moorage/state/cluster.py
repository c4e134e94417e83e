"""The state of the cluster, and the callbacks that plugins register for its changes.

A change is noted when its store applies it. Callbacks run after all received changes have been applied, so
they see a consistent state of the whole cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

from moorage.api.failures import is_interruption
from moorage.api.resources import Resource
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.framework.handle import OnChange
from moorage.state.cache import ClusterCache
from moorage.state.columns import Topologies
from moorage.state.counting import LazyCounting
from moorage.state.indexes import RowPodIndexes
from moorage.state.node_table import NodeTable
from moorage.state.overlay import OverlayRows
from moorage.state.stores import AssumeStore, Stores
from moorage.telemetry import logs


class ClusterState:
    """The stores, cache, node table, counts and indexes of a process."""

    def __init__(self, behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> None:
        self.behaviour = behaviour
        """What kube-scheduler of the emulated version does; it never changes."""
        self.stores = Stores()
        self.table = NodeTable()
        self.cache = ClusterCache(self.table, behaviour)
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


class ChangeWatcher:
    """A callback of a plugin for one kind. The stores call it; it notes the change with the callbacks it belongs to."""

    __slots__ = ("callback", "owner", "plugin", "resource")

    def __init__(self, owner: ChangeCallbacks, plugin: str, resource: Resource, callback: OnChange) -> None:
        self.owner = owner
        self.plugin = plugin
        self.resource = resource
        self.callback = callback

    def __call__(self, old: Any | None, new: Any | None) -> None:
        self.owner.noted.append((self, old, new))


class ChangeCallbacks:
    """The callbacks of plugins by kind. Kinds without a callback cost nothing."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._watchers: list[ChangeWatcher] = []
        self.noted: deque[tuple[ChangeWatcher, Any | None, Any | None]] = deque()
        """Changes that no callback has received yet, in order."""

    def add(self, plugin: str, resource: Resource, callback: OnChange) -> ChangeWatcher:
        """Register a callback. Objects that are already in the store are delivered as additions."""
        watcher = ChangeWatcher(self, plugin, resource, callback)
        self._stores[resource].observe(watcher)
        self._watchers.append(watcher)
        return watcher

    def take_over(self, other: ChangeCallbacks, watchers: Collection[ChangeWatcher]) -> None:
        """Take over callbacks of plugins that stay, with the changes that they have not received yet."""
        for watcher in watchers:
            other._watchers.remove(watcher)
            self._watchers.append(watcher)
            watcher.owner = self
        self.noted.extend(change for change in other.noted if change[0].owner is self)

    def close(self) -> None:
        """Unregister all callbacks."""
        for watcher in self._watchers:
            self._stores[watcher.resource].ignore(watcher)
        self._watchers.clear()
        self.noted.clear()

    def call(self) -> None:
        """Deliver all noted changes. A callback that raises misses only that change."""
        while self.noted:
            watcher, old, new = self.noted.popleft()
            try:
                watcher.callback(old, new)
            except BaseException as error:
                if is_interruption(error):
                    raise
                obj = new if new is not None else old
                _log.error(
                    "Change callback of plugin failed",
                    error=error,
                    stack=True,
                    plugin=watcher.plugin,
                    resource=watcher.resource,
                    object=getattr(obj, "key", "?"),
                )
