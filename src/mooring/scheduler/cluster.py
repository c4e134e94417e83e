"""The cluster state as cycle and plugins use it: cache and NodeTable behind the protocols they know."""

from __future__ import annotations

from collections.abc import Callable

from mooring.api.pod import Pod
from mooring.framework.nodes import EveryRow
from mooring.framework.record import NodeEpoch
from mooring.queue.scheduling_queue import SchedulingQueue
from mooring.state.cache import ClusterCache
from mooring.state.node_table import NodeTable


class ClusterState:
    """Implements `scheduler.cycle.Cluster`."""

    def __init__(self, table: NodeTable, cache: ClusterCache, queue: SchedulingQueue) -> None:
        self._cache = cache
        self._queue = queue
        self.every_row: Callable[[], EveryRow] = table.listing.every_row
        self.epoch: Callable[[], NodeEpoch] = table.listing.epoch
        self.is_assumed: Callable[[str], bool] = cache.is_assumed

    def assume(self, pod: Pod, node: str) -> None:
        """Count the pod on the node from now on; its nomination has done its service."""
        self._cache.assume(pod, node)
        self._queue.nominator.forget(pod.metadata.uid)

    def forget(self, pod: Pod) -> None:
        self._cache.forget(pod.uid)
