"""The extension points of GangPreemption: plan the victims of a whole group, and gate its members until these are gone.

    PostFilter: a member fits nowhere ──▶ a plan for all members that the group needs ──none──▶ rejected
       │ found: every member is nominated, all victims are evicted
       ▼
    PreEnqueue: members wait until the last victim is gone ──▶ each is tried on its nominated node

Members and their nodes are tracked by Coscheduling (`coscheduling.groups`). Pods without a group, and members of a
group that has started, preempt as with DefaultPreemption."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from moorage.api.meta import Int32
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid
from moorage.contrib.coscheduling.args import DEFAULT_WAIT, PODGROUP_DEFINITION
from moorage.contrib.coscheduling.groups import PODGROUPS, GroupObject, Groups, Round, group_of
from moorage.contrib.coscheduling.planning import Misfit, in_some_order
from moorage.contrib.gang_preemption.evicting import EvictingPacking
from moorage.contrib.preempting import IN_PROGRESS, CandidateArgs, PreemptingPlugin, is_ending
from moorage.framework.access import LISTED, Access
from moorage.framework.args import ArgsContext
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import ASSIGNED_POD_DELETE, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.preemption import NEEDS, Candidate, PreemptionPolicy
from moorage.framework.status import Code, PostFilterResult, Status
from moorage.framework.statuses import NodeStatuses

Answer = tuple[PostFilterResult | None, Status | None]


class GangPreemptionArgs(CandidateArgs):
    max_members: Int32 = 100
    """The maximum number of members that victims are planned for."""

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        yield from super().validate(path, context)
        if self.max_members < 1:
            yield invalid(child(path, "maxMembers"), self.max_members, "must be at least 1")


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """The decision for a group."""

    preemptor: Pod
    """The member for which the plan was made."""
    nodes: dict[str, str]
    """UID of a member → the node that it is nominated to."""
    victims: tuple[Pod, ...]


class GangPreemption(PreemptingPlugin):
    name = "GangPreemption"
    Args = GangPreemptionArgs
    needs = (*NEEDS, Access(PODGROUPS, LISTED))
    definitions = (PODGROUP_DEFINITION,)
    replaces = ("DefaultPreemption", "PreemptionToleration", "CapacityScheduling", "CrossNodePreemption")
    precedes = ("Coscheduling",)

    def __init__(self, args: GangPreemptionArgs, handle: Handle) -> None:
        self._policy = PreemptionPolicy(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
        super().__init__(args, handle, self._policy)
        self._groups = Groups(handle)
        self._decided: dict[str, GroupPreemption] = {}
        """By group, until all its members have a node or are gone."""

    async def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> Answer:
        key = group_of(pod)
        group = self._groups.podgroup(key)
        if key and group is None:
            return None, Status.unschedulable(f"preemption: PodGroup {key} not found")
        if group is None or (needed := group.min_member - len(self._groups.progress(key).placed)) <= 0:
            return await self._preemption.post_filter(state, pod, statuses)
        if self._groups.progress(key).leaving:
            # Their nodes come free at once, which wakes the pod: a plan without them would be none.
            return None, Status.unresolvable(f"PodGroup {key} waits for members that were rejected")
        known = self._decided.get(key)
        if known is not None and (self._awaits(known) or self._is_for_others(known, pod)):
            # Unresolvable ends PostFilter here: Coscheduling must not reject the members that have a node.
            waits = Status.unresolvable(f"PodGroup {key} waits for the pods that it preempts")
            return PostFilterResult(known.nodes.get(pod.uid)), waits
        reason = self._policy.ineligible(pod, statuses)
        if reason:
            return None, Status.unschedulable(f"preemption: {reason}")
        found = self._plan(group, needed, pod, statuses)
        if isinstance(found, str):
            return PostFilterResult(""), Status.unschedulable(f"preemption: {found}")
        return self._execute(group, pod, found), Status.success()

    def _awaits(self, known: GroupPreemption) -> bool:
        """Return whether victims are still being evicted or terminating. A victim that could not be deleted does not
        count, because the group then needs another plan."""
        ending = (is_ending(victim, self.handle) for victim in known.victims)
        return self._preemption.is_running(known.preemptor) or any(ending)

    def _is_for_others(self, known: GroupPreemption, pod: Pod) -> bool:
        """Return whether enough other members are about to get the nodes that were freed for them."""
        return pod.uid not in known.nodes and self._is_under_way(group_of(pod), known)

    def _is_under_way(self, key: str, known: GroupPreemption) -> bool:
        return any(found.uid in known.nodes and not found.is_assigned for found in self._groups.members(key))

    # The plan

    def _plan(
        self, group: GroupObject, needed: int, pod: Pod, statuses: NodeStatuses
    ) -> list[tuple[Pod, Candidate]] | str:
        """Return each member with its node and victims, or why there is no plan."""
        if not len(statuses.rows_with(Code.UNSCHEDULABLE)):
            return f"not helpful for PodGroup {group.key}"
        members = [*islice(self._groups.unplaced(pod), needed)]
        if len(members) < needed:
            return f"PodGroup {group.key} needs {needed} members, {len(members)} can be planned here"
        if needed > (limit := self.args.max_members):
            return f"PodGroup {group.key} needs {needed} members, more than maxMembers {limit}"
        for member in members:
            self.handle.nominator.forget(member.uid)  # the plan decides anew
        lowest = min(member.priority for member in members)
        others = [each for each in self._groups.planned_besides(group.key) if each[0].priority >= lowest]
        own = {node for _, node in self._groups.progress(group.key).placed.values()}
        budgets = self._preemption.budgets()

        def start(pins: Mapping[str, str] = MappingProxyType({})) -> EvictingPacking:
            return EvictingPacking(self.handle, others, own, self._policy, budgets, pins)

        with self._groups.planning(group.key):
            found, packing = in_some_order(members, start)
            if isinstance(found, Misfit) and (pins := self._pins(group.key, members)):
                packing = start(pins)
                found = packing.pack(sorted(members, key=lambda member: [*pins].index(member.uid)))
            if isinstance(found, Misfit):
                fitting = f"{found.placed} of {needed} members would have a node, Pod {found.pod.name} none"
                return f"PodGroup {group.key} would not fit: {fitting}: {found.why}"
            planned = packing.reprieved(found)
        if not any(candidate.victims for _, candidate in planned):
            return f"PodGroup {group.key} fits without"
        return planned

    def _pins(self, key: str, members: Sequence[Pod]) -> dict[str, str]:
        """Return the nodes of Coscheduling's plan, which fits without the pods of lower priority but is not the
        cheapest."""
        under_way = self._groups.round(key)
        planned = {uid: node for uid, (_, node) in under_way.planned.items()} if under_way is not None else {}
        return planned if all(member.uid in planned for member in members) else {}

    def _execute(self, group: GroupObject, pod: Pod, planned: Sequence[tuple[Pod, Candidate]]) -> PostFilterResult:
        for other in [each for each, known in self._decided.items() if not self._is_under_way(each, known)]:
            del self._decided[other]
        victims = tuple(victim for _, candidate in planned for victim in candidate.victims)
        nodes = {member.uid: candidate.node_name for member, candidate in planned}
        self._decided[group.key] = GroupPreemption(pod, nodes, victims)
        # While the victims end and for as long as members may wait then, each goes where the plan says.
        grace = max(victim.spec.termination_grace_period_seconds or 0 for victim in victims)
        planned_nodes = {member.uid: (member, found.node_name) for member, found in planned}
        until = self.handle.clock.now() + grace + (group.timeout or DEFAULT_WAIT)
        self._groups.rounds[group.key] = Round(planned_nodes, until)
        self._groups.progress(group.key).pinned = True
        for member, candidate in planned:
            self.handle.nominator.nominate(member, candidate.node_name)
        others = [(member, found.node_name) for member, found in planned if member.uid != pod.uid]
        self._preemption.evict(pod, *(candidate for _, candidate in planned), siblings=[member for member, _ in others])
        self.handle.spawn(self._preemption.nominate(others), f"nominations of {group.key}")
        return PostFilterResult(nodes[pod.uid], victims)

    # Waiting for the victims

    def pre_enqueue(self, pod: Pod) -> Status | None:
        known = self._decided.get(group_of(pod))
        if known is not None and pod.uid in known.nodes and self._awaits(known):
            return Status.unresolvable(IN_PROGRESS)
        return super().pre_enqueue(pod)

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ASSIGNED_POD_DELETE, self._victim_gone)]

    def _victim_gone(self, pod: Pod, old: Pod, new: Any) -> QueueingHint:
        known = self._decided.get(group_of(pod))
        gone = known is not None and any(victim.uid == old.uid for victim in known.victims)
        return QueueingHint.QUEUE if gone else QueueingHint.SKIP

    def sign(self, pod: Pod) -> Hashable:
        return group_of(pod)
