"""The default plugins around filtering and scoring: SchedulingGates (KEP-3521), PrioritySort, DefaultPreemption and
DefaultBinder.

They follow pkg/scheduler/framework/plugins/{schedulinggates,queuesort,defaultpreemption,defaultbinder} of
kube-scheduler. Preemption itself is in `framework.preemption`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from moorage.api.errors import ApiError, NotSent, ServiceUnavailable
from moorage.api.meta import Int32, key_of
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid
from moorage.api.resources import PODS
from moorage.framework.access import Access
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import (
    ASSIGNED_POD_DELETE,
    POD,
    ActionType,
    ClusterEvent,
    QueuedPod,
    QueueingHint,
    Registration,
)
from moorage.framework.handle import Handle
from moorage.framework.optional import ReusablePlugin
from moorage.framework.points import BindPlugin, PostFilterPlugin, PreEnqueuePlugin, SortKeyPlugin
from moorage.framework.preemption import NEEDS, PreemptionPolicy
from moorage.framework.status import PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses
from moorage.telemetry import logs


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
        return key_of([gate.name for gate in pod.spec.scheduling_gates])


def own_gates_gone(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue on the pod's own update; no other event can remove its scheduling gates."""
    own = isinstance(new, Pod) and new.uid == pod.uid and not new.spec.scheduling_gates
    return QueueingHint.QUEUE if own else QueueingHint.SKIP


class PrioritySort(SortKeyPlugin):
    name = "PrioritySort"

    def key(self, pod: QueuedPod) -> Any:
        return (-pod.pod.priority, pod.timestamp)


IN_PROGRESS = "waiting for the preemption for this pod to be finished"


class DefaultPreemptionArgs(PluginArgs):
    """How many nodes preemption tries: the larger of a percentage of all nodes and an absolute number."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        percentage_path = child(path, "minCandidateNodesPercentage")
        absolute_path = child(path, "minCandidateNodesAbsolute")
        if not 0 <= percentage <= 100:
            yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
        if absolute < 0:
            yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            text = "cannot be zero at the same time as"
            yield invalid(percentage_path, percentage, f"{text} minCandidateNodesAbsolute")
            yield invalid(absolute_path, absolute, f"{text} minCandidateNodesPercentage")


class DefaultPreemption(PostFilterPlugin, PreEnqueuePlugin, ReusablePlugin):
    name = "DefaultPreemption"
    Args = DefaultPreemptionArgs
    needs = NEEDS

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        policy = PreemptionPolicy(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
        self._preemption = handle.preemption(policy)

    async def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        return await self._preemption.post_filter(state, pod, statuses)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return Status.unresolvable(IN_PROGRESS) if self._preemption.is_running(pod) else None

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ASSIGNED_POD_DELETE, never)]

    def sign(self, pod: Pod) -> Hashable:
        return ()


def never(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Skip: the registration makes a deletion re-run PreEnqueue, and the filters that rejected the pod decide whether
    the deletion helps."""
    return QueueingHint.SKIP


_log = logs.get(__name__)


class DefaultBinder(BindPlugin):
    name = "DefaultBinder"
    needs = (Access(PODS, ("create",), "binding"),)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._tries = handle.behaviour.bind_tries

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Bind the pod. If the answer is lost, `OutcomeUnknown` is raised, because only the scheduler may resolve
        it."""
        _log.info(3, "Attempting to bind pod to node", pod=pod.key, node=node_name)
        pause, more_tries = FIRST_PAUSE, self._tries - 1
        while True:
            try:
                await self.handle.client.bind(pod.name, pod.namespace, pod.uid, node_name)
                return None
            except (ApiError, NotSent) as error:
                if not more_tries or not is_transient(error):
                    return Status.error(str(error), cause=error)
            more_tries -= 1
            await self.handle.clock.sleep(pause * (1 + JITTER * self.handle.random.random()))
            pause *= FACTOR


FIRST_PAUSE, FACTOR, JITTER = 0.01, 5.0, 0.1
"""Seconds before a bind is sent again, as retry.DefaultBackoff of client-go."""


def is_transient(error: ApiError | NotSent) -> bool:
    """Return whether to send a bind again (Retriable in pkg/scheduler/util/utils.go): after an internal error, if the
    server is unavailable, or if it refused the connection. A server that asks for a pause gets it: the pod is tried
    again after that. If the first try bound the pod nevertheless, the next one is a conflict, and the scheduler reads
    the pod to learn the outcome."""
    if isinstance(error, NotSent):
        return True
    if isinstance(error, ServiceUnavailable):
        return error.retry_after is None
    return error.code == 500 and error.reason in ("InternalError", "")
