"""PreemptionToleration: preemption as in kube-scheduler, but annotations of a PriorityClass may protect its pods from
preemptors below some priority, for some time after they were scheduled. Follows
pkg/preemptiontoleration/preemption_toleration.go of scheduler-plugins (KEP-205)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moorage.api.pod import Pod
from moorage.api.resources import PRIORITY_CLASSES
from moorage.api.scheduling import PriorityClass
from moorage.api.times import parse_time
from moorage.contrib.preempting import CandidateArgs, PreemptingPlugin, VictimPolicy
from moorage.framework.access import LISTED, Access
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.ports import Timer
from moorage.framework.preemption import NEEDS
from moorage.framework.status import PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses

PREFIX = "preemption-toleration.scheduling.x-k8s.io/"
MINIMUM = f"{PREFIX}minimum-preemptable-priority"
SECONDS = f"{PREFIX}toleration-seconds"
NEVER_ENDS = float("inf")
FLUSH = 300.0
"""Seconds after which an unschedulable pod is retried in any case."""

_INTEGER = re.compile(r"[+-]?[0-9]+")


class Protection(NamedTuple):
    """The protection that a PriorityClass grants its pods."""

    minimum: int
    """Preemptors of this priority and above are not held off."""
    seconds: float
    """Since the pod was scheduled; infinite for ever."""


def protection_of(found: PriorityClass) -> Protection | None:
    """Return the protection; None if an annotation is not a valid number: then the class protects no pod."""
    minimum = _integer(found.annotations.get(MINIMUM, str(found.value + 1)), 32)
    seconds = _integer(found.annotations.get(SECONDS, "0"), 64)
    if minimum is None or seconds is None:
        return None
    return Protection(minimum, seconds if seconds >= 0 else NEVER_ENDS)


def _integer(text: str, bits: int) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def protected_until(pod: Pod, seconds: float) -> float:
    """Return Unix seconds. As in scheduler-plugins, a pod without the condition PodScheduled is protected forever."""
    if seconds == NEVER_ENDS:
        return NEVER_ENDS
    condition = next((found for found in pod.status.conditions if found.type == "PodScheduled"), None)
    if condition is None or condition.status != "True":
        return NEVER_ENDS
    return (parse_time(condition.last_transition_time) or 0.0) + seconds


class TolerationPolicy(VictimPolicy):
    def __init__(self, args: CandidateArgs, handle: Handle) -> None:
        super().__init__(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
        self._classes = handle.lister(PRIORITY_CLASSES)
        self._clock = handle.clock
        self.soonest = NEVER_ENDS
        """When the first of the pods that were protected in the latest search no longer is."""

    def victims(self, pod: Pod, node: NodeView) -> Sequence[Pod]:
        return self._unprotected(node.ranked.below(pod.priority), self.protections(pod.priority))

    def victims_on(self, pod: Pod, nodes: Nodes) -> Sequence[Sequence[Pod]]:
        protections = self.protections(pod.priority)
        lower = nodes.columns.lower_pods_on(nodes.rows.tolist(), pod.priority)
        return [self._unprotected(pods, protections) for pods in lower] if protections else lower

    def awaits_victims(self, pod: Pod, node: NodeView) -> bool:
        """Return whether to wait for terminating pods; they are not protected any more."""
        return any(other.is_terminating for other in node.ranked.below(pod.priority))

    def protections(self, priority: int) -> Mapping[str, float]:
        """Return the classes that tolerate a preemptor of this priority, and for how many seconds. A deleted class
        protects no pod."""
        known = ((found.name, protection_of(found)) for found in self._classes.list())
        return {name: grants.seconds for name, grants in known if grants and priority < grants.minimum}

    def is_protected(self, pod: Pod, protections: Mapping[str, float]) -> bool:
        seconds = protections.get(pod.spec.priority_class_name)
        if seconds is None or (until := protected_until(pod, seconds)) <= self._clock.wall():
            return False
        self.soonest = min(self.soonest, until)
        return True

    def _unprotected(self, pods: Sequence[Pod], protections: Mapping[str, float]) -> Sequence[Pod]:
        return [pod for pod in pods if not self.is_protected(pod, protections)]


class PreemptionToleration(PreemptingPlugin):
    name = "PreemptionToleration"
    Args = CandidateArgs
    needs = (*NEEDS, Access(PRIORITY_CLASSES, LISTED))
    replaces = ("DefaultPreemption", "CapacityScheduling")

    def __init__(self, args: CandidateArgs, handle: Handle) -> None:
        self.policy = TolerationPolicy(args, handle)
        super().__init__(args, handle, self.policy)
        self._timers: dict[str, Timer] = {}
        """UID → when a pod that could not preempt is tried again."""

    async def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        self.policy.soonest = NEVER_ENDS
        result, status = await super().post_filter(state, pod, statuses)
        if status is not None and status.is_rejected:
            self._try_again(pod)
        return result, status

    def _try_again(self, pod: Pod) -> None:
        """Retry the pod when a protection ends, since no event reports that. Later ends are covered by the flush of
        unschedulable pods."""
        delay = self.policy.soonest - self.handle.clock.wall()
        if timer := self._timers.pop(pod.uid, None):
            timer.cancel()
        if delay < FLUSH:
            self._timers[pod.uid] = self.handle.clock.call_later(delay, self._activate, pod)

    def _activate(self, pod: Pod) -> None:
        del self._timers[pod.uid]
        self.handle.activate([pod])

    def protected(self, preemptor: Pod, pods: Iterable[Pod]) -> Iterable[Pod]:
        """Return the pods of lower priority that this pod may not preempt now. Pods without a class are not protected,
        not even if the preemptor must never preempt."""
        if preemptor.spec.preemption_policy == "Never":
            return [pod for pod in pods if pod.spec.priority_class_name]
        protections = self.policy.protections(preemptor.priority)
        return [pod for pod in pods if self.policy.is_protected(pod, protections)]

    def sign(self, pod: Pod) -> Hashable:
        return ()
