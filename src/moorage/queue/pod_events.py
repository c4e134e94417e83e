"""The events about pending pods, with the labels that kube-scheduler of a version gives them.

1.37 tells the pending pod itself (TargetPod) from other waiting pods (UnscheduledPod); up to 1.36 both were called
UnschedulablePod. Registrations and hints are the same in all versions.
"""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.api.versions import Behaviour
from moorage.framework.events import TARGET_POD, UNSCHEDULED_POD, ActionType, ClusterEvent, EventResource
from moorage.queue.changes import narrow_pod_changes


class PodEvents:
    """Makes events. Equal events are one object, so that they are matched with registrations once."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._names = {UNSCHEDULED_POD: behaviour.waiting_pod, TARGET_POD: behaviour.own_pod}
        self._made: dict[tuple[EventResource, ActionType], ClusterEvent] = {}
        self.add = self.waiting(ActionType.ADD)
        """A pending pod is new."""
        self.update = self.waiting(ActionType.UPDATE)
        """A pending pod that the queue did not know has changed."""

    def waiting(self, action: ActionType) -> ClusterEvent:
        """Return the event of a waiting pod, for the other pods."""
        return self._event(UNSCHEDULED_POD, action)

    def own_changes(self, old: Pod, new: Pod) -> list[ClusterEvent]:
        """Return the changes of a pending pod as the events that its own hints know.

        There is one event per kind of change, in kube-scheduler's order; any other change is a plain Update. A
        change of the status alone is not an event: most of these are the scheduler's own condition and would
        requeue the pod that was just rejected. (kube-scheduler does try the pod once more in that case.)
        """
        actions = [*narrow_pod_changes(old, new, self._behaviour)]
        if not actions and _set_by_owner(old) != _set_by_owner(new):
            actions = [ActionType.UPDATE_OTHER]
        return [self._event(TARGET_POD, action) for action in actions]

    def name_of_waiting(self) -> str:
        """Return what a waiting pod is called in labels."""
        return self._names[UNSCHEDULED_POD]

    def _event(self, resource: EventResource, action: ActionType) -> ClusterEvent:
        made = self._made.get((resource, action))
        if made is None:
            event, name = ClusterEvent(resource, action), self._names[resource]
            if name != resource:
                event = ClusterEvent(resource, action, ClusterEvent(EventResource(name), action).label)
            made = self._made[resource, action] = event
        return made


def _set_by_owner(pod: Pod) -> tuple[object, ...]:
    """Return the parts of a pod that its owner can change."""
    meta = pod.metadata
    return pod.spec, meta.annotations, meta.owner_references, meta.finalizers, meta.deletion_timestamp
