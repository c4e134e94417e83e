"""All controllers of the embedded cluster, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random

from moorage.client.events import ApiEventRecorder
from moorage.embedded.controllers.caches import Caches
from moorage.embedded.controllers.controller import Controller, World
from moorage.embedded.controllers.work_queue import Together
from moorage.embedded.controllers.writes import Events, Writer
from moorage.framework.ports import ApiClient, Clock


class ControllerManager:
    """Runs controllers over shared caches. `caches` is public: kubelets of the same process may share it."""

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        random: Random,
        controllers: Iterable[type[Controller]],
        *,
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
