"""The extension points of CrossNodePreemption. It runs after preemption on one node has found nothing, for pods that
PodTopologySpread or InterPodAffinity keeps off nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from moorage.api.meta import Int32
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid
from moorage.api.resources import NAMESPACES, PODS
from moorage.contrib.cross_node_preemption.conflicts import Conflicts
from moorage.contrib.cross_node_preemption.search import CrossNodeSearch, SearchLimits, spread_out
from moorage.contrib.preempting import IN_PROGRESS, is_ending
from moorage.framework.access import LISTED, Access
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import ASSIGNED_POD_DELETE, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.points import PostFilterPlugin, PreEnqueuePlugin
from moorage.framework.preemption import NEEDS, PreemptionPolicy
from moorage.framework.status import Code, PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses

DOMAIN_PLUGINS = frozenset(("PodTopologySpread", "InterPodAffinity"))
"""Their refusals of a node depend on pods elsewhere."""


class CrossNodePreemptionArgs(PluginArgs):
    """Limits of the search for one pod."""

    candidate_nodes: Int32 = 20
    """Nodes that are tried for the pod."""
    max_nodes_beside: Int32 = 50
    """A node is not tried if more other nodes than this have pods that may be in the way."""
    max_victims: Int32 = 10
    max_milliseconds: Int32 = 100
    """When that is over, no further node is tried."""

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        for name, value in (
            ("candidateNodes", self.candidate_nodes),
            ("maxNodesBeside", self.max_nodes_beside),
            ("maxVictims", self.max_victims),
            ("maxMilliseconds", self.max_milliseconds),
        ):
            if value < 1:
                yield invalid(child(path, name), value, "must be at least 1")


class Decided(NamedTuple):
    """The decision for a pod."""

    pod: Pod
    node_name: str
    victims: tuple[Pod, ...]


class CrossNodePreemption(PostFilterPlugin, PreEnqueuePlugin):
    name = "CrossNodePreemption"
    Args = CrossNodePreemptionArgs
    needs = (*NEEDS, Access(NAMESPACES, LISTED))
    replaces = ("CapacityScheduling", "PreemptionToleration")

    def __init__(self, args: CrossNodePreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._policy = PreemptionPolicy()
        self._preemption = handle.preemption(self._policy)
        self._conflicts = Conflicts(handle)
        self._limits = SearchLimits(args.max_nodes_beside, args.max_victims, args.max_milliseconds / 1000)
        self._decided: dict[str, Decided] = {}
        """By the UID of the pod, as long as it is pending."""

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        known = self._decided.get(pod.uid)
        if known is not None and self._awaits(pod):
            return PostFilterResult(known.node_name), Status.unschedulable(IN_PROGRESS)
        if self._policy.ineligible(pod, statuses) or not (conflicts := self._conflicts.of(pod)):
            return None, Status.unschedulable()
        budgets = self._preemption.budgets()
        search = CrossNodeSearch(self.handle, pod, state, conflicts, budgets, self._limits)
        found = search.run(self._candidates(statuses))
        if not found:
            return None, Status.unschedulable("preemption across nodes: no victims found")
        self._forget_others()
        victims = tuple(victim for candidate in found for victim in candidate.victims)
        self._decided[pod.uid] = Decided(pod, found[0].node_name, victims)
        self._preemption.evict(pod, *found)
        return PostFilterResult(found[0].node_name, victims), Status.success()

    def _awaits(self, pod: Pod) -> bool:
        known = self._decided.get(pod.uid)
        if known is None:
            return False
        return self._preemption.is_running(pod) or any(is_ending(v, self.handle) for v in known.victims)

    def _forget_others(self) -> None:
        """Forget pods that have a node or were deleted."""
        for uid, known in [*self._decided.items()]:
            current = self.handle.lister(PODS).get(known.pod.name, known.pod.namespace)
            if current is None or current.uid != uid or current.is_assigned:
                del self._decided[uid]

    def _candidates(self, statuses: NodeStatuses) -> list[int]:
        """Return the nodes that only pods of their domains make infeasible, according to the filters. If these are few,
        add other nodes on which preemption may help."""
        refused, number = statuses.rows_with(Code.UNSCHEDULABLE), self.args.candidate_nodes
        by_domain = np.array([verdict.plugin in DOMAIN_PLUGINS for verdict in statuses.verdicts])
        first, start = by_domain[statuses.ids[refused]], self.handle.random.random()
        chosen = spread_out(refused[first], number, start)
        return chosen + spread_out(refused[~first], number - len(chosen), start)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return Status.unresolvable(IN_PROGRESS) if self._awaits(pod) else None

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ASSIGNED_POD_DELETE, self._victim_gone, per_pod=True)]

    def _victim_gone(self, pod: Pod, old: Pod, new: Any) -> QueueingHint:
        known = self._decided.get(pod.uid)
        gone = known is not None and any(victim.uid == old.uid for victim in known.victims)
        return QueueingHint.QUEUE if gone else QueueingHint.SKIP
