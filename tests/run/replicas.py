"""Replicas of the scheduler under virtual time, each with election, fence, caches and connection of its own.

Put together in the order of `run.process`, on one store; only threads and sockets are left out.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from moorage.api import decoding
from moorage.api.core import Lease
from moorage.api.meta import Object
from moorage.api.pod import Pod
from moorage.api.resources import BY_KIND, EVENTS, PODS
from moorage.app.scheduler import Scheduler
from moorage.client.election import Election
from moorage.client.lease import Fence, LeaseCandidate, Terms
from moorage.framework.points import Plugin
from moorage.run import takeover
from moorage.sim import loop as virtual
from moorage.sim.loop import VirtualClock
from moorage.store.faults import Call, Faults
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.telemetry.metrics import SchedulerMetrics

TERMS = Terms()


class Replica:
    """One process. `lost` tells why it stopped leading."""

    def __init__(self, world: World, name: str, elects: bool, options: dict[str, Any]) -> None:
        self.world = world
        self.name = name
        self.clock = world.clock
        self.faults = Faults(random.Random(len(world.replicas)))
        self.client = LocalClient(world.store, self.clock, self.faults)
        self.fence = Fence(self.clock.now, TERMS) if elects else Fence.open(self.clock.now)
        self.metrics = SchedulerMetrics(self.clock.now)
        self.scheduler = Scheduler(
            self.client,
            clock=self.clock,
            random=random.Random(7),
            discover=False,
            instance=name,
            may_bind=self.fence.allows,
            metrics=self.metrics,
            **options,
        )
        candidate = LeaseCandidate(name, "moorage", "kube-system", TERMS)
        self.beating = True
        self.election = Election(
            self.client, self.clock, random.Random(9), candidate, self.fence, self, lambda: self.beating
        )
        self.lost_because = ""
        self.led_at: float | None = None
        self.elects = elects
        self._won: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self.tasks = [asyncio.create_task(self._live(), name=name)]

    async def _live(self) -> None:
        await self.scheduler.follow()
        if self.elects:
            self.tasks.append(asyncio.create_task(self.election.run(), name=f"{self.name} election"))
            await self._won
            await takeover.catch_up(self.client, self.scheduler.informers.informers[PODS], self.clock)
        self.led_at = self.clock.now()
        await self.scheduler.lead()

    async def stop(self) -> None:
        """As SIGTERM: drain, then release."""
        await self.scheduler.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.election.release()

    async def kill(self) -> None:
        """As SIGKILL: whatever is on its way may arrive, nothing more is sent and nothing is released."""
        self.fence.close()
        self.client.faults = None
        for task in [*self.tasks, *self.scheduler.tasks]:
            task.cancel()
        await asyncio.gather(*self.tasks, *self.scheduler.tasks, return_exceptions=True)
        await self.scheduler.engine.tasks.stop()
        await self.scheduler.engine.bindings.stop()
        await self.scheduler.engine.binding.drain(0.0)

    def binds(self) -> list[Call]:
        return self.faults.calls_of("bind")

    # Listener

    def leading(self, lease: Lease) -> None:
        self._won.set_result(lease)

    def lost(self, reason: str) -> None:
        self.lost_because = reason

    def observed(self, holder: str) -> None: ...

    def conflicted(self) -> None: ...


class World:
    def __init__(self, seed: int) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.store = Store(self.clock.wall, random.Random(seed))
        self.replicas: list[Replica] = []
        self.bound: dict[str, list[str]] = {}

    def replica(
        self, *, elects: bool = True, config: str | None = None, plugins: Iterable[type[Plugin]] = ()
    ) -> Replica:
        options = {"config": config, "plugins": tuple(plugins)}
        made = Replica(self, f"replica-{len(self.replicas)}", elects, options)
        self.replicas.append(made)
        return made

    def add(self, *objects: Object) -> None:
        for obj in objects:
            self.store.load(BY_KIND[obj.kind], decoding.to_builtins(obj))

    def pods(self) -> list[Pod]:
        found = [stored.typed for stored in self.store.list(PODS).items]
        return [pod for pod in found if isinstance(pod, Pod)]

    def placed(self) -> dict[str, str]:
        return {pod.name: pod.spec.node_name for pod in self.pods() if pod.spec.node_name}

    def events(self, reason: str) -> list[Any]:
        found: list[Any] = [stored.typed for stored in self.store.list(EVENTS).items]
        return [event for event in found if event.reason == reason]

    async def until(self, condition: Callable[[], object], seconds: float = 120.0) -> float:
        """How long it took."""
        began = self.clock.now()
        while not condition():
            assert self.clock.now() - began < seconds, f"not within {seconds} virtual seconds"
            await self.clock.sleep(0.05)
        return self.clock.now() - began


def play(story: Callable[[World], Any], seed: int = 0, until: float = 3600.0) -> Any:
    async def main() -> Any:
        world = World(seed)
        try:
            return await story(world)
        finally:
            for replica in world.replicas:
                await replica.kill()

    print("seed", seed)
    return virtual.run(main(), seed=seed, timeout_virtual=until)
