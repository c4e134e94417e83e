"""The cluster as cycle, handlers and plugins see it: stores, cache, node table, and what is counted over
them."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.resources import Resource
from moorage.state.cache import ClusterCache
from moorage.state.columns import Topologies
from moorage.state.counting import LazyCounting
from moorage.state.indexes import RowPodIndexes
from moorage.state.node_table import NodeTable
from moorage.state.overlay import OverlayRows
from moorage.state.stores import AssumeStore, Stores


class ClusterState:
    """One per process: the parts, each for those who need it."""

    def __init__(self) -> None:
        self.stores = Stores()
        self.table = NodeTable()
        self.cache = ClusterCache(self.table)
        self.pod_indexes = RowPodIndexes()
        """The pod indexes of the plugins of all generations."""
        self.counting = LazyCounting(self.table)
        self.topologies = Topologies(self.table)
        self._assumed: dict[Resource, AssumeStore] = {}

    def version(self, resource: Resource) -> int:
        """A number that grows with every change of an object of this kind."""
        return self.stores[resource].version

    def assume_cache(self, resource: Resource) -> AssumeStore:
        return self._assumed.setdefault(resource, AssumeStore(self.stores.lister(resource)))

    def dry_run_rows(self, node_names: Sequence[str]) -> OverlayRows:
        """Copies of the rows of nodes, for a dry run."""
        return OverlayRows(self.table, self.cache.entry, node_names)
