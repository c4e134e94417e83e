"""Preemption for plugin authors: the decisions of a policy, and the values that it sees.

`handle.preemption(policy)` runs the steps of pkg/scheduler/framework/preemption/preemption.go: eligibility,
candidates, dry run, reprieve, disruption budgets, extenders, choice and execution. A plugin inherits
`PreemptionPolicy` to decide some of them differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt

from moorage.api.pod import Pod
from moorage.api.resources import POD_DISRUPTION_BUDGETS, PODS
from moorage.api.times import parse_time
from moorage.framework.access import LISTED, Access
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import FloatArray, IntArray, Nodes, NodeView
from moorage.framework.status import Code, PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses

NEEDS = (
    Access(PODS, ("get", "list", "watch", "delete")),
    Access(PODS, ("patch",), "status"),
    Access(POD_DISRUPTION_BUDGETS, LISTED),
)
"""What a plugin that preempts must declare in `needs`."""

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
NO_VICTIMS = "No preemption victims found for incoming pod"
OFFSET = 2**31
"""Added to every priority to make it positive, so that more victims of negative priority never cost less."""

Costs = npt.NDArray[np.int64]
"""A row per candidate: violated budgets, priority of the top victim, sum of priorities, number of victims."""
VictimsOn = Callable[[Nodes], Sequence[Sequence[Pod]]]
"""Returns for each node the pods that may have to go, most important first."""


def start_of(pod: Pod) -> float:
    """Return when the pod started, in epoch seconds; infinity for a pod that has not started yet."""
    seconds = parse_time(pod.status.start_time)
    return math.inf if seconds is None else seconds


class Candidate(NamedTuple):
    """A node, and the pods that would have to go from it, most important first."""

    node_name: str
    victims: Sequence[Pod]
    pdb_violations: int = 0
    """How many of the victims violate a disruption budget."""
    reprieved: Sequence[Pod] = ()
    """Potential victims that can stay."""

    @property
    def costs(self) -> tuple[int, int, int, int]:
        """The row of this candidate in `Costs`."""
        priorities = [pod.priority for pod in self.victims]
        total = sum(priority + OFFSET for priority in priorities)
        return self.pdb_violations, max(priorities), total, len(priorities)

    @property
    def start(self) -> float:
        """When the first of the top victims started."""
        top = max(pod.priority for pod in self.victims)
        return min(start_of(pod) for pod in self.victims if pod.priority == top)


class CandidateBatch(Protocol):
    """Nodes that a dry run judged together; a Candidate is built on demand."""

    @property
    def starts(self) -> FloatArray: ...

    def candidate(self, row: int) -> Candidate: ...


class Candidates(Sequence[Candidate]):
    """The candidates of a search. A Candidate is built when it is looked at; its costs are known before."""

    def __init__(self, costs: Costs, places: Sequence[tuple[CandidateBatch, int] | Candidate]) -> None:
        self.costs = costs
        self._places = places

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Candidates:
        """Build the sequence from candidates that exist already."""
        listed = list(candidates)
        return cls(np.array([found.costs for found in listed], dtype=np.int64).reshape(-1, 4), listed)

    def starts(self, indexes: IntArray) -> FloatArray:
        """Return when the first of the top victims of some candidates started. The later, the less work is lost."""
        places = [self._places[index] for index in indexes.tolist()]
        return np.array([p.start if isinstance(p, Candidate) else p[0].starts[p[1]] for p in places])

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> Candidates: ...

    def __getitem__(self, index: int | slice) -> Candidate | Candidates:
        if isinstance(index, slice):
            return Candidates(self.costs[index], self._places[index])
        place = self._places[index]
        return place if isinstance(place, Candidate) else place[0].candidate(place[1])


def best_candidate(candidates: Candidates) -> Candidate:
    """Return the candidate that costs least; there must be one. The first of these criteria that separates the
    candidates decides, as in pickOneNodeForPreemption: fewest violated budgets, least important top victim, smallest
    sum of priorities, fewest victims, latest start of the earliest top victim, first in the list."""
    best = np.arange(len(candidates))
    for cost in candidates.costs.T:
        costs = cost[best]
        best = best[costs == costs.min()]
    return candidates[int(best[np.argmax(candidates.starts(best))] if len(best) > 1 else best[0])]


class PreemptionPolicy:
    """The decisions of kube-scheduler's DefaultPreemption. Inherit it and override what should differ."""

    def __init__(self, percentage: int = 10, absolute: int = 100) -> None:
        self._percentage = percentage
        self._absolute = absolute

    def ineligible(self, pod: Pod, statuses: NodeStatuses) -> str:
        """Return why the pod may not preempt others now; empty if it may."""
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        nominated = pod.nominated_node_name
        if not nominated or statuses.get(nominated).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        columns = statuses.nodes.columns
        row = columns.row_of(nominated)
        if row >= 0 and self.awaits_victims(pod, columns.view(row)):
            return "not eligible due to a terminating pod on the nominated node."
        return ""

    def awaits_victims(self, pod: Pod, node: NodeView) -> bool:
        """Return whether victims of this pod are still terminating on its nominated node."""
        return any(map(terminates_for_preemption, self.victims(pod, node)))

    def number_of_candidates(self, nodes: int) -> int:
        """Return how many candidates are enough, given the number of nodes on which preemption may help."""
        return min(max(nodes * self._percentage // 100, self._absolute), nodes)

    def victims(self, pod: Pod, node: NodeView) -> Sequence[Pod]:
        """Return the pods that may have to go from a node, most important first. Preemption tries to keep
        them in this order."""
        return node.ranked.below(pod.priority)

    def victims_on(self, pod: Pod, nodes: Nodes) -> Sequence[Sequence[Pod]]:
        """Return `victims` for many nodes at once."""
        if type(self).victims is PreemptionPolicy.victims:
            return nodes.columns.lower_pods_on(nodes.rows.tolist(), pod.priority)
        return [self.victims(pod, node) for node in nodes]

    def without_victims(self, pod: Pod, node_names: Sequence[str]) -> Mapping[str, int]:
        """Return the reasons for nodes from which no pod may go, each with its number of nodes."""
        return {NO_VICTIMS: len(node_names)}

    def choose(self, pod: Pod, candidates: Candidates) -> Candidate:
        """Return the candidate to preempt on; there is at least one."""
        return best_candidate(candidates)


def terminates_for_preemption(pod: Pod) -> bool:
    """Return whether the pod is being deleted because a scheduler preempted it."""
    if not pod.is_terminating:
        return False
    condition = next((found for found in pod.status.conditions if found.type == DISRUPTION_TARGET), None)
    return condition is not None and condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER


class Budgets(Protocol):
    """The PodDisruptionBudgets of the cluster at one moment."""

    def spent(self, victims: Iterable[Pod]) -> tuple[Budgets, list[Pod]]:
        """Return what the budgets allow once these pods are gone, and which of the pods violate one. Returns
        the same object if no budget applies to any of them."""


class Preemption(Protocol):
    """Preemption for one plugin, built by `handle.preemption(policy)`. The plugin passes PostFilter and
    PreEnqueue on to it."""

    def is_running(self, pod: Pod) -> bool:
        """Return whether victims of this pod are still being evicted; PreEnqueue should hold it back."""

    async def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Do `preempt`, with "preemption: " in front of its messages."""

    async def preempt(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        """Find a node and start to evict its victims. Success nominates the node. Unschedulable with a result
        clears the nomination, and without a result leaves it alone."""

    def budgets(self) -> Budgets:
        """Return the current disruption budgets; the same object until a budget changes."""

    def evict(self, pod: Pod, *candidates: Candidate, siblings: Sequence[Pod] = ()) -> None:
        """Evict the victims of all candidates in the background, for `pod`. Then `pod` and its siblings are
        tried again. Victims that are terminating already are left alone; their end wakes the pod."""

    async def nominate(self, nominations: Iterable[tuple[Pod, str]]) -> None:
        """Write `status.nominatedNodeName` of pods that are not in their attempt; failures are logged."""
