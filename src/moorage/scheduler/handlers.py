"""What a delivered change means: for the stores and the cache at once, for the queue as instructions.

The informer splits a changed UID into a delete and an add, so old and new object of a change are one pod.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from moorage.api import resources as kinds
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import Resource
from moorage.framework import events
from moorage.framework.changes import node_changes, pod_changes
from moorage.framework.events import ActionType, ClusterEvent, EventResource
from moorage.framework.ports import Change, Served
from moorage.runtime.services import WaitingPods
from moorage.scheduler.instructions import Enqueue, Instruction, Remove, Update, Wake
from moorage.state.cache import CacheOutcome, ClusterCache
from moorage.state.stores import Stores

EVENT_RESOURCES: dict[Resource, EventResource] = {
    kinds.PERSISTENT_VOLUMES: events.PERSISTENT_VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIMS: events.PERSISTENT_VOLUME_CLAIM,
    kinds.STORAGE_CLASSES: events.STORAGE_CLASS,
    kinds.CSI_NODES: events.CSI_NODE,
    kinds.CSI_DRIVERS: events.CSI_DRIVER,
    kinds.CSI_STORAGE_CAPACITIES: events.CSI_STORAGE_CAPACITY,
    kinds.VOLUME_ATTACHMENTS: events.VOLUME_ATTACHMENT,
    kinds.POD_GROUPS: events.POD_GROUP,
}


def event_resource(resource: Resource) -> EventResource:
    """How hints name a kind; a custom one is `<plural>.<version>.<group>`."""
    return EVENT_RESOURCES.get(resource) or EventResource(str(resource))


class Place(enum.Enum):
    """Where a version of a pod belongs."""

    GONE = "gone"
    PENDING = "pending"
    ASSIGNED = "assigned"


def place_of(pod: Pod | None) -> Place:
    if pod is None or pod.is_terminal:
        return Place.GONE
    return Place.ASSIGNED if pod.is_assigned else Place.PENDING


class Handlers:
    """Brings stores and cache up to date with delivered changes, and says what they mean for the queue."""

    def __init__(
        self,
        stores: Stores,
        cache: ClusterCache,
        waiting: WaitingPods,
        serves: Callable[[Pod], bool],
        on_foreign: Callable[[Pod], None] | None = None,
    ) -> None:
        self._stores = stores
        self._cache = cache
        self._waiting = waiting
        self._serves = serves
        """Whether one of our profiles schedules the pod."""
        self._on_foreign = on_foreign
        """Called with each pod that another scheduler has bound."""
        self._foreign: Pod | None = None
        """The one among the pods of this change."""

    def apply(self, change: Change) -> list[Instruction]:
        """Bring stores and cache up to date; returns what to do with the queue afterwards."""
        self._stores.apply(change)
        if change.resource == kinds.PODS:
            instructions = self._pod(change.old, change.new)
            if self._foreign is not None:
                if self._on_foreign is not None and not change.initial:
                    self._on_foreign(self._foreign)
                self._foreign = None
            return instructions
        if change.resource == kinds.NODES:
            return self._node(change.old, change.new)
        return [Wake(_plain_event(change), change.old, change.new)]

    def serve(self, served: Served) -> list[Instruction]:
        """A kind began or ceased to be served. There is no object to ask hints about, so all refused pods
        are tried again; it happens when a definition is installed."""
        return [Wake(events.KIND_SERVED)] if self._stores[served.resource].serve(served.known) else []

    def _pod(self, old: Pod | None, new: Pod | None) -> list[Instruction]:
        before, after = place_of(old), place_of(new)
        if old is not None and new is not None and before is after:
            match after:
                case Place.PENDING:
                    return self._pending_updated(old, new)
                case Place.ASSIGNED:
                    return self._assigned_updated(old, new)
        bound = new if after is Place.ASSIGNED else None
        instructions = self._gone(before, old, bound) if old is not None else []
        return instructions + (self._came(after, new) if new is not None else [])

    def _came(self, place: Place, pod: Pod) -> list[Instruction]:
        if place is Place.ASSIGNED:
            return self._assigned_added(pod)
        if place is Place.GONE or not self._serves(pod):
            return []
        self._cache.expect(pod)
        # The new pod may be what another one waits for.
        return [Enqueue(pod), Wake(events.UNSCHEDULED_POD_ADD, None, pod, besides=pod.uid)]

    def _gone(self, place: Place, pod: Pod, bound: Pod | None) -> list[Instruction]:
        if place is Place.ASSIGNED:
            self._cache.remove_pod(pod)
            return [Wake(events.ASSIGNED_POD_DELETE, pod)]
        if place is Place.GONE or not self._serves(pod):
            return []
        self._cache.forget_expected(pod.uid)
        if bound is not None:
            return [Remove(bound)]
        return [Remove(pod), *self._pending_deleted(pod)]

    def _pending_deleted(self, pod: Pod) -> list[Instruction]:
        """A pod that is deleted on its way to a node gives its place back at once."""
        cached = self._cache.get(pod.uid)
        if self._waiting.reject(pod.uid) or cached is None or not cached.assumed:
            return []
        placed = cached.pod  # unlike the deleted object it says where
        self._cache.forget(pod.uid)
        return [Wake(events.ASSIGNED_POD_DELETE, placed)]

    def _assigned_added(self, pod: Pod) -> list[Instruction]:
        added = self._cache.add_pod(pod)
        if added is CacheOutcome.ADDED or added is CacheOutcome.MOVED:
            self._foreign = pod
        instructions: list[Instruction] = [Wake(events.ASSIGNED_POD_ADD, None, pod)]
        if added is CacheOutcome.MOVED:
            # Another scheduler bound it elsewhere: what was reserved for it here is free again.
            instructions.append(Wake(events.ASSIGNED_POD_DELETE, pod))
        return instructions

    def _pending_updated(self, old: Pod, new: Pod) -> list[Instruction]:
        if not self._serves(new):
            return []
        self._cache.expect(new)
        instructions: list[Instruction] = [Update(old, new)]
        if old.labels != new.labels:
            # A changed label may complete a group that others wait for.
            event = ClusterEvent(events.UNSCHEDULED_POD, ActionType.UPDATE_POD_LABEL)
            instructions.append(Wake(event, old, new, besides=new.uid))
        return instructions

    def _assigned_updated(self, old: Pod, new: Pod) -> list[Instruction]:
        self._cache.update_pod(old, new)
        changed = pod_changes(old, new)
        return [Wake(ClusterEvent(events.ASSIGNED_POD, changed), old, new)] if changed else []

    def _node(self, old: Node | None, new: Node | None) -> list[Instruction]:
        if new is None:
            if old is None:
                return []
            self._cache.remove_node(old)
            return [Wake(events.NODE_DELETE, old)]
        if old is None:
            self._cache.add_node(new)
            return [Wake(events.NODE_ADD, None, new)]
        self._cache.update_node(old, new)
        changed = node_changes(old, new)
        return [Wake(ClusterEvent(events.NODE, changed), old, new)] if changed else []


def event_label(change: Change) -> str:
    """How metrics name what happened."""
    action = "Add" if change.old is None else "Update" if change.new is not None else "Delete"
    if change.resource == kinds.PODS:
        pod = change.new if change.new is not None else change.old
        kind = events.ASSIGNED_POD if pod.is_assigned else events.UNSCHEDULED_POD
        return f"{kind}{action}"
    return f"{_label(change.resource)}{action}"


def _label(resource: Resource) -> str:
    return str(events.NODE if resource == kinds.NODES else event_resource(resource))


def _plain_event(change: Change) -> ClusterEvent:
    if change.old is None:
        action = ActionType.ADD
    else:
        action = ActionType.UPDATE if change.new is not None else ActionType.DELETE
    return ClusterEvent(event_resource(change.resource), action)
