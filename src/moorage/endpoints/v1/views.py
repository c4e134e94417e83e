"""All views of /moorage/v1 on one scheduler, and the snapshot, which needs no module of its own.

Every view does its work on the endpoints' thread. The scheduler's loop copies references only; objects do not
change, so they can be read and encoded elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from moorage import snapshots
from moorage.api.pod import Pod
from moorage.api.resources import PODS, Resource
from moorage.api.times import format_time
from moorage.app.scheduler import Scheduler
from moorage.endpoints.answers import SummaryAnswer
from moorage.endpoints.loop_bridge import LoopBridge
from moorage.endpoints.queries import SnapshotQuery, SummaryQuery
from moorage.endpoints.v1.nodes import NodesView
from moorage.endpoints.v1.queue import QueueView
from moorage.endpoints.v1.records import RecordsView
from moorage.endpoints.v1.summary import SummaryView
from moorage.snapshots.cluster import ClusterObjects


class SchedulerViews:
    """`leads` returns whether this replica schedules, `generation` the number of the configuration in use."""

    def __init__(
        self,
        scheduler: Scheduler,
        bridge: LoopBridge,
        leads: Callable[[], bool] = lambda: True,
        generation: Callable[[], int] = lambda: 1,
    ) -> None:
        self._scheduler = scheduler
        self._bridge = bridge
        self._summary = SummaryView(scheduler, bridge, leads, generation)
        records, nodes = RecordsView(scheduler, bridge), NodesView(scheduler, bridge)
        self.records, self.attempts, self.attempt = records.of_pod, records.attempts, records.attempt
        self.nodes, self.node = nodes.nodes, nodes.node
        self.queue = QueueView(scheduler, bridge).answer

    async def summary(self, query: SummaryQuery) -> SummaryAnswer:
        return await self._summary.answer()

    async def snapshot(self, query: SnapshotQuery) -> AsyncIterator[bytes]:
        """Yield the blocks of a file of `moorage snapshot`, with assumed pods on their nodes. A slow reader
        holds up nothing, and the file is never in memory as a whole."""
        cluster, assumed = await self._bridge.call(lambda: _look(self._scheduler))
        pods = [assumed.get(pod.uid, pod) for pod in cluster.objects[PODS]]
        objects: Mapping[Resource, Any] = {**cluster.objects, PODS: pods}
        taken = format_time(self._scheduler.clock.wall())
        seen = ClusterObjects(objects, cluster.unserved)
        return _sent(snapshots.packed(snapshots.pieces(seen, taken=taken, annotations=query.annotations)))


def _look(scheduler: Scheduler) -> tuple[ClusterObjects, dict[str, Pod]]:
    """Return all objects, and the assumed pods, with their node, by UID."""
    stores, cache = scheduler.engine.stores, scheduler.engine.cache
    resources = scheduler.configuration.resources()
    cluster = ClusterObjects(
        {resource: list(stores[resource].list()) for resource in resources if stores[resource].known},
        tuple(resource for resource in resources if not stores[resource].known),
    )
    return cluster, {entry.uid: entry.pod for entry in cache.assumed()}


async def _sent(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for block in blocks:
        yield block
        await asyncio.sleep(0)  # lets other requests proceed
