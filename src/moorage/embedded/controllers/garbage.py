"""Garbage collection: by owner references, and of pods that no other controller cleans up.

    every owner gone                     ──▶ deleted (background)
    owner waits with foregroundDeletion  ──▶ dependents are deleted first, then its finalizer goes
    owner waits with orphan              ──▶ dependents lose the reference, then its finalizer goes

An owner that no cache knows is looked up on the server before anything is deleted for its sake; a kind that
is not served counts as alive, as nothing can be known about it. Pods go that are on vanished nodes, deleted
without a node, or finished beyond a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moorage.api.errors import NotFound
from moorage.api.meta import OwnerReference
from moorage.api.resources import Resource, Unstructured, custom
from moorage.api.times import format_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Cache
from moorage.embedded.controllers.controller import Controller, ControllerContext
from moorage.embedded.controllers.kinds import is_finished, is_terminating, node_name, with_condition

Raw = dict[str, Any]

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
Name = tuple[str, str, str]
"""Group, plural and key of an object."""
PERIOD = 20.0
QUARANTINE = 40.0
"""Seconds for which a node must be gone before its pods are."""
FINISHED_LIMIT = 12_500
"""Finished pods that are kept; beyond it the oldest go."""
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_LOOK = "#look"


class GarbageCollector(Controller):
    """Keys are `group|plural|namespace/name`."""

    name = "garbage-collector-controller"
    spacing = 0.0

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self._known: dict[str, Name] = {}
        """UID → object, of everything in the caches."""
        self._dependents: dict[str, dict[Name, None]] = {}
        """UID of an owner → those that name it."""
        for resource in kinds.FOLLOWED:
            self.follow(resource)
        definitions = self.caches.of(kinds.DEFINITIONS)
        definitions.handlers.append(self._definition_changed)

    def follow(self, resource: Resource) -> None:
        """Objects of this kind are collected from now on."""
        cache = self.caches.of(resource)
        name = (resource.group, resource.plural)

        def handle(old: Unstructured | None, new: Unstructured | None) -> None:
            self._changed(name, old, new)

        cache.handlers.append(handle)
        for obj in cache:
            handle(None, obj)

    def _definition_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        resource = custom_resource(new or old)
        if resource is None:
            return
        if new is None:
            self.caches.drop(resource)
        elif old is None or custom_resource(old) != resource:
            self.follow(resource)

    def _changed(self, kind: tuple[str, str], old: Unstructured | None, new: Unstructured | None) -> None:
        obj = new or old
        assert obj is not None
        name = (*kind, obj.key)
        before = {o.uid for o in old.metadata.owner_references} if old is not None else set()
        after = {o.uid for o in new.metadata.owner_references} if new is not None else set()
        for uid in before - after:
            self._unlink(uid, name)
        for uid in after - before:
            self._dependents.setdefault(uid, {})[name] = None
        if new is None:
            self._known.pop(obj.uid, None)
            for dependent in list(self._dependents.get(obj.uid, ())):
                self.queue.add("|".join(dependent))
            return
        self._known[new.uid] = name
        waits = is_terminating(new) and {FOREGROUND, ORPHAN} & set(new.metadata.finalizers)
        if waits or any(uid not in self._known for uid in after - before):
            self.queue.add("|".join(name))

    def _unlink(self, uid: str, name: Name) -> None:
        """An owner that waits for its dependents may go when one of them is gone."""
        dependents = self._dependents.get(uid, {})
        dependents.pop(name, None)
        if not dependents:
            self._dependents.pop(uid, None)
        owner = self._known.get(uid)
        if owner is not None:
            obj = self._get(owner)
            if obj is not None and is_terminating(obj):
                self.queue.add("|".join(owner))

    def _get(self, name: Name) -> Unstructured | None:
        cache = self._cache(name)
        return None if cache is None else cache.get(name[2])

    def _cache(self, name: Name) -> Cache | None:
        for cache in self.caches.all():
            if (cache.resource.group, cache.resource.plural) == name[:2]:
                return cache
        return None

    async def reconcile(self, key: str) -> float | None:
        group, plural, rest = key.split("|")
        cache = self._cache((group, plural, rest))
        obj = cache.get(rest) if cache is not None else None
        if cache is None or obj is None:
            return None
        if is_terminating(obj):
            return await self._finish(cache, obj)
        if obj.metadata.owner_references:
            return await self._collect(cache, obj)
        return None

    async def _collect(self, cache: Cache, obj: Unstructured) -> float | None:
        """Deletes it when all its owners are gone; drops references to those that are, otherwise."""
        solid: list[OwnerReference] = []
        gone: list[OwnerReference] = []
        for owner in obj.metadata.owner_references:
            (solid if await self._exists(owner, obj) else gone).append(owner)
        if not gone:
            return None
        if not solid:
            await self.writer.delete(cache.resource, obj)
            return None
        uids = {owner.uid for owner in gone}
        await self._drop_references(cache, obj, uids)
        return None

    async def _exists(self, owner: OwnerReference, dependent: Unstructured) -> bool:
        if owner.uid in self._known:
            return True
        cache = self.caches.find(owner.api_version, owner.kind)
        if cache is None:
            return True
        namespace = dependent.namespace if cache.resource.namespaced else ""
        try:
            found: Unstructured = await self.world.client.get(cache.resource, owner.name, namespace)
        except NotFound:
            return False
        return found.uid == owner.uid

    async def _finish(self, cache: Cache, obj: Unstructured) -> float | None:
        finalizers = obj.metadata.finalizers
        if ORPHAN in finalizers:
            for dependent_cache, dependent in self._dependents_of(obj):
                await self._drop_references(dependent_cache, dependent, {obj.uid})
            await self._drop_finalizer(cache, obj, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = False
            for dependent_cache, dependent in self._dependents_of(obj):
                blocking = blocking or _blocks(dependent, obj)
                if not is_terminating(dependent):
                    await self._delete_foreground(dependent_cache, dependent)
            if not blocking:
                await self._drop_finalizer(cache, obj, FOREGROUND)
        return None

    async def _delete_foreground(self, cache: Cache, obj: Unstructured) -> None:
        """A dependent that has dependents of its own waits for them in turn."""
        if self._dependents.get(obj.uid) and FOREGROUND not in obj.metadata.finalizers:
            wanted = [*obj.metadata.finalizers, FOREGROUND]
            obj = await self.writer.patch(cache.resource, obj, {"metadata": {"finalizers": wanted}})
        await self.writer.delete(cache.resource, obj)

    def _dependents_of(self, obj: Unstructured) -> Iterable[tuple[Cache, Unstructured]]:
        for name in list(self._dependents.get(obj.uid, ())):
            cache = self._cache(name)
            found = cache.get(name[2]) if cache is not None else None
            if cache is not None and found is not None:
                yield cache, found

    async def _drop_references(self, cache: Cache, obj: Unstructured, uids: set[str]) -> None:
        owners = obj.raw["metadata"].get("ownerReferences") or ()
        kept = [owner for owner in owners if owner.get("uid") not in uids]
        await self.writer.patch(cache.resource, obj, {"metadata": {"ownerReferences": kept or None}})

    async def _drop_finalizer(self, cache: Cache, obj: Unstructured, finalizer: str) -> None:
        current = cache.get(obj.key) or obj
        kept = [name for name in current.metadata.finalizers if name != finalizer]
        await self.writer.patch(cache.resource, current, {"metadata": {"finalizers": kept or None}})


def _blocks(dependent: Unstructured, owner: Unstructured) -> bool:
    refs = dependent.metadata.owner_references
    return any(ref.uid == owner.uid and ref.block_owner_deletion for ref in refs)


def custom_resource(definition: Unstructured | None) -> Resource | None:
    """The resource that a CustomResourceDefinition stores its objects as."""
    spec: Raw = (definition.raw.get("spec") or {}) if definition is not None else {}
    names = spec.get("names") or {}
    stored = [v.get("name") for v in spec.get("versions") or () if v.get("storage")]
    if not (spec.get("group") and names.get("plural") and names.get("kind") and stored):
        return None
    namespaced = spec.get("scope", "Namespaced") == "Namespaced"
    return custom(spec["group"], stored[0], names["plural"], names["kind"], namespaced)


class PodGarbage(Controller):
    """One key: the regular look."""

    name = "pod-garbage-collector"
    workers = 1

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.pods = self.caches.of(kinds.PODS)
        self.nodes = self.caches.of(kinds.NODES)
        self._missing: dict[str, float] = {}
        """Node that pods name and that does not exist → since when."""
        self.queue.add(_LOOK)

    async def reconcile(self, key: str) -> float | None:
        pods = list(self.pods)
        self._note_missing(pods)
        for pod in pods:
            if self._is_orphaned(pod) and await self._node_is_gone(node_name(pod)):
                await self._fail(pod, "PodGC: node no longer exists")
                await self.writer.delete(kinds.PODS, pod, grace_period=0)
            elif is_terminating(pod) and (not node_name(pod) or self._is_out_of_service(pod)):
                await self.writer.delete(kinds.PODS, pod, grace_period=0)
        finished = [pod for pod in pods if is_finished(pod) and not is_terminating(pod)]
        surplus = sorted(finished, key=lambda pod: pod.metadata.creation_timestamp or "")
        for pod in surplus[: max(0, len(surplus) - FINISHED_LIMIT)]:
            await self.writer.delete(kinds.PODS, pod, grace_period=0)
        return PERIOD

    def _note_missing(self, pods: list[Unstructured]) -> None:
        named = {node_name(pod) for pod in pods} - {""}
        missing = {name for name in named if self.nodes.get(name) is None}
        now = self.clock.now()
        self._missing = {name: self._missing.get(name, now) for name in missing}

    def _is_orphaned(self, pod: Unstructured) -> bool:
        since = self._missing.get(node_name(pod))
        return since is not None and self.clock.now() - since >= QUARANTINE

    async def _node_is_gone(self, name: str) -> bool:
        """Asked of the server itself: the cache may be behind."""
        try:
            await self.world.client.get(kinds.NODES, name)
        except NotFound:
            return True
        return False

    def _is_out_of_service(self, pod: Unstructured) -> bool:
        node = self.nodes.get(node_name(pod))
        taints = (node.raw.get("spec") or {}).get("taints") or () if node is not None else ()
        return any(taint.get("key") == _OUT_OF_SERVICE for taint in taints)

    async def _fail(self, pod: Unstructured, message: str) -> None:
        """Others see that the pod did not end by itself."""
        if is_finished(pod):
            return
        status = pod.raw.get("status") or {}
        why = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": message}
        conditions = with_condition(status.get("conditions"), why, format_time(self.clock.wall()))
        failed = {**status, "phase": "Failed", "conditions": conditions}
        await self.writer.update_status(kinds.PODS, pod, failed)
