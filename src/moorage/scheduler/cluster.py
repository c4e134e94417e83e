"""The cluster as cycle, handlers and plugins see it: stores, cache, node table, and what is counted over
them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moorage.api.resources import Resource
from moorage.framework.handle import OnChange
from moorage.state.cache import ClusterCache
from moorage.state.counters import Counting
from moorage.state.derived import Topologies
from moorage.state.indexes import RowPodIndexes
from moorage.state.node_table import NodeTable
from moorage.state.overlay import DryRunRows
from moorage.state.stores import AssumeStore, Stores, Watcher
from moorage.telemetry import logs


class ClusterState:
    """One per process: the parts, each for those who need it."""

    def __init__(self) -> None:
        self.stores = Stores()
        self.table = NodeTable()
        self.cache = ClusterCache(self.table)
        self.pod_indexes = RowPodIndexes()
        """The pod indexes of the plugins of all generations."""
        self.counting = Counting(self.table)
        self.topologies = Topologies(self.table)
        self._assumed: dict[Resource, AssumeStore] = {}

    def version(self, resource: Resource) -> int:
        """A number that grows with every change of an object of this kind."""
        return self.stores[resource].version

    def assume_cache(self, resource: Resource) -> AssumeStore:
        return self._assumed.setdefault(resource, AssumeStore(self.stores.lister(resource)))

    def dry_run_rows(self, node_names: Sequence[str]) -> DryRunRows:
        """Copies of the rows of nodes, for a dry run."""
        return DryRunRows(self.table, self.cache.entry, node_names)


_log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class _Noted:
    plugin: str
    resource: Resource
    callback: OnChange
    old: Any | None
    new: Any | None


class ChangeCallbacks:
    """Who wants to know of which kind. Costs nothing for kinds without a callback."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._watchers: list[tuple[Resource, Watcher]] = []
        self.noted: deque[_Noted] = deque()
        """Changes that no callback has seen yet, in order."""

    def add(self, plugin: str, resource: Resource, callback: OnChange) -> None:
        """From now on; what is in the store already counts as having appeared."""

        def note(old: Any | None, new: Any | None) -> None:
            self.noted.append(_Noted(plugin, resource, callback, old, new))

        self._stores[resource].observe(note)
        self._watchers.append((resource, note))

    def close(self) -> None:
        """Call no callback any more."""
        for resource, watcher in self._watchers:
            self._stores[resource].ignore(watcher)
        self._watchers.clear()
        self.noted.clear()

    def call(self) -> None:
        """Hand on everything that was noted. A callback that breaks loses that one change."""
        while self.noted:
            change = self.noted.popleft()
            try:
                change.callback(change.old, change.new)
            except Exception as error:
                obj = change.new if change.new is not None else change.old
                _log.error(
                    "A callback for changes failed",
                    error=error,
                    stack=True,
                    plugin=change.plugin,
                    resource=change.resource,
                    object=getattr(obj, "key", "?"),
                )
