"""Writes of stand-ins: conflict-safe, and known to the caches before anything else happens.

Every change carries the version or UID it was decided on. When that is no longer the current one, the present
state is read into the cache and the Conflict goes to the caller, whose next look decides anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mooring.api.errors import Conflict, MooringError, NotFound
from mooring.api.resources import Resource, Unstructured
from mooring.api.times import format_time
from mooring.embedded.controllers.caches import Caches
from mooring.framework.ports import ApiClient, Clock, PatchType

Raw = dict[str, Any]


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
                resource,
                obj.name,
                patch,
                namespace=obj.namespace,
                subresource=subresource,
                patch_type=patch_type,
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
        except MooringError:
            return
        cache.wrote(current)


def _terminating(obj: Unstructured, wall: float) -> Unstructured:
    meta = {**obj.raw["metadata"], "deletionTimestamp": format_time(wall)}
    meta.setdefault("deletionGracePeriodSeconds", 30)  # until the server says more
    return Unstructured({**obj.raw, "metadata": meta})
