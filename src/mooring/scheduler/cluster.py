"""The cluster as cycle, handlers and plugins see it: stores, cache, node table, and what is counted over
them."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.pod import Pod
from mooring.api.resources import Resource
from mooring.framework.handle import Nominator
from mooring.framework.nodes import EveryRow
from mooring.framework.record import NodeEpoch
from mooring.state.cache import ClusterCache
from mooring.state.counters import Counting
from mooring.state.derived import Topologies
from mooring.state.indexes import Indexes, ObjectIndexes
from mooring.state.node_table import NodeTable
from mooring.state.overlay import DryRunRows
from mooring.state.stores import AssumeStore, Stores


class ClusterState:
    """One per process. Implements `scheduler.cycle.Cluster`; the parts are for whoever needs one of them."""

    def __init__(self) -> None:
        self.stores = Stores()
        self.table = NodeTable()
        self.cache = ClusterCache(self.table)
        self.indexes = Indexes(self.table.observers)
        self.counting = Counting(self.table)
        self.object_indexes = ObjectIndexes(self.stores.lister)
        self.topologies = Topologies(self.table)
        self._assumed: dict[Resource, AssumeStore] = {}
        self.nominator: Nominator | None = None
        """The queue's, once there is one."""

    def every_row(self) -> EveryRow:
        return self.table.listing.every_row()

    def epoch(self) -> NodeEpoch:
        return self.table.listing.epoch()

    def is_assumed(self, uid: str) -> bool:
        return self.cache.is_assumed(uid)

    def assume(self, pod: Pod, node: str) -> None:
        """Count the pod on the node from now on; its nomination has served its purpose."""
        self.cache.assume(pod, node)
        if self.nominator is not None:
            self.nominator.forget(pod.metadata.uid)

    def forget(self, pod: Pod) -> None:
        self.cache.forget(pod.uid)

    def version(self, resource: Resource) -> int:
        """A number that grows with every change of an object of this kind."""
        return self.stores[resource].version

    def assume_cache(self, resource: Resource) -> AssumeStore:
        return self._assumed.setdefault(resource, AssumeStore(self.stores.lister(resource)))

    def dry_run_rows(self, node_names: Sequence[str]) -> DryRunRows:
        """Copies of the rows of nodes, for a dry run."""
        return DryRunRows(self.table, self.cache.entry, node_names)
