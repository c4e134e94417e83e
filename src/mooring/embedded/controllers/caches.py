"""The caches of a group of stand-ins, one per resource, each fed by one informer."""

from __future__ import annotations

import asyncio
from random import Random

from mooring.api.resources import Resource
from mooring.client.informers import Informer
from mooring.embedded.controllers.cache import Cache
from mooring.framework.ports import ApiClient, Clock

SETTLE_SECONDS = 10.0
"""How often writes are looked for that no informer will ever confirm."""


class Caches:
    """Made first, filled by `run`. `of` may be called at any time, also for kinds that appear later."""

    def __init__(self, client: ApiClient, clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._caches: dict[tuple[str, str], Cache] = {}
        self._informers: dict[tuple[str, str], Informer] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._running = False

    def of(self, resource: Resource) -> Cache:
        """The cache of a resource; it is followed from now on."""
        name = (resource.group, resource.plural)
        cache = self._caches.get(name)
        if cache is None:
            cache = self._caches[name] = Cache(resource)
            self._informers[name] = Informer(
                self._client, resource, cache.deliver, clock=self._clock, random=self._random
            )
            if self._running:
                self._start(name)
        return cache

    def all(self) -> list[Cache]:
        return list(self._caches.values())

    def drop(self, resource: Resource) -> None:
        """Stops following a resource: its kind is no longer served."""
        name = (resource.group, resource.plural)
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
        self._informers.pop(name, None)
        cache = self._caches.pop(name, None)
        for obj in cache or ():
            assert cache is not None
            cache.remove(obj)

    def find(self, api_version: str, kind: str) -> Cache | None:
        """The cache of a kind as owner references name it; any version of its group will do."""
        group = api_version.rpartition("/")[0]
        for cache in self._caches.values():
            if cache.resource.kind == kind and cache.resource.group == group:
                return cache
        return None

    async def run(self) -> None:
        """Follows everything until cancelled or stopped."""
        self._running = True
        for name in self._informers:
            self._start(name)
        try:
            while self._running:
                await self._clock.sleep(SETTLE_SECONDS)
                self.settle()
        finally:
            await self.stop()

    def settle(self) -> None:
        for name, informer in self._informers.items():
            version = informer.status().version
            self._caches[name].settle(int(version) if version.isdigit() else 0, informer.objects)

    async def wait_synced(self) -> None:
        for informer in list(self._informers.values()):
            await informer.synced.wait()

    async def stop(self) -> None:
        self._running = False
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, name: tuple[str, str]) -> None:
        if name not in self._tasks:
            informer = self._informers[name]
            self._tasks[name] = asyncio.create_task(informer.run(), name=f"informer {informer.resource}")
