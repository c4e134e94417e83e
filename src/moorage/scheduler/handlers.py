"""Handlers for changes of objects: they update stores and cache and return instructions for the queue.

They follow pkg/scheduler/eventhandlers.go. The informer splits a change of UID into a delete and an add, so
the old and the new object of a change belong to the same pod.

Two schedulers that share nodes cannot avoid overcommitting them, because each binds by the state that its own
watch has shown. OvercommitWatch detects this when the watch shows the other scheduler's pod and reports it in
the log, in an event and in a metric. The kubelet decides whether the pod can run.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from moorage.api import resources as kinds
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import PODS
from moorage.api.resources import Resource
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.framework import events
from moorage.framework.events import ActionType, ClusterEvent, EventResource
from moorage.framework.ports import Change, EventRecorder, Served
from moorage.queue.changes import node_changes, pod_changes
from moorage.queue.pod_events import PodEvents
from moorage.runtime.services import WaitingPods
from moorage.scheduler.instructions import Enqueue, Instruction, Remove, UpdateQueued, Wake
from moorage.state.cache import CacheOutcome, ClusterCache
from moorage.state.stores import Stores
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

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
    """Return the name of a kind in events. A custom kind is `<plural>.<version>.<group>`."""
    return EVENT_RESOURCES.get(resource) or EventResource(str(resource))


class PodStage(enum.Enum):
    """Whether a version of a pod is pending, assigned to a node, or gone."""

    GONE = "gone"
    PENDING = "pending"
    ASSIGNED = "assigned"


def stage_of(pod: Pod | None) -> PodStage:
    """Return the stage of a version of a pod."""
    if pod is None or pod.is_terminal:
        return PodStage.GONE
    return PodStage.ASSIGNED if pod.is_assigned else PodStage.PENDING


class Handlers:
    """Updates stores and cache with changes, and returns what they mean for the queue."""

    def __init__(
        self,
        stores: Stores,
        cache: ClusterCache,
        waiting: WaitingPods,
        serves: Callable[[Pod], bool],
        on_foreign: Callable[[Pod], None] | None = None,
        behaviour: Behaviour = DEFAULT_BEHAVIOUR,
    ) -> None:
        self._behaviour = behaviour
        self._events = PodEvents(behaviour)
        self._stores = stores
        self._cache = cache
        self._waiting = waiting
        self._serves = serves
        """Returns whether one of the profiles schedules the pod."""
        self._on_foreign = on_foreign
        """Called with each pod that another scheduler has bound."""
        self._foreign: Pod | None = None
        """The pod of the current change, if another scheduler has bound it."""

    def apply(self, change: Change) -> list[Instruction]:
        """Update stores and cache, and return the instructions for the queue."""
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

    def event_label(self, change: Change) -> str:
        """Return the label of a change in metrics."""
        action = "Add" if change.old is None else "Update" if change.new is not None else "Delete"
        if change.resource == kinds.PODS:
            pod = change.new if change.new is not None else change.old
            return f"{events.ASSIGNED_POD if pod.is_assigned else self._events.name_of_waiting()}{action}"
        return f"{_label(change.resource)}{action}"

    def serve(self, served: Served) -> list[Instruction]:
        """Handle a kind that the API server started or stopped serving, as when a CRD is installed.

        There is no object to pass to hints, so all unschedulable pods are tried again.
        """
        return [Wake(events.KIND_SERVED)] if self._stores[served.resource].serve(served.known) else []

    def _pod(self, old: Pod | None, new: Pod | None) -> list[Instruction]:
        before, after = stage_of(old), stage_of(new)
        if old is not None and new is not None and before is after:
            match after:
                case PodStage.PENDING:
                    return self._pending_updated(old, new)
                case PodStage.ASSIGNED:
                    return self._assigned_updated(old, new)
        bound = new if after is PodStage.ASSIGNED else None
        instructions = self._gone(before, old, bound) if old is not None else []
        return instructions + (self._came(after, new) if new is not None else [])

    def _came(self, place: PodStage, pod: Pod) -> list[Instruction]:
        if place is PodStage.ASSIGNED:
            _log.info(3, "Add event for scheduled pod", pod=pod)
            return self._assigned_added(pod)
        if place is PodStage.GONE or not self._serves(pod):
            return []
        _log.info(3, "Add event for unscheduled pod", pod=pod)
        self._cache.expect(pod)
        # Another pod may be waiting for the new one.
        return [Enqueue(pod), Wake(self._events.add, None, pod, besides=pod.uid)]

    def _gone(self, place: PodStage, pod: Pod, bound: Pod | None) -> list[Instruction]:
        if place is PodStage.ASSIGNED:
            _log.info(3, "Delete event for scheduled pod", pod=pod)
            self._cache.remove_pod(pod)
            return [Wake(events.ASSIGNED_POD_DELETE, pod)]
        if place is PodStage.GONE or not self._serves(pod):
            return []
        _log.info(3, "Delete event for unscheduled pod", pod=pod)
        self._cache.forget_expected(pod.uid)
        if bound is not None:
            return [Remove(bound)]
        return [Remove(pod), *self._pending_deleted(pod)]

    def _pending_deleted(self, pod: Pod) -> list[Instruction]:
        """Release the node of a pod that was deleted before it was bound."""
        cached = self._cache.get(pod.uid)
        if self._waiting.reject(pod.uid) or cached is None or not cached.assumed:
            return []
        placed = cached.pod  # unlike the deleted object, it names the node
        self._cache.forget(pod.uid)
        return [Wake(events.ASSIGNED_POD_DELETE, placed)]

    def _assigned_added(self, pod: Pod) -> list[Instruction]:
        added = self._cache.add_pod(pod)
        if added is CacheOutcome.ADDED or added is CacheOutcome.MOVED:
            self._foreign = pod
        instructions: list[Instruction] = [Wake(events.ASSIGNED_POD_ADD, None, pod)]
        if added is CacheOutcome.MOVED:
            # Another scheduler bound the pod elsewhere, so the space reserved here is free again.
            instructions.append(Wake(events.ASSIGNED_POD_DELETE, pod))
        return instructions

    def _pending_updated(self, old: Pod, new: Pod) -> list[Instruction]:
        if not self._serves(new):
            return []
        _log.info(4, "Update event for unscheduled pod", pod=new)
        self._cache.expect(new)
        instructions: list[Instruction] = [UpdateQueued(old, new)]
        if old.labels != new.labels:
            # A changed label may complete a group that other pods wait for.
            event = self._events.waiting(ActionType.UPDATE_POD_LABEL)
            instructions.append(Wake(event, old, new, besides=new.uid))
        return instructions

    def _assigned_updated(self, old: Pod, new: Pod) -> list[Instruction]:
        _log.info(4, "Update event for scheduled pod", pod=new)
        self._cache.update_pod(old, new)
        changed = pod_changes(old, new, self._behaviour)
        return [Wake(ClusterEvent(events.ASSIGNED_POD, changed), old, new)] if changed else []

    def _node(self, old: Node | None, new: Node | None) -> list[Instruction]:
        if new is None:
            if old is None:
                return []
            _log.info(3, "Delete event for node", node=old)
            self._cache.remove_node(old)
            return [Wake(events.NODE_DELETE, old)]
        if old is None:
            _log.info(3, "Add event for node", node=new)
            self._cache.add_node(new)
            return [Wake(events.NODE_ADD, None, new)]
        _log.info(4, "Update event for node", node=new)
        self._cache.update_node(old, new)
        changed = node_changes(old, new)
        return [Wake(ClusterEvent(events.NODE, changed), old, new)] if changed else []


def _label(resource: Resource) -> str:
    return str(events.NODE if resource == kinds.NODES else event_resource(resource))


def _plain_event(change: Change) -> ClusterEvent:
    if change.old is None:
        action = ActionType.ADD
    else:
        action = ActionType.UPDATE if change.new is not None else ActionType.DELETE
    return ClusterEvent(event_resource(change.resource), action)


REASON = "NodeOvercommitted"


class OvercommitWatch:
    """Checks every pod that another scheduler has bound."""

    def __init__(
        self, cache: ClusterCache, recorder: EventRecorder, controller: str, metrics: SchedulerMetrics | None = None
    ) -> None:
        self._cache = cache
        self._recorder = recorder
        self._controller = controller
        self._metrics = metrics

    def appeared(self, pod: Pod) -> None:
        """Report an overcommitted node after another scheduler has bound a pod to it."""
        table, amounts = self._cache.table, self._cache.table.amounts
        row = table.row_of(pod.spec.node_name)
        if row < 0:
            return
        asked = (*self._cache.entry(pod).requests, PODS)
        over = {
            resource: (int(amounts.requested(resource)[row]), int(amounts.allocatable(resource)[row]))
            for resource in asked
            if amounts.requested(resource)[row] > amounts.allocatable(resource)[row]
        }
        if over:
            self._report(pod, over)

    def _report(self, pod: Pod, over: dict[str, tuple[int, int]]) -> None:
        summary = ", ".join(f"{name} {have} of {most}" for name, (have, most) in sorted(over.items()))
        _log.warning("Node overcommitted by another scheduler", node=pod.spec.node_name, pod=pod, requested=summary)
        if self._metrics is not None:
            for resource in over:
                self._metrics.overcommits.inc(resource)
        self._recorder.event(
            pod,
            type="Warning",
            reason=REASON,
            action="Binding",
            note=f"Node {pod.spec.node_name} is overcommitted since this pod was bound to it: requested {summary}",
            controller=self._controller,
        )
