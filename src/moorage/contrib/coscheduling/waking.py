"""Queueing hints for rejected members of a group: changes of their own group, and free capacity.

The plan depends on everything that Filter plugins read, so every event that may change their answers counts as
capacity. If the group lacks members, only a new member helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import Unstructured
from moorage.contrib.coscheduling.groups import PODGROUPS, Groups, group_of
from moorage.framework import events
from moorage.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, Registration

ROUNDS = EventResource("Coscheduling")
"""Woken with a group as `new` when its backoff is over, and as `old` when it gives up what it had planned."""
_JOINS = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
_LEAVES = ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_SCALE_DOWN
_NODE = (
    ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
    | ActionType.UPDATE_NODE_TAINT | ActionType.UPDATE_NODE_DECLARED_FEATURE
)  # fmt: skip
"""Not conditions and annotations, which change often and which no filter of the default profile reads."""


class Waking:
    """The events and hints of the plugin."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def registrations(self) -> Sequence[Registration]:
        podgroup = ClusterEvent(EventResource(str(PODGROUPS)), ActionType.ADD | ActionType.UPDATE)
        others = [each for each in events.WITHOUT_REGISTRATION if each not in (events.POD, events.NODE)]
        return [
            Registration(ClusterEvent(events.POD, _JOINS), self._joins),
            Registration(podgroup, self._describes),
            Registration(ClusterEvent(ROUNDS, ActionType.UPDATE), self._round_ended),
            Registration(ClusterEvent(events.ASSIGNED_POD, _LEAVES), self._may_help),
            Registration(ClusterEvent(events.NODE, _NODE), self._may_help),
            *(Registration(ClusterEvent(each, ActionType.ALL), self._may_help) for each in others),
        ]

    def _joins(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        return self._queue_if(new is not None and group_of(new) == group_of(pod), pod)

    def _describes(self, pod: Pod, old: Unstructured | None, new: Unstructured | None) -> QueueingHint:
        """Queue if the spec has changed. A new status does not help: one is written when a member is rejected."""
        if new is None or new.key != group_of(pod):
            return QueueingHint.SKIP
        return self._queue_if(old is None or old.get("spec") != new.get("spec"), pod)

    def _round_ended(self, pod: Pod, old: str | None, new: str | None) -> QueueingHint:
        if old is not None and old != group_of(pod):
            return self._may_help(pod, old, new)
        return self._queue_if(new == group_of(pod), pod)

    def _may_help(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        return self._queue_if(not self._groups.progress(group_of(pod)).lacks_members, pod)

    def _queue_if(self, helps: bool, pod: Pod) -> QueueingHint:
        if not helps:
            return QueueingHint.SKIP
        progress = self._groups.progress(group_of(pod))
        progress.refused, progress.called = None, True
        return QueueingHint.QUEUE
