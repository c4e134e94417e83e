"""The cluster of a simulation: typed objects in dictionaries, behind the scheduler's `ApiClient`.

There is no API server, no watch and no JSON. A write changes the object and posts the change directly to the
engine. Two rules replace kubelets: a bound pod runs at once, and it ends when its lifetime is over. Deleted
objects are forgotten. Workloads decide what happens when, and `measures` decides what is measured.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Unpack

from msgspec import convert
from msgspec.structs import replace

from moorage.api import decoding
from moorage.api.errors import MoorageError
from moorage.api.meta import Object
from moorage.api.node import Node
from moorage.api.pod import DEFAULT_SCHEDULER_NAME, Pod, PodCondition, PodStatus
from moorage.api.resources import BY_KIND, NODES, PODS, PRIORITY_CLASSES, AnyObject, Resource, Unstructured, by_kind
from moorage.api.times import format_time
from moorage.framework.ports import (
    Change,
    Clock,
    DeleteOptions,
    ListOptions,
    ObjectList,
    Patch,
    PatchOptions,
    PatchType,
    Timer,
    WatchEvent,
    WatchOptions,
)
from moorage.sim.loop import SimulationError
from moorage.store import refusals
from moorage.store.patches import apply_patch

ENDED, DELETED, LOST = "ended", "deleted", "lost"
"""Why a pod is gone: its lifetime was over, it was deleted (by preemption or otherwise), or its node is gone."""


class PodOwner(Protocol):
    """Receives the end of the pods that it has added."""

    def gone(self, pod: Pod, why: str, life: PodLife) -> None: ...


class PodWatcher(Protocol):
    """Receives the changes of all pods."""

    def added(self, pod: Pod) -> None: ...

    def bound(self, pod: Pod) -> None:
        """Called when the pod runs on the node in its spec."""
        ...

    def gone(self, pod: Pod, why: str) -> None: ...


@dataclass(frozen=True, slots=True)
class PodLife:
    """What happens to a pod once it runs."""

    seconds: float | None = None
    """How long the pod runs. None means until it is deleted."""
    owner: PodOwner | None = None


NO_LIFE = PodLife()


class SimulatedCluster:
    """Implements `framework.ports.ApiClient`.

    `post` is the engine's inbox. `grace` is the number of seconds that a running pod takes to end after its deletion.
    """

    def __init__(self, clock: Clock, *, grace: float = 0.0, adopts_pods: bool = True) -> None:
        self.clock = clock
        self.grace = grace
        self.adopts_pods = adopts_pods
        """Whether the first profile schedules pods that name none of the profiles."""
        self.post: Callable[[Change], None] = _not_connected
        self.watchers: list[PodWatcher] = []
        self.profiles: Mapping[str, object] = {}
        """The profiles by scheduler name."""
        self.custom: dict[tuple[str, str], Resource] = {}
        """(kind, apiVersion) → the custom kinds that plugins read."""
        self.set_aside: dict[str, int] = {}
        """Kinds that no plugin reads → number of objects that were left out."""
        self._objects: dict[Resource, dict[str, Any]] = {PODS: {}, NODES: {}}
        self.pods: dict[str, Pod] = self._objects[PODS]
        self.nodes: dict[str, Node] = self._objects[NODES]
        self._lives: dict[str, PodLife] = {}
        """UID → the life of a pod, if it has one."""
        self._ends: dict[str, Timer] = {}
        """UID → the timer that ends a running pod."""
        self._version = 0
        self._second, self._time = -1.0, ""

    # Methods for workloads

    def add(self, obj: AnyObject, life: PodLife = NO_LIFE) -> None:
        """Add an object. Raise AlreadyExists if there is one with this name."""
        resource = self.resource_of(obj)
        if resource is None:
            kind = f"{obj.kind} of {obj.api_version}"
            self.set_aside[kind] = self.set_aside.get(kind, 0) + 1
        elif isinstance(obj, Pod):
            self._add_pod(obj, life)
        else:
            self._store(resource, None, self._identified(resource, obj))

    def update(self, resource: Resource, key: str, edit: Callable[[Any], Any]) -> None:
        """Change an object. Raise NotFound if it does not exist."""
        old = self._get(resource, key)
        self._store(resource, old, edit(old))

    def remove(self, resource: Resource, key: str, why: str = DELETED) -> None:
        """Remove an object at once. Raise NotFound if it does not exist."""
        old = self._get(resource, key)
        if isinstance(old, Pod):
            self.remove_pod(old, why)
        else:
            del self._objects[resource][key]
            self.post(Change(resource, old, None))

    def put(self, obj: AnyObject) -> None:
        """Replace an object by one with the same name, keeping its UID."""
        resource = self.resource_of(obj)
        if resource is not None:
            new = self._identified(resource, obj)
            old = self._get(resource, new.key)
            self._store(resource, old, _with_metadata(new, uid=old.metadata.uid))

    def remove_pod(self, pod: Pod, why: str) -> None:
        """Remove a pod at once, if it still exists."""
        current = self.pods.get(pod.key)
        if current is None or current.uid != pod.uid:
            return
        del self.pods[pod.key]
        self.post(Change(PODS, current, None))
        if (timer := self._ends.pop(pod.uid, None)) is not None:
            timer.cancel()
        life = self._lives.pop(pod.uid, NO_LIFE)
        for watcher in self.watchers:
            watcher.gone(current, why)
        if life.owner is not None:
            life.owner.gone(current, why, life)

    def delete_pod(self, pod: Pod) -> None:
        """Delete a pod. A running pod ends after the grace period."""
        if not self.grace or not pod.is_assigned:
            self.remove_pod(pod, DELETED)
        elif not pod.is_terminating:
            metadata = replace(pod.metadata, deletion_timestamp=self.time_text())
            terminating = self._store(PODS, pod, replace(pod, metadata=metadata))
            self.clock.call_later(self.grace, self.remove_pod, terminating, DELETED)

    def pods_on(self, node: str) -> list[Pod]:
        """Return the pods on a node."""
        return [pod for pod in self.pods.values() if pod.spec.node_name == node]

    def resource_of(self, obj: AnyObject) -> Resource | None:
        """Return the kind of an object, or None if no plugin reads it."""
        if isinstance(obj, Unstructured):
            known = self.custom.get((obj.kind, obj.api_version))
            return known or by_kind(obj.kind, obj.api_version)
        return BY_KIND[type(obj).__name__]

    @property
    def ending(self) -> int:
        """The number of running pods that will end by themselves."""
        return len(self._ends)

    def time_text(self) -> str:
        """Return the current time as objects contain it."""
        second = self.clock.wall() // 1
        if second != self._second:
            self._second, self._time = second, format_time(second)
        return self._time

    # Methods of the ApiClient

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        namespace = options.get("namespace", "")
        found = self._objects.get(resource, {}).values()
        kept = [obj for obj in found if namespace in ("", obj.metadata.namespace)]
        return ObjectList(kept, str(self._version))

    def watch(self, resource: Resource, **_: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent]:
        raise SimulationError(f"{resource} cannot be watched in a simulation; use handle.on_change")

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        return self._get(resource, key_of(name, namespace))

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        typed = decoding.convert(resource, obj) if isinstance(obj, dict) else obj
        if dry_run:
            return typed
        if isinstance(typed, Pod):
            self._add_pod(typed, NO_LIFE)
            return self.pods[key_of(typed.name, typed.namespace or "default")]
        return self._store(resource, None, self._identified(resource, typed))

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        new = decoding.convert(resource, obj) if isinstance(obj, dict) else obj
        old = self._get(resource, new.key)
        asked = new.metadata.resource_version
        if asked not in ("", old.metadata.resource_version):
            raise refusals.conflict(resource, new.name, refusals.CHANGED)
        return self._store(resource, old, new)

    async def patch(self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]) -> Any:
        old = self._get(resource, key_of(name, options.get("namespace", "")))
        new: Any = _status_patched(old, patch) if isinstance(old, Pod) and isinstance(patch, Mapping) else None
        if new is None:
            kind = options.get("patch_type", PatchType.STRATEGIC)
            raw = apply_patch(resource, decoding.to_builtins(old), patch, kind)
            new = decoding.convert(resource, raw)
        return self._store(resource, old, new)

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        key = key_of(name, options.get("namespace", ""))
        obj = self._get(resource, key)
        meta = obj.metadata
        if (options.get("uid") or meta.uid) != meta.uid:
            raise refusals.conflict(resource, name, "the UID in the precondition belongs to another object")
        if (options.get("resource_version") or meta.resource_version) != meta.resource_version:
            raise refusals.conflict(resource, name, refusals.CHANGED)
        if isinstance(obj, Pod):
            self.delete_pod(obj)
        else:
            self.remove(resource, key)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        self.bind_now(key_of(name, namespace), uid, node)

    def bind_now(self, key: str, uid: str, node: str) -> None:
        """Let the pod run on the node from now on."""
        old = self.pods.get(key)
        if old is None or old.metadata.uid != uid or old.spec.node_name:
            raise refusals.conflict(PODS, key, "the pod is gone, replaced or assigned to a node")
        status = replace(old.status, phase="Running", start_time=self.time_text(), nominated_node_name="")
        new = replace(old, spec=replace(old.spec, node_name=node), status=status)
        self.pods[key] = new
        self.post(Change(PODS, old, new))
        self._runs(new)

    # Pods

    def _add_pod(self, pod: Pod, life: PodLife) -> None:
        pod = self._admitted(self._identified(PODS, pod))
        if pod.key in self.pods:
            raise refusals.already_exists(PODS, pod.key)
        if life is not NO_LIFE:
            self._lives[pod.uid] = life
        self.pods[pod.key] = pod
        self.post(Change(PODS, None, pod))
        for watcher in self.watchers:
            watcher.added(pod)
        if pod.spec.node_name and not pod.is_terminal:
            self._runs(pod)

    def _runs(self, pod: Pod) -> None:
        life = self._lives.get(pod.uid, NO_LIFE)
        if life.seconds is not None:
            self._ends[pod.uid] = self.clock.call_later(life.seconds, self.remove_pod, pod, ENDED)
        for watcher in self.watchers:
            watcher.bound(pod)

    def _admitted(self, pod: Pod) -> Pod:
        """Fill in the priority of the pod's priority class, and a profile if it names none."""
        spec = pod.spec
        if spec.priority is None and spec.priority_class_name:
            found = self._objects.get(PRIORITY_CLASSES, {}).get(spec.priority_class_name)
            if found is None:
                raise MoorageError(
                    f"pod {pod.key}: spec.priorityClassName: there is no PriorityClass "
                    f"{spec.priority_class_name!r}; add it to the objects"
                )
            policy = spec.preemption_policy or found.preemption_policy
            spec = replace(spec, priority=found.value, preemption_policy=policy)
        if self.adopts_pods and (spec.scheduler_name or DEFAULT_SCHEDULER_NAME) not in self.profiles:
            spec = replace(spec, scheduler_name=next(iter(self.profiles), ""))
        return pod if spec is pod.spec else replace(pod, spec=spec)

    # Objects

    def _identified(self, resource: Resource, obj: Any) -> Any:
        """Fill in namespace, UID and creation time, as an API server does."""
        meta = obj.metadata
        if meta.uid and meta.creation_timestamp and (meta.namespace or not resource.namespaced):
            return obj
        namespace = meta.namespace or ("default" if resource.namespaced else "")
        uid = meta.uid or f"{resource.plural}/{namespace}/{meta.name}/{self._next_version()}"
        created = meta.creation_timestamp or self.time_text()
        return _with_metadata(obj, namespace=namespace, uid=uid, creation_timestamp=created)

    def _get(self, resource: Resource, key: str) -> Any:
        found = self._objects.get(resource, {}).get(key)
        if found is None:
            raise refusals.not_found(resource, key)
        return found

    def _store(self, resource: Resource, old: Any, new: Any) -> Any:
        """Store a version of an object under a new resourceVersion."""
        new = _with_metadata(new, resource_version=self._next_version())
        objects = self._objects.setdefault(resource, {})
        if old is None and new.key in objects:
            raise refusals.already_exists(resource, new.key)
        objects[new.key] = new
        self.post(Change(resource, old, new))
        return new

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)


def key_of(name: str, namespace: str = "") -> str:
    return f"{namespace}/{name}" if namespace else name


def _with_metadata(obj: Any, **fields: str) -> Any:
    if isinstance(obj, Object):
        return replace(obj, metadata=replace(obj.metadata, **fields))
    names = {"creation_timestamp": "creationTimestamp", "resource_version": "resourceVersion"}
    raw = {names.get(name, name): value for name, value in fields.items() if value}
    return Unstructured({**obj.raw, "metadata": {**(obj.raw.get("metadata") or {}), **raw}})


def _status_patched(pod: Pod, patch: Mapping[str, Any]) -> Pod | None:
    """Apply a patch of the fields that the scheduler writes. Return None if the patch contains others."""
    if not patch.keys() <= {"metadata", "status"} or patch.get("metadata", {}).keys() - {"uid"}:
        return None
    status = patch.get("status", {})
    if not status.keys() <= {"conditions", "nominatedNodeName"}:
        return None
    if patch.get("metadata", {}).get("uid", pod.uid) != pod.uid:
        raise refusals.conflict(PODS, pod.name, "the UID in the precondition belongs to another pod")
    new: PodStatus = pod.status
    if "nominatedNodeName" in status:
        new = replace(new, nominated_node_name=status["nominatedNodeName"] or "")
    if "conditions" in status:
        changed = {condition.type: condition for condition in new.conditions}
        for raw in status["conditions"]:
            changed[raw["type"]] = convert(raw, PodCondition)
        new = replace(new, conditions=tuple(changed.values()))
    return replace(pod, status=new)


def _not_connected(change: Change) -> None:
    raise SimulationError("The simulated cluster has no scheduler yet; set its `post`.")
