"""The default plugins of the queue: SchedulingGates decides which pods may enter it, PrioritySort who goes
first."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from moorage.api.pod import Pod
from moorage.framework.events import POD, ActionType, ClusterEvent, QueuedPod, QueueingHint, Registration
from moorage.framework.optional import ReusablePlugin
from moorage.framework.points import PreEnqueuePlugin, SortKeyPlugin
from moorage.framework.status import Status


class SchedulingGates(PreEnqueuePlugin, ReusablePlugin):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Status.unresolvable(f"waiting for scheduling gates: [{names}]")

    def events_to_register(self) -> Sequence[Registration]:
        event = ClusterEvent(POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return [Registration(event, own_gates_gone, per_pod=True)]

    def sign(self, pod: Pod) -> Hashable:
        return tuple(gate.name for gate in pod.spec.scheduling_gates)


def own_gates_gone(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Only the pod's own update can open its gates."""
    own = isinstance(new, Pod) and new.uid == pod.uid and not new.spec.scheduling_gates
    return QueueingHint.QUEUE if own else QueueingHint.SKIP


class PrioritySort(SortKeyPlugin):
    name = "PrioritySort"

    def key(self, pod: QueuedPod) -> Any:
        return (-pod.pod.priority, pod.timestamp)
