"""Writes of stand-ins: conflict-safe, known to the caches at once, many at a time; and events.

Every change carries the version or UID it was decided on. When that is no longer the current one, the present
state is read into the cache and the Conflict goes to the caller, whose next look decides anew.

Many writes of one kind begin carefully: one, then two, then four. One after the other would make each wait
for a turn of a busy loop; all at once would repeat one refusal hundreds of times, such as that of a template
which the API server does not take.

Events are held to the measure that client-go's spam filter sets: per object and reporter a burst of 25, then
one in five minutes; over all objects a rate, so that twenty thousand pods starting at once do not write sixty
thousand events. What is held back is counted, not kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from moorage.api.errors import Conflict, MoorageError, NotFound
from moorage.api.resources import Resource, Unstructured
from moorage.api.times import format_time
from moorage.embedded.controllers.caches import Caches
from moorage.framework.ports import ApiClient, Clock, EventRecorder, PatchType

Raw = dict[str, Any]
T = TypeVar("T")
MAX_BURST = 64
"""Writes under way at the same time."""
BURST = 25
REFILL_SECONDS = 300.0
OBJECTS = 4096
"""Objects whose measure is remembered."""


class Writer:
    """All writes of a group of stand-ins that share caches."""

    def __init__(self, client: ApiClient, caches: Caches, clock: Clock) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock

    async def create(self, resource: Resource, raw: Raw) -> Unstructured:
        created: Unstructured = await self._client.create(resource, raw)
        self._caches.of(resource).wrote(created)
        return created

    async def update_status(self, resource: Resource, obj: Unstructured, status: Raw) -> Unstructured:
        """Replaces the status, if it differs, of exactly the version that it was made from."""
        if (obj.raw.get("status") or {}) == status:
            return obj
        return await self._replace(resource, {**obj.raw, "status": status}, "status")

    async def replace(self, resource: Resource, raw: Raw) -> Unstructured:
        """Replaces everything but the status, of exactly the version in `raw`."""
        return await self._replace(resource, raw, "")

    async def _replace(self, resource: Resource, raw: Raw, subresource: str) -> Unstructured:
        try:
            written: Unstructured = await self._client.replace(resource, raw, subresource=subresource)
        except (Conflict, NotFound):
            meta = raw["metadata"]
            await self.refresh(resource, meta["name"], meta.get("namespace", ""))
            raise
        self._caches.of(resource).wrote(written)
        return written

    async def patch(
        self,
        resource: Resource,
        obj: Unstructured,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        subresource: str = "",
        patch_type: str = PatchType.MERGE,
        guarded: bool = True,
    ) -> Unstructured:
        """A merge patch by default. `guarded`: only on the version that `obj` has, else on its UID only."""
        if isinstance(patch, Mapping):
            meta = dict(patch.get("metadata") or {})
            meta["resourceVersion" if guarded else "uid"] = obj.resource_version if guarded else obj.uid
            patch = {**patch, "metadata": meta}
        try:
            written: Unstructured = await self._client.patch(
                resource, obj.name, patch, namespace=obj.namespace, subresource=subresource, patch_type=patch_type
            )
        except (Conflict, NotFound):
            await self.refresh(resource, obj.name, obj.namespace)
            raise
        self._caches.of(resource).wrote(written)
        return written

    async def delete(self, resource: Resource, obj: Unstructured, grace_period: int | None = None) -> None:
        """Deletes this very object; one that is gone already, or was replaced, is no failure."""
        try:
            await self._client.delete(
                resource, obj.name, namespace=obj.namespace, uid=obj.uid, grace_period=grace_period
            )
        except NotFound:
            await self.refresh(resource, obj.name, obj.namespace)
            return
        except Conflict:
            await self.refresh(resource, obj.name, obj.namespace)
            current = self._caches.of(resource).get(obj.key)
            if current is not None and current.uid == obj.uid:
                raise  # it is still there, and still to be deleted
            return
        if not obj.metadata.deletion_timestamp:
            self._caches.of(resource).assume(_terminating(obj, self._clock.wall()))

    async def refresh(self, resource: Resource, name: str, namespace: str) -> None:
        """Reads the present state into the cache. Failing that, the informer will tell in time."""
        cache = self._caches.of(resource)
        known = cache.get(f"{namespace}/{name}" if namespace else name)
        try:
            current: Unstructured = await self._client.get(resource, name, namespace)
        except NotFound:
            if known is not None:
                cache.remove(known)
            return
        except MoorageError:
            return
        cache.wrote(current)


def _terminating(obj: Unstructured, wall: float) -> Unstructured:
    meta = {**obj.raw["metadata"], "deletionTimestamp": format_time(wall)}
    meta.setdefault("deletionGracePeriodSeconds", 30)  # until the server says more
    return Unstructured({**obj.raw, "metadata": meta})


async def slow_start(items: Iterable[T], act: Callable[[T], Awaitable[None]]) -> None:
    """Acts on all items, in growing batches; after a batch with a failure nothing more is begun, and its
    first failure is raised."""
    remaining, size = iter(items), 1
    while batch := list(islice(remaining, size)):
        results: Sequence[BaseException | None] = await asyncio.gather(
            *(act(item) for item in batch), return_exceptions=True
        )
        for result in results:
            if result is not None:
                raise result
        size = min(MAX_BURST, 2 * size)


class Bucket:
    """Tokens that come back with time."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, burst: float, rate: float, now: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class Events:
    """Reports for one group of stand-ins."""

    def __init__(self, recorder: EventRecorder, clock: Clock, *, burst: float = 500.0, rate: float = 50.0) -> None:
        self.held_back = 0
        self._recorder = recorder
        self._clock = clock
        self._all = Bucket(burst, rate, clock.now())
        self._objects: dict[tuple[str, str], Bucket] = {}

    def normal(self, controller: str, regarding: Any, reason: str, note: str, action: str = "") -> None:
        self._event("Normal", controller, regarding, reason, note, action)

    def warning(self, controller: str, regarding: Any, reason: str, note: str, action: str = "") -> None:
        self._event("Warning", controller, regarding, reason, note, action)

    def _event(self, kind: str, controller: str, regarding: Any, reason: str, note: str, action: str) -> None:
        now = self._clock.now()
        if not self._bucket(controller, regarding.uid, now).take(now) or not self._all.take(now):
            self.held_back += 1
            return
        self._recorder.event(
            regarding, type=kind, reason=reason, action=action or reason, note=note, controller=controller
        )

    def _bucket(self, controller: str, uid: str, now: float) -> Bucket:
        key = (controller, uid)
        bucket = self._objects.pop(key, None) or Bucket(BURST, 1.0 / REFILL_SECONDS, now)
        self._objects[key] = bucket
        if len(self._objects) > OBJECTS:
            del self._objects[next(iter(self._objects))]
        return bucket
