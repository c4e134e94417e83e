"""Namespaces that are deleted: first what is in them, then themselves."""

from __future__ import annotations

from typing import Any

from mooring.api import resources
from mooring.api.errors import Conflict, NotFound
from mooring.api.resources import Unstructured
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.controller import Controller, World, own_key
from mooring.embedded.controllers.pod_states import is_terminating

Raw = dict[str, Any]

FINALIZER = "kubernetes"
RETRY = 1.0
"""Seconds between two looks at a namespace that still has something in it."""


class NamespaceDeletion(Controller):
    """The controller of Namespaces."""

    name = "namespace-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.namespaces = self.watch(kinds.NAMESPACES, own_key)

    async def reconcile(self, key: str) -> float | None:
        namespace = self.namespaces.get(key)
        if namespace is not None and not is_terminating(namespace):
            return None
        left = await self._empty(key)
        if namespace is None:
            return RETRY if left else None
        if left:
            await self._tell(namespace, left)
            return RETRY
        await self._delete_events(key)
        await self._finalize(namespace)
        return None

    async def _empty(self, name: str) -> int:
        """Deletes everything in it; says how much is still there."""
        left = 0
        for cache in self.caches.all():
            if not cache.resource.namespaced:
                continue
            for obj in cache.in_namespace(name):
                left += 1
                if not is_terminating(obj):
                    await self.writer.delete(cache.resource, obj)
        return left

    async def _delete_events(self, name: str) -> None:
        """Events are in no cache; nobody watches them here."""
        listing = await self.world.client.list(resources.EVENTS, namespace=name)
        for event in listing.items:
            try:
                await self.world.client.delete(resources.EVENTS, event.name, namespace=name)
            except (NotFound, Conflict):
                continue

    async def _tell(self, namespace: Unstructured, left: int) -> None:
        if (namespace.raw.get("status") or {}).get("phase") != "Terminating":
            status = {**(namespace.raw.get("status") or {}), "phase": "Terminating"}
            await self.writer.update_status(kinds.NAMESPACES, namespace, status)

    async def _finalize(self, namespace: Unstructured) -> None:
        """Takes the finalizer away, in spec as the API has it, and in metadata where others put it."""
        current = self.namespaces.get(namespace.name) or namespace
        spec: Raw = current.raw.get("spec") or {}
        if FINALIZER in (spec.get("finalizers") or ()):
            kept = [name for name in spec["finalizers"] if name != FINALIZER]
            raw = {**current.raw, "spec": {**spec, "finalizers": kept}}
            try:
                written = await self.world.client.replace(kinds.NAMESPACES, raw, subresource="finalize")
            except (NotFound, Conflict):
                await self.writer.refresh(kinds.NAMESPACES, current.name, "")
                raise
            self.namespaces.wrote(written)
        elif FINALIZER in current.metadata.finalizers:
            kept = [name for name in current.metadata.finalizers if name != FINALIZER]
            await self.writer.patch(kinds.NAMESPACES, current, {"metadata": {"finalizers": kept or None}})
