"""What a kind of preemption decides for itself; everything has the default of kube-scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.preemption.candidates import Candidate, Candidates
from moorage.framework.status import Code
from moorage.framework.statuses import NodeStatuses

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
NO_VICTIMS = "No preemption victims found for incoming pod"


class PreemptionPolicy:
    """The default one. Inherit and override what is to be different."""

    def __init__(self, percentage: int = 10, absolute: int = 100) -> None:
        self._percentage = percentage
        self._absolute = absolute

    def ineligible(self, pod: Pod, statuses: NodeStatuses, handle: Handle) -> str:
        """Why the pod may not preempt others now; empty when it may."""
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        nominated = pod.nominated_node_name
        if not nominated or statuses.get(nominated).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        node = handle.node(nominated)
        if node is not None and self.awaits_victims(pod, node):
            return "not eligible due to a terminating pod on the nominated node."
        return ""

    def awaits_victims(self, pod: Pod, node: NodeView) -> bool:
        """Whether pods that made way for this one are still ending on the node that it is nominated to."""
        return any(map(terminates_for_preemption, self.victims(pod, node)))

    def number_of_candidates(self, nodes: int) -> int:
        """How many candidates are enough, of so many nodes on which preemption may help."""
        return min(max(nodes * self._percentage // 100, self._absolute), nodes)

    def victims(self, pod: Pod, node: NodeView) -> Sequence[Pod]:
        """The pods that may have to go from a node, most important first. The order is that in which they
        are tried to be kept."""
        return node.ranked.below(pod.priority)

    def victims_on(self, pod: Pod, nodes: Nodes) -> Sequence[Sequence[Pod]]:
        """`victims` for many nodes at once."""
        if type(self).victims is PreemptionPolicy.victims:
            return nodes.columns.lower_pods_on(nodes.rows.tolist(), pod.priority)
        return [self.victims(pod, node) for node in nodes]

    def without_victims(self, pod: Pod, node_names: Sequence[str]) -> Mapping[str, int]:
        """Reason → number of nodes, of nodes from which no pod may go."""
        return {NO_VICTIMS: len(node_names)}

    def choose(self, pod: Pod, candidates: Candidates) -> Candidate:
        """The node to preempt on; there is at least one."""
        return best_candidate(candidates)


def terminates_for_preemption(pod: Pod) -> bool:
    """Whether the pod is being deleted because a scheduler preempted it."""
    if not pod.is_terminating:
        return False
    condition = next((found for found in pod.status.conditions if found.type == DISRUPTION_TARGET), None)
    return (
        condition is not None and condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER
    )


def best_candidate(candidates: Candidates) -> Candidate:
    """The candidate that costs least; there must be one. The first of these that separates the candidates
    decides: fewest violated budgets, least important top victim, smallest sum of priorities, fewest victims,
    latest start of the earliest top victim; then the first one."""
    best = np.arange(len(candidates))
    for cost in candidates.costs.T:
        costs = cost[best]
        best = best[costs == costs.min()]
    return candidates[int(best[np.argmax(candidates.starts(best))] if len(best) > 1 else best[0])]
