"""What changed in a pending pod, as the events that its rejectors' hints know."""

from __future__ import annotations

from mooring.api.pod import Pod
from mooring.framework.changes import POD_CHANGES
from mooring.framework.events import UNSCHEDULED_POD, ActionType, ClusterEvent


def own_changes(old: Pod, new: Pod) -> list[ClusterEvent]:
    """One event per kind of change, in kube-scheduler's order; any other change is a plain Update.

    A change of the status alone is none: most of them are the scheduler's own condition, and would wake the
    pod that has just been refused (kube-scheduler does try it once more then).
    """
    actions = [action for action, changed in POD_CHANGES.items() if changed(old, new)]
    if not actions and _wanted(old) != _wanted(new):
        actions = [ActionType.UPDATE_OTHER]
    return [ClusterEvent(UNSCHEDULED_POD, action) for action in actions]


def _wanted(pod: Pod) -> tuple[object, ...]:
    """What the pod's owner can say about it."""
    meta = pod.metadata
    return pod.spec, meta.annotations, meta.owner_references, meta.finalizers, meta.deletion_timestamp
