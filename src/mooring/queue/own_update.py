"""What changed in a pending pod, as the events that its rejectors' hints know."""

from __future__ import annotations

from mooring.api.errors import QuantityError
from mooring.api.pod import Pod
from mooring.api.requests import pod_requests
from mooring.framework.events import UNSCHEDULED_POD, ActionType, ClusterEvent


def own_changes(old: Pod, new: Pod) -> list[ClusterEvent]:
    """One event per kind of change, in kube-scheduler's order; any other change is a plain Update.

    A change of the status alone is none: most of them are the scheduler's own condition, and would wake the
    pod that has just been refused (kube-scheduler does try it once more then).
    """
    actions = [action for action, changed in _CHANGES if changed(old, new)]
    if not actions and _wanted(old) != _wanted(new):
        actions = [ActionType.UPDATE_OTHER]
    return [ClusterEvent(UNSCHEDULED_POD, action) for action in actions]


def _wanted(pod: Pod) -> tuple[object, ...]:
    """What the pod's owner can say about it."""
    meta = pod.metadata
    return pod.spec, meta.annotations, meta.owner_references, meta.finalizers, meta.deletion_timestamp


def _labels(old: Pod, new: Pod) -> bool:
    return old.labels != new.labels


def _scaled_down(old: Pod, new: Pod) -> bool:
    try:
        before, after = pod_requests(old), pod_requests(new)
    except QuantityError:
        return False  # what cannot be read does not get smaller
    return any(after.get(name, 0) < amount for name, amount in before.items())


def _gates_eliminated(old: Pod, new: Pod) -> bool:
    return old.is_gated and not new.is_gated


def _tolerations(old: Pod, new: Pod) -> bool:
    # The API allows tolerations to be added, never changed or removed.
    return len(old.spec.tolerations) != len(new.spec.tolerations)


def _generated_claims(old: Pod, new: Pod) -> bool:
    return old.status.resource_claim_statuses != new.status.resource_claim_statuses


_CHANGES = (
    (ActionType.UPDATE_POD_LABEL, _labels),
    (ActionType.UPDATE_POD_SCALE_DOWN, _scaled_down),
    (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _gates_eliminated),
    (ActionType.UPDATE_POD_TOLERATION, _tolerations),
    (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _generated_claims),
)
