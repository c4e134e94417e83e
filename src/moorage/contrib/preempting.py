"""The base of plugins with their own preemption: they pass PostFilter to `framework.preemption`, and gate a pod while
its victims are being evicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from moorage.api.meta import Int32
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid
from moorage.api.resources import PODS
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import ASSIGNED_POD_DELETE, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.nodes import NodeView
from moorage.framework.optional import ReusablePlugin
from moorage.framework.points import PostFilterPlugin, PreEnqueuePlugin
from moorage.framework.preemption import PreemptionPolicy
from moorage.framework.status import PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses

MAX_NODES_NAMED = 10
IN_PROGRESS = "waiting for the preemption for this pod to be finished"


class CandidateArgs(PluginArgs):
    """The arguments of DefaultPreemption: it tries the larger of a percentage of all nodes and an absolute number."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        where = child(path, "minCandidateNodesPercentage")
        if not 0 <= percentage <= 100:
            yield invalid(where, percentage, "not in valid range [0, 100]")
        if absolute < 0:
            yield invalid(child(path, "minCandidateNodesAbsolute"), absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            yield invalid(where, percentage, "cannot be zero at the same time as minCandidateNodesAbsolute")


class VictimPolicy(PreemptionPolicy):
    """Preemption as in kube-scheduler with the messages of scheduler-plugins, which name the nodes. It waits for any
    terminating pod that could have been a victim."""

    def awaits_victims(self, pod: Pod, node: NodeView) -> bool:
        return any(victim.is_terminating for victim in self.victims(pod, node))

    def without_victims(self, pod: Pod, node_names: Sequence[str]) -> Mapping[str, int]:
        """Return one reason per node, unless there are too many nodes to read."""
        if len(node_names) > MAX_NODES_NAMED:
            return super().without_victims(pod, node_names)
        return {f"No victims found on node {name} for preemptor pod {pod.name}": 1 for name in node_names}


class PreemptingPlugin(PostFilterPlugin, PreEnqueuePlugin, ReusablePlugin):
    """A plugin that replaces DefaultPreemption."""

    replaces: ClassVar[Sequence[str]] = ("DefaultPreemption",)

    def __init__(self, args: Any, handle: Handle, policy: PreemptionPolicy) -> None:
        super().__init__(args, handle)
        self._preemption = handle.preemption(policy)

    async def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        return await self._preemption.preempt(state, pod, statuses)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return Status.unresolvable(IN_PROGRESS) if self._preemption.is_running(pod) else None

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ASSIGNED_POD_DELETE, never)]


def never(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Skip: a deletion ends the wait for victims, and the filters that rejected the pod decide whether it helps."""
    return QueueingHint.SKIP


def is_ending(victim: Pod, handle: Handle) -> bool:
    """Return whether the pod is terminating and still exists."""
    current = handle.lister(PODS).get(victim.name, victim.namespace)
    return isinstance(current, Pod) and current.uid == victim.uid and current.is_terminating
