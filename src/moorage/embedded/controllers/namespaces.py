"""Namespaces: those that a cluster has from the start, and what happens when one is deleted.

The start: the namespaces, the system priority classes, and a ServiceAccount each. The end: first what is in a
namespace, then itself.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.api.errors import AlreadyExists, Conflict, NotFound
from moorage.api.resources import Resource, Unstructured
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import is_terminating

Raw = dict[str, Any]

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
PRIORITY_CLASSES: dict[str, tuple[int, str]] = {
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
}
_START = "#start"
FINALIZER = "kubernetes"
RETRY = 1.0
"""Seconds between two looks at a namespace that still has something in it."""


class Bootstrap(Controller):
    """Keys are names of namespaces; the first key makes what every cluster has."""

    name = "serviceaccount-controller"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.namespaces = self.watch(kinds.NAMESPACES, own_key)
        self.accounts = self.watch(kinds.SERVICE_ACCOUNTS, lambda account: (account.namespace,))
        self.classes = self.caches.of(kinds.PRIORITY_CLASSES)
        self.queue.add(_START)

    async def reconcile(self, key: str) -> float | None:
        if key == _START:
            await self._first_objects()
            return None
        namespace = self.namespaces.get(key)
        if namespace is None or is_terminating(namespace):
            return None
        if self.accounts.get(f"{key}/default") is None:
            raw = {"metadata": {"name": "default", "namespace": key}}
            await self._make(kinds.SERVICE_ACCOUNTS, raw)
        return None

    async def _first_objects(self) -> None:
        for name in NAMESPACES:
            if self.namespaces.get(name) is None:
                await self._make(kinds.NAMESPACES, {"metadata": {"name": name}})
        for name, (value, description) in PRIORITY_CLASSES.items():
            if self.classes.get(name) is None:
                raw = {"metadata": {"name": name}, "value": value, "description": description}
                await self._make(kinds.PRIORITY_CLASSES, {**raw, "preemptionPolicy": "PreemptLowerPriority"})

    async def _make(self, resource: Resource, raw: Raw) -> None:
        try:
            await self.writer.create(resource, raw)
        except AlreadyExists:
            meta = raw["metadata"]
            await self.writer.refresh(resource, meta["name"], meta.get("namespace", ""))


class NamespaceDeletion(Controller):
    """The controller of Namespaces."""

    name = "namespace-controller"

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.namespaces = self.watch(kinds.NAMESPACES, own_key)

    async def reconcile(self, key: str) -> float | None:
        namespace = self.namespaces.get(key)
        if namespace is not None and not is_terminating(namespace):
            return None
        remaining = await self._empty(key)
        if namespace is None:
            return RETRY if remaining else None
        if remaining:
            await self._report_terminating(namespace)
            return RETRY
        await self._delete_events(key)
        await self._finalize(namespace)
        return None

    async def _empty(self, name: str) -> int:
        """Deletes everything in it; says how much is still there."""
        remaining = 0
        for cache in self.caches.all():
            if not cache.resource.namespaced:
                continue
            for obj in cache.in_namespace(name):
                remaining += 1
                if not is_terminating(obj):
                    await self.writer.delete(cache.resource, obj)
        return remaining

    async def _delete_events(self, name: str) -> None:
        """Events are in no cache; no controller watches them."""
        listing = await self.world.client.list(resources.EVENTS, namespace=name)
        for event in listing.items:
            try:
                await self.world.client.delete(resources.EVENTS, event.name, namespace=name)
            except (NotFound, Conflict):
                continue

    async def _report_terminating(self, namespace: Unstructured) -> None:
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
