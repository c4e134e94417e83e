"""All controllers of the embedded cluster, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random

from moorage.client.events import ApiEventRecorder
from moorage.embedded.controllers.caches import Caches
from moorage.embedded.controllers.controller import Controller, World
from moorage.embedded.controllers.cron_jobs import CronJobs
from moorage.embedded.controllers.daemon_sets import DaemonSets
from moorage.embedded.controllers.deployments import Deployments
from moorage.embedded.controllers.disruption import DisruptionBudgets
from moorage.embedded.controllers.endpoints import ServiceEndpoints
from moorage.embedded.controllers.garbage import GarbageCollector, PodGarbage
from moorage.embedded.controllers.jobs import Jobs
from moorage.embedded.controllers.namespaces import Bootstrap, NamespaceDeletion
from moorage.embedded.controllers.node_lifecycle import NodeLifecycle, TaintEviction
from moorage.embedded.controllers.replica_sets import ReplicaSets, ReplicationControllers
from moorage.embedded.controllers.stateful_sets import StatefulSets
from moorage.embedded.controllers.volume_binder import VolumeBinder
from moorage.embedded.controllers.volume_claims import ClaimProtection, EphemeralClaims, VolumeProtection
from moorage.embedded.controllers.work_queue import Together
from moorage.embedded.controllers.writes import Events, Writer
from moorage.framework.ports import ApiClient, Clock

DEFAULT: tuple[type[Controller], ...] = (
    Bootstrap,
    Deployments,
    ReplicaSets,
    ReplicationControllers,
    StatefulSets,
    DaemonSets,
    Jobs,
    CronJobs,
    DisruptionBudgets,
    NodeLifecycle,
    TaintEviction,
    PodGarbage,
    VolumeBinder,
    ClaimProtection,
    VolumeProtection,
    EphemeralClaims,
    ServiceEndpoints,
    NamespaceDeletion,
    GarbageCollector,
)
"""Every controller there is."""


class ControllerManager:
    """Runs controllers over shared caches. `caches` is public: kubelets of the same process may share it."""

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        random: Random,
        *,
        controllers: Iterable[type[Controller]] = DEFAULT,
        instance: str = "moorage",
    ) -> None:
        self.caches = Caches(client, clock, random)
        self._recorder = ApiEventRecorder(client, clock, random, instance=instance, queue_size=5000)
        writer = Writer(client, self.caches, clock)
        world = World(client, self.caches, writer, Events(self._recorder, clock), clock, random)
        self.controllers = [make(world) for make in controllers]
        self._together = Together("manager")
        self._synced = asyncio.Event()

    async def run(self) -> None:
        """Runs until cancelled or stopped."""
        await self._together.run(
            caches=self.caches.run(), events=self._recorder.run(), controllers=self._work()
        )

    async def wait_synced(self) -> None:
        """Returns when every controller has seen the present state of the cluster."""
        await self._synced.wait()

    async def stop(self) -> None:
        await self._together.stop()

    @property
    def idle(self) -> bool:
        """Nothing to do now; what waits for its time does not count."""
        return all(controller.queue.idle for controller in self.controllers)

    async def _work(self) -> None:
        await self.caches.wait_synced()
        self._synced.set()
        async with asyncio.TaskGroup() as group:
            for controller in self.controllers:
                group.create_task(controller.run(), name=controller.name)
