"""The objects that a stand-in knows: what informers delivered, and what was written since.

Whoever writes puts the answer in at once. A controller therefore always sees its own writes, and needs no
bookkeeping of what it expects to see. Versions decide which of two states is newer; resourceVersions of one
server grow, and are compared as numbers.

    written ──▶ cache ◀── informer
                 │  older than what is known: ignored; equal: nothing happened
                 ▼
               handlers (old, new)

An object that was written here and deleted before the informer ever saw it would stay for ever: `settle`
drops those that the informer has passed without seeing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from random import Random
from typing import Any, TypeAlias

from moorage.api.resources import Resource, Unstructured
from moorage.client.informers import Informer
from moorage.framework.ports import ApiClient, Change, Clock

Handler: TypeAlias = Callable[[Unstructured | None, Unstructured | None], None]
"""Called with each change: old is None for a new object, new is None for one that is gone."""
Keys: TypeAlias = Callable[[Unstructured], Iterable[Hashable]]
"""The values under which an index finds an object."""

_REMEMBERED = 20_000
"""Deleted UIDs kept, so that a late answer does not bring an object back."""

OWNER, NAMESPACE = "owner", "namespace"
SETTLE_SECONDS = 10.0
"""How often writes are looked for that no informer will ever confirm."""


class Cache:
    """Key → object, with indexes. Objects are shared and must not be changed."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.objects: dict[str, Unstructured] = {}
        self.handlers: list[Handler] = []
        self._indexes: dict[str, tuple[Keys, dict[Hashable, dict[str, Unstructured]]]] = {}
        self._gone: set[str] = set()
        self._gone_order: deque[str] = deque()
        self._unconfirmed: dict[str, int] = {}
        """Key → version of what was written here and not delivered yet."""
        self.add_index(OWNER, controller_uid)
        if resource.namespaced:
            self.add_index(NAMESPACE, lambda obj: (obj.namespace,))

    # Reading

    def get(self, key: str) -> Unstructured | None:
        return self.objects.get(key)

    def __iter__(self) -> Iterator[Unstructured]:
        return iter(list(self.objects.values()))

    def __len__(self) -> int:
        return len(self.objects)

    def find(self, index: str, value: Hashable) -> list[Unstructured]:
        """The objects that an index has under a value, in the order of their coming."""
        found = self._indexes[index][1].get(value)
        return list(found.values()) if found else []

    def count(self, index: str, value: Hashable) -> int:
        return len(self._indexes[index][1].get(value, ()))

    def owned_by(self, owner: Unstructured) -> list[Unstructured]:
        """The objects whose controller is `owner`."""
        return self.find(OWNER, owner.uid)

    def in_namespace(self, namespace: str) -> list[Unstructured]:
        return self.find(NAMESPACE, namespace)

    def add_index(self, name: str, keys: Keys) -> None:
        """A second index of one name is the same index."""
        if name not in self._indexes:
            self._indexes[name] = (keys, {})
            for obj in self.objects.values():
                self._file(name, None, obj)

    # Changing

    def deliver(self, change: Change) -> None:
        """What the informer says."""
        obj = change.new if change.new is not None else change.old
        waiting = self._unconfirmed.get(obj.key)
        if waiting is not None and version_of(obj) >= waiting:
            del self._unconfirmed[obj.key]
        if change.new is None:
            self.remove(obj)
        else:
            self._put(obj)

    def wrote(self, obj: Unstructured) -> None:
        """The answer to a write."""
        if obj.uid in self._gone:
            return
        if _is_over(obj):
            self.remove(obj)  # the write was its last
            return
        known = self.objects.get(obj.key)
        if known is None or version_of(known) < version_of(obj):
            self._unconfirmed[obj.key] = version_of(obj)
            self._put(obj)

    def remove(self, obj: Unstructured) -> None:
        """It is gone; a later object of the same name stays."""
        self._bury(obj.uid)
        known = self.objects.get(obj.key)
        if known is not None and known.uid == obj.uid:
            del self.objects[obj.key]
            self._unconfirmed.pop(obj.key, None)
            self._changed(known, None)

    def settle(self, seen: int, mirrored: dict[str, Any]) -> None:
        """Forgets what the informer, now at version `seen`, has passed without seeing it."""
        for key, version in list(self._unconfirmed.items()):
            if version > seen:
                continue
            del self._unconfirmed[key]
            known, true = self.objects.get(key), mirrored.get(key)
            if true is None and known is not None:
                self.remove(known)

    def _put(self, new: Unstructured) -> None:
        if new.uid in self._gone:
            return
        old = self.objects.get(new.key)
        if old is not None and old.uid != new.uid:
            if version_of(new) < version_of(old):
                return
            self.remove(old)
            old = None
        if old is not None and version_of(new) <= version_of(old):
            return
        self.objects[new.key] = new
        self._changed(old, new)

    def assume(self, obj: Unstructured) -> None:
        """Takes a state for true until the server tells a newer one: what a write without an answer body did."""
        if self.objects.get(obj.key) is not None and obj.uid not in self._gone:
            self.objects[obj.key], old = obj, self.objects[obj.key]
            self._changed(old, obj)

    def _changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        for name in self._indexes:
            self._file(name, old, new)
        for handler in self.handlers:
            handler(old, new)

    def _file(self, name: str, old: Unstructured | None, new: Unstructured | None) -> None:
        keys, buckets = self._indexes[name]
        before = tuple(keys(old)) if old is not None else ()
        after = tuple(keys(new)) if new is not None else ()
        for value in before:
            if value not in after:
                assert old is not None
                bucket = buckets[value]
                del bucket[old.key]
                if not bucket:
                    del buckets[value]
        for value in after:
            assert new is not None
            buckets.setdefault(value, {})[new.key] = new

    def _bury(self, uid: str) -> None:
        if uid not in self._gone:
            self._gone.add(uid)
            self._gone_order.append(uid)
            if len(self._gone_order) > _REMEMBERED:
                self._gone.discard(self._gone_order.popleft())


def version_of(obj: Unstructured) -> int:
    return int(obj.resource_version or 0)


def controller_uid(obj: Unstructured) -> Iterable[Hashable]:
    for owner in obj.metadata.owner_references:
        if owner.controller:
            return (owner.uid,)
    return ()


def _is_over(obj: Unstructured) -> bool:
    """Whether a terminating object has nothing left to wait for; namespaces have finalizers in their spec."""
    meta = obj.metadata
    if meta.deletion_timestamp is None or meta.finalizers or meta.deletion_grace_period_seconds:
        return False
    return not (obj.kind == "Namespace" and obj.get("spec", "finalizers"))


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
