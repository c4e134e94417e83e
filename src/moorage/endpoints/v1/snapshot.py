"""The cluster as a running scheduler sees it, in the form of `moorage snapshot`. Pods that it has assumed are
on their nodes.

The loop copies references only: objects do not change, so that they are written out elsewhere, block by
block. A reader that is slow holds up nothing, and what is written is never in memory as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from moorage import snapshots
from moorage.api.pod import Pod
from moorage.api.resources import PODS, Resource
from moorage.api.times import format_time
from moorage.app.scheduler import Scheduler
from moorage.endpoints.loop_bridge import LoopDoor
from moorage.endpoints.v1.routes import SnapshotQuery
from moorage.snapshots.cluster import ClusterObjects


async def page(scheduler: Scheduler, door: LoopDoor, query: SnapshotQuery) -> AsyncIterator[bytes]:
    cluster, assumed = await door.ask(lambda: _look(scheduler))
    objects: Mapping[Resource, Any] = {**cluster.objects, PODS: _pods(cluster, assumed)}
    taken = format_time(scheduler.clock.wall())
    seen = ClusterObjects(objects, cluster.unserved)
    return _sent(snapshots.packed(snapshots.pieces(seen, taken=taken, annotations=query.annotations)))


def _look(scheduler: Scheduler) -> tuple[ClusterObjects, dict[str, Pod]]:
    """What there is, and UID → the assumed pods with their node."""
    stores, cache = scheduler.engine.stores, scheduler.engine.cache
    resources = scheduler.configuration.resources()
    cluster = ClusterObjects(
        {resource: list(stores[resource].list()) for resource in resources if stores[resource].known},
        tuple(resource for resource in resources if not stores[resource].known),
    )
    return cluster, {entry.uid: entry.pod for entry in cache.assumed()}


def _pods(cluster: ClusterObjects, assumed: Mapping[str, Pod]) -> list[Pod]:
    return [assumed.get(pod.uid, pod) for pod in cluster.objects[PODS]]


async def _sent(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for block in blocks:
        yield block
        await asyncio.sleep(0)  # other requests have their turn
