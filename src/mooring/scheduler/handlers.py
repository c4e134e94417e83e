"""What a delivered change means: for the stores and the cache at once, for the queue afterwards.

`apply` brings stores and cache up to date and returns the wake-ups, which the engine runs when all caches of
the batch are current. So no pod is woken into a state that does not yet show what woke it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from mooring.api import resources as kinds
from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.resources import Resource
from mooring.framework import events
from mooring.framework.changes import node_changes, pod_changes
from mooring.framework.events import ActionType, ClusterEvent, EventResource
from mooring.framework.ports import Change
from mooring.queue.scheduling_queue import SchedulingQueue
from mooring.runtime.waiting import WaitingPods
from mooring.scheduler.inbox import WakeUp
from mooring.state.cache import ClusterCache, Outcome
from mooring.state.stores import Stores

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
    def __init__(
        self,
        stores: Stores,
        cache: ClusterCache,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        serves: Callable[[Pod], bool],
        on_foreign: Callable[[Pod], None] | None = None,
    ) -> None:
        self._stores = stores
        self._cache = cache
        self._queue = queue
        self._waiting = waiting
        self._serves = serves
        """Whether one of our profiles schedules the pod."""
        self._on_foreign = on_foreign
        """Told of each pod that somebody else has bound."""
        self._foreign: Pod | None = None
        """The one among the pods of this change."""

    def apply(self, change: Change) -> list[WakeUp]:
        """Bring stores and cache up to date; returns what to do with the queue afterwards."""
        self._stores.apply(change)
        if change.resource == kinds.PODS:
            wake_ups = self._pod(change.old, change.new)
            if self._foreign is not None:
                if self._on_foreign is not None and not change.initial:
                    self._on_foreign(self._foreign)
                self._foreign = None
            return wake_ups
        if change.resource == kinds.NODES:
            return self._node(change.old, change.new)
        return [lambda: self._queue.on_event(_plain_event(change), change.old, change.new)]

    def _pod(self, old: Pod | None, new: Pod | None) -> list[WakeUp]:
        if old is not None and new is not None and old.uid != new.uid:
            return self._pod(old, None) + self._pod(None, new)
        before, after = place_of(old), place_of(new)
        if old is not None and new is not None and before is after:
            match after:
                case Place.PENDING:
                    return self._pending_updated(old, new)
                case Place.ASSIGNED:
                    return self._assigned_updated(old, new)
        left = self._left(before, old, new if after is Place.ASSIGNED else None) if old is not None else []
        return left + (self._came(after, new) if new is not None else [])

    def _came(self, place: Place, pod: Pod) -> list[WakeUp]:
        if place is Place.ASSIGNED:
            return self._assigned_added(pod)
        if place is Place.GONE or not self._serves(pod):
            return []
        self._cache.expect(pod)
        return [
            lambda: self._queue.add(pod),
            lambda: self._tell_others(events.UNSCHEDULED_POD_ADD, None, pod),
        ]

    def _left(self, place: Place, pod: Pod, bound: Pod | None) -> list[WakeUp]:
        if place is Place.ASSIGNED:
            self._cache.remove_pod(pod)
            return [lambda: self._queue.on_event(events.ASSIGNED_POD_DELETE, pod, None)]
        if place is Place.GONE or not self._serves(pod):
            return []
        self._cache.expect_no_more(pod.uid)
        if bound is not None:
            # The new object: a pod that is bound where it was nominated gives no room up.
            return [lambda: self._queue.delete(bound)]
        return [lambda: self._queue.delete(pod), *self._pending_deleted(pod)]

    def _pending_deleted(self, pod: Pod) -> list[WakeUp]:
        """A pod that is deleted on its way to a node gives its place back at once."""
        cached = self._cache.get(pod.uid)
        if self._waiting.reject(pod.uid) or cached is None or not cached.assumed:
            return []
        placed = cached.pod  # unlike the deleted object it says where
        self._cache.forget(pod.uid)
        return [lambda: self._queue.on_event(events.ASSIGNED_POD_DELETE, placed, None)]

    def _assigned_added(self, pod: Pod) -> list[WakeUp]:
        added = self._cache.add_pod(pod)
        if added is Outcome.ADDED or added is Outcome.MOVED:
            self._foreign = pod
        wake: list[WakeUp] = [lambda: self._queue.on_event(events.ASSIGNED_POD_ADD, None, pod)]
        if added is Outcome.MOVED:
            # Somebody bound it elsewhere: the room that we had booked is free again.
            wake.append(lambda: self._queue.on_event(events.ASSIGNED_POD_DELETE, pod, None))
        return wake

    def _pending_updated(self, old: Pod, new: Pod) -> list[WakeUp]:
        if not self._serves(new):
            return []
        self._cache.expect(new)
        wake: list[WakeUp] = [lambda: self._update(old, new)]
        if old.labels != new.labels:
            # A changed label may complete a group that others wait for.
            event = ClusterEvent(events.UNSCHEDULED_POD, ActionType.UPDATE_POD_LABEL)
            wake.append(lambda: self._tell_others(event, old, new))
        return wake

    def _tell_others(self, event: ClusterEvent, old: Pod | None, new: Pod) -> None:
        """A pending pod may be what another one waits for; itself it has been dealt with already."""
        self._queue.on_event(event, old, new, only=lambda other: other.uid != new.uid)

    def _update(self, old: Pod, new: Pod) -> None:
        """A pod that is being bound is no longer the queue's; until then its own changes are."""
        if new.uid in self._queue or not self._cache.is_assumed(new.uid):
            self._queue.update(old, new)

    def _assigned_updated(self, old: Pod, new: Pod) -> list[WakeUp]:
        self._cache.update_pod(old, new)
        changed = pod_changes(old, new)
        if not changed:
            return []
        return [lambda: self._queue.on_event(ClusterEvent(events.ASSIGNED_POD, changed), old, new)]

    def _node(self, old: Node | None, new: Node | None) -> list[WakeUp]:
        if new is None:
            if old is None:
                return []
            self._cache.remove_node(old)
            return [lambda: self._queue.on_event(events.NODE_DELETE, old, None)]
        if old is None:
            self._cache.add_node(new)
            return [lambda: self._queue.on_event(events.NODE_ADD, None, new)]
        self._cache.update_node(old, new)
        changed = node_changes(old, new)
        if not changed:
            return []
        return [lambda: self._queue.on_event(ClusterEvent(events.NODE, changed), old, new)]


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
