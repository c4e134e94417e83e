"""The loop around a reconcile function, and the manager that runs all controllers.

A controller says which changes concern which keys (`watch`) and what to do about a key (`reconcile`). It may be called
at any time, repeatedly, and for objects that no longer exist: it compares and writes the difference. After an exception
the key is tried again with growing pauses; API errors are expected and logged at a low level.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from moorage.api.errors import Conflict, MoorageError
from moorage.api.resources import Resource, Unstructured
from moorage.client.events import ApiEventRecorder
from moorage.embedded.controllers.caches import Cache, Caches
from moorage.embedded.controllers.work_queue import Together, WorkQueue
from moorage.embedded.controllers.writes import Events, Writer
from moorage.framework.ports import ApiClient, Clock
from moorage.telemetry import logs

log = logs.get(__name__)

LOUD_AFTER = 5
"""Failures in a row after which they are logged as a warning."""


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What every controller is given: caches, writer, events, clock and randomness."""

    client: ApiClient
    caches: Caches
    writer: Writer
    events: Events
    clock: Clock
    random: Random


class Controller(ABC):
    """One controller. Subclasses register their watches in `__init__`."""

    name: ClassVar[str]
    """As kube-controller-manager reports it in events."""
    workers: ClassVar[int] = 2
    spacing: ClassVar[float] = 0.1
    """Seconds between two looks at one key."""

    def __init__(self, world: ControllerContext) -> None:
        self.world = world
        self.caches = world.caches
        self.writer = world.writer
        self.clock = world.clock
        self.queue: WorkQueue[str] = WorkQueue(world.clock, world.random, spacing=self.spacing)

    @abstractmethod
    async def reconcile(self, key: str) -> float | None:
        """Bring the cluster to the state that the object wants. Return seconds to be called again."""

    def watch(
        self,
        resource: Resource,
        keys: Callable[[Unstructured], Iterable[str]],
        changed: Callable[[Unstructured, Unstructured], bool] | None = None,
    ) -> Cache:
        """Queue the keys of each changed object, from before and after the change.

        `changed` says whether an update concerns this controller at all; None: every one does.
        """
        cache = self.caches.of(resource)

        def handle(old: Unstructured | None, new: Unstructured | None) -> None:
            if old is not None and new is not None and changed is not None and not changed(old, new):
                return
            before = tuple(keys(old)) if old is not None else ()
            for key in before:
                self.queue.add(key)
            if new is not None:
                for key in keys(new):
                    if key not in before:
                        self.queue.add(key)

        cache.handlers.append(handle)
        return cache

    def rest(self, key: str) -> float:
        """Seconds between two looks at this key, where `spacing` is too short: looks that cost much."""
        return 0.0

    def event(self, regarding: Unstructured, reason: str, note: str) -> None:
        self.world.events.normal(self.name, regarding, reason, note)

    def warn(self, regarding: Unstructured, reason: str, note: str) -> None:
        self.world.events.warning(self.name, regarding, reason, note)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self.workers):
                    group.create_task(self._work(), name=f"{self.name} {number}")
        finally:
            self.queue.close()

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._look_at(key)
            finally:
                self.queue.done(key, self.rest(key))

    async def _look_at(self, key: str) -> None:
        try:
            again = await self.reconcile(key)
        except Exception as error:
            self._after(key, error)
            return
        self.queue.forget(key)
        if again is not None:
            self.queue.add_after(key, again)

    def _after(self, key: str, error: Exception) -> None:
        delay = self.queue.add_failed(key)
        if not isinstance(error, MoorageError):
            log.error(
                "Controller failed with a bug; continuing", error=error, stack=True, controller=self.name, key=key
            )
        elif isinstance(error, Conflict) or self.queue.failures(key) < LOUD_AFTER:
            log.info(4, "Reconciling failed; trying again", controller=self.name, key=key, seconds=delay, err=error)
        else:
            log.warning("Reconciling keeps failing", controller=self.name, key=key, seconds=delay, err=error)


def own_key(obj: Unstructured) -> Iterable[str]:
    """Return the key of the object itself, for `watch`."""
    return (obj.key,)


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
        world = ControllerContext(client, self.caches, writer, Events(self._recorder, clock), clock, random)
        self.controllers = [make(world) for make in controllers]
        self._together = Together("manager")
        self._synced = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled or stopped."""
        await self._together.run(caches=self.caches.run(), events=self._recorder.run(), controllers=self._work())

    async def wait_synced(self) -> None:
        """Wait until every controller has seen the current state of the cluster."""
        await self._synced.wait()

    async def stop(self) -> None:
        await self._together.stop()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do now. Keys that wait for a later time do not count."""
        return all(controller.queue.idle for controller in self.controllers)

    async def _work(self) -> None:
        await self.caches.wait_synced()
        self._synced.set()
        async with asyncio.TaskGroup() as group:
            for controller in self.controllers:
                group.create_task(controller.run(), name=controller.name)
