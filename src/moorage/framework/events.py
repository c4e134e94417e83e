"""Queued pods, and the cluster events and queueing hints that may make an unschedulable pod schedulable.

An event names a resource and what happened to it. A plugin registers the events that could change its
refusal. When one arrives, the queue asks the hints of the plugins that refused a pod whether to try it again.
Follows pkg/scheduler/framework/types.go and KEP-4247 (per-plugin queueing hints).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from moorage.api.pod import Pod


class EventResource(str):
    """The resource of an event: one of the constants below, or `EventResource("<plural>.<version>.<group>")` for a
    custom resource. A plugin that decides by data from outside the cluster defines one, such as `EventResource("<its
    name>")`, and calls `handle.wake` when the data has changed."""

    __slots__ = ()


POD = EventResource("Pod")
ASSIGNED_POD = EventResource("AssignedPod")
UNSCHEDULED_POD = EventResource("UnscheduledPod")
TARGET_POD = EventResource("TargetPod")
NODE = EventResource("Node")
PERSISTENT_VOLUME = EventResource("PersistentVolume")
PERSISTENT_VOLUME_CLAIM = EventResource("PersistentVolumeClaim")
CSI_NODE = EventResource("CSINode")
CSI_DRIVER = EventResource("CSIDriver")
CSI_STORAGE_CAPACITY = EventResource("CSIStorageCapacity")
VOLUME_ATTACHMENT = EventResource("VolumeAttachment")
STORAGE_CLASS = EventResource("StorageClass")
RESOURCE_CLAIM = EventResource("ResourceClaim")
RESOURCE_SLICE = EventResource("ResourceSlice")
DEVICE_CLASS = EventResource("DeviceClass")
POD_GROUP = EventResource("PodGroup")
WILDCARD = EventResource("*")

OF_THE_CLUSTER = frozenset(
    (
        POD, ASSIGNED_POD, UNSCHEDULED_POD, TARGET_POD, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, CSI_NODE,
        CSI_DRIVER, CSI_STORAGE_CAPACITY, VOLUME_ATTACHMENT, STORAGE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE,
        DEVICE_CLASS, POD_GROUP, WILDCARD,
    )
)  # fmt: skip
"""Events about these come only from the API server; `handle.wake` refuses them."""

WITHOUT_REGISTRATION = (
    POD, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, CSI_NODE, CSI_DRIVER, CSI_STORAGE_CAPACITY,
    STORAGE_CLASS, RESOURCE_CLAIM, DEVICE_CLASS,
)  # fmt: skip
"""Every action on these wakes pods that a plugin without registrations refused. As upstream, VolumeAttachment
and ResourceSlice are not among them."""


class ActionType(enum.IntFlag):
    """What happened to an object; an event carries one or several actions."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    """A cordon or uncordon counts as a taint change."""
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE_OTHER = 1 << 13
    """A change that none of the narrower bits describes."""

    UPDATE = (
        UPDATE_NODE_ALLOCATABLE | UPDATE_NODE_LABEL | UPDATE_NODE_TAINT | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION | UPDATE_NODE_DECLARED_FEATURE | UPDATE_POD_LABEL | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM | UPDATE_OTHER
    )  # fmt: skip
    ALL = ADD | DELETE | UPDATE


_ACTION_LABELS = {
    **{action: (action.name or "").title().replace("_", "") for action in ActionType},
    ActionType.UPDATE: "Update",
    ActionType.UPDATE_OTHER: "Update",
    ActionType.ALL: "All",
}


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that happened to a resource."""

    resource: EventResource
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The name in logs and metrics: `NodeAdd`, `AssignedPodDelete`, `ForceActivate`."""
        if self.custom_label:
            return self.custom_label
        if self.resource == WILDCARD and self.action == ActionType.ALL:
            return "*"
        known = _ACTION_LABELS.get(self.action)
        if known is None:
            known = "|".join(_ACTION_LABELS[bit] for bit in ActionType if bit in self.action)
        return f"{self.resource}{known}"

    @property
    def labels(self) -> list[str]:
        """The label of each action of a registration."""
        if self.custom_label or self.action in _ACTION_LABELS:
            return [self.label]
        whole = [ActionType.UPDATE] if ActionType.UPDATE in self.action else []
        rest = self.action & ~ActionType.UPDATE if whole else self.action
        return [f"{self.resource}{_ACTION_LABELS[bit]}" for bit in [*rest, *whole]]

    @property
    def is_wildcard(self) -> bool:
        return self.resource == WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Return whether this registration covers `incoming`: they have an action in common and the same
        resource. `*` covers every resource, Pod covers all pods, and UnscheduledPod covers the pending pod
        itself (TargetPod), because it was one of them up to 1.36."""
        if self.is_wildcard:
            return True
        same = self.resource in (WILDCARD, incoming.resource) or incoming.resource in _COVERED.get(self.resource, ())
        return same and bool(self.action & incoming.action)


_COVERED = {
    POD: (ASSIGNED_POD, UNSCHEDULED_POD, TARGET_POD),
    UNSCHEDULED_POD: (TARGET_POD,),
    EventResource("UnschedulablePod"): (UNSCHEDULED_POD, TARGET_POD),  # the name up to 1.36
}


FORCE_ACTIVATE = ClusterEvent(WILDCARD, ActionType.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILDCARD, ActionType.ALL, "UnschedulableTimeout")
BACKOFF_COMPLETE = ClusterEvent(WILDCARD, ActionType.ALL, "BackoffComplete")
POP_FROM_BACKOFF = ClusterEvent(WILDCARD, ActionType.ALL, "PopFromBackoffQ")
SCHEDULE_ATTEMPT_FAILURE = ClusterEvent(WILDCARD, ActionType.ALL, "ScheduleAttemptFailure")
KIND_SERVED = ClusterEvent(WILDCARD, ActionType.ALL, "KindServed")
"""The API server has started or stopped serving a kind that plugins read."""
CONFIGURATION_RELOADED = ClusterEvent(WILDCARD, ActionType.ALL, "ConfigurationReloaded")
"""A reload has replaced the plugins."""
ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(UNSCHEDULED_POD, ActionType.ADD)
NODE_ADD = ClusterEvent(NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(NODE, ActionType.DELETE)


class QueueingHint(enum.Enum):
    """A hint's verdict on one event for one pod."""

    SKIP = "QueueSkip"
    """The event cannot help the pod, which stays unschedulable."""
    QUEUE = "Queue"
    """The event might help; try the pod again."""


HintFn = Callable[[Pod, Any, Any], QueueingHint]
"""`hint(pod, old, new)`: `old` is None for an Add, `new` is None for a Delete. An exception or a wrong
answer is logged and counts as QUEUE, so a broken hint costs an attempt and never loses a pod."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One entry of `events_to_register()`.

    Without a hint every matching event queues the pod. A hint is called once for all unschedulable pods of
    one signature, so it must read only what `sign` covers (without `sign`: namespace, labels, owner and
    spec). A hint that reads more of the pod (its name, or its own object in `new`) sets `per_pod=True`.
    Events about the pending pod itself always reach the hint with that pod.
    """

    event: ClusterEvent
    hint: HintFn | None = None
    per_pod: bool = False


@dataclass(slots=True, eq=False)
class QueuedPod:
    """One pending pod on its way through the queue.

    Its identity is the pod's UID. Times are monotonic seconds of the scheduler's clock. Plugins only read it;
    the queue and the failure handler write it.
    """

    pod: Pod
    timestamp: float
    """When it last entered a part of the queue; the tie-break of PrioritySort."""
    initial_attempt: float | None = None
    """When it first entered the active queue; the start of its scheduling latency."""
    attempts: int = 0
    unschedulable_count: int = 0
    """The number of attempts that ended in a rejection; the exponent of its backoff."""
    consecutive_errors: int = 0
    """The number of attempts in a row that ended in an error; the exponent of the error backoff."""
    slow_attempts: int = 0
    """The number of attempts in a row that held up the scheduler; after the second, it is tried behind all others."""
    slow_seconds: float = 0.0
    """How long the last of them took."""
    backoff_until: float = 0.0
    unschedulable_plugins: frozenset[str] = frozenset()
    """The plugins that refused it in the last attempt."""
    pending_plugins: frozenset[str] = frozenset()
    """Those of them that answered Pending."""
    gating_plugin: str = ""
    """The PreEnqueue plugin that gates it; empty if none does."""
    gating_reason: str = ""
    signature: Hashable = None
    """Pods with equal signatures share the answers of hints."""
    woken_by: str = ""
    """The label of the event that last moved it towards the active queue; for the decision record."""
    woken_hint: str = ""
    """The plugin whose hint answered Queue to that event, or that activated the pod."""
    was_flushed: bool = field(default=False)
    """Whether the five-minute flush has moved it since its last attempt: an event should have woken it."""

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def is_gated(self) -> bool:
        return bool(self.gating_plugin)
