"""The extension points of Coscheduling. Follows pkg/coscheduling/coscheduling.go of scheduler-plugins.

    PreFilter: enough members? minResources free? does the whole group fit? ──no──▶ rejected, the group fails
       │ yes: a round begins; its plan is kept for this group
       ▼
    Permit: a member has a node ──▶ Wait ──▶ Wait ──▶ the last one: all start
                                     │ one finds no node (PostFilter), releases its node (Unreserve),
                                     ▼ or the wait times out
                                   all waiting members are rejected, and the group is retried later

Messages and order are those of scheduler-plugins; planning the group as a whole is an addition."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import Any

from moorage.api.pod import Pod
from moorage.api.resources import PODS, Unstructured
from moorage.api.times import backoff
from moorage.contrib.coscheduling import explaining, planning
from moorage.contrib.coscheduling.args import DEFAULT_WAIT, PODGROUP_DEFINITION, CoschedulingArgs
from moorage.contrib.coscheduling.controller import StatusController
from moorage.contrib.coscheduling.explaining import missing
from moorage.contrib.coscheduling.groups import PODGROUPS, GroupObject, Groups, Progress, Round, group_of
from moorage.contrib.coscheduling.waking import ROUNDS, Waking
from moorage.framework.access import LISTED, Access
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod, Registration
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin
from moorage.framework.points import (
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreFilterPlugin,
    ReservePlugin,
    SortKeyPlugin,
)
from moorage.framework.status import PreFilterResult, Status
from moorage.framework.statuses import NodeStatuses

SAY_AFTER = 1.0
"""Seconds in Permit after which an event says what a member waits for."""
FREE_FAILURES, MAX_BACKOFF_SECONDS = 10, 60.0
"""A group with more consecutive failed plans than the first backs off for up to the second, in seconds."""
REFUSED_FOR = 1.0
"""Seconds for which members that come next get the answer of the first."""


class Coscheduling(
    SortKeyPlugin,
    PreFilterPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PermitPlugin,
    PostBindPlugin,
    ReusablePlugin,
    ExplainingPlugin,
):
    name = "Coscheduling"
    Args = CoschedulingArgs
    needs = (Access(PODS, LISTED), Access(PODGROUPS, LISTED), Access(PODGROUPS, ("patch",), "status"))
    definitions = (PODGROUP_DEFINITION,)

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._groups = Groups(handle)
        self._controller = StatusController(handle, self._groups)
        self._wait = args.permit_waiting_time_seconds or DEFAULT_WAIT
        self._backoff = args.pod_group_backoff_seconds or args.denied_pg_expiration_time_seconds
        self._waking = Waking(self._groups)
        self._planner = planning.Planner(handle)
        self._epoch = handle.clock.wall() - handle.clock.now()
        """Wall clock at the zero of the scheduler's clock, for comparing queue times with creation times."""
        handle.on_change(PODS, self._pod_changed)
        handle.on_change(PODGROUPS, self._podgroup_changed)

    async def run(self) -> None:
        await self._controller.run()

    def sign(self, pod: Pod) -> Hashable:
        return group_of(pod)

    # Queue

    def key(self, pod: QueuedPod) -> Any:
        return (-pod.pod.priority, self._time(pod), pod.key)

    def _time(self, queued: QueuedPod) -> float:
        if key := group_of(queued.pod):
            failed_at = self._groups.progress(key).failed_at
            if failed_at is not None:
                return failed_at
            if (group := self._groups.podgroup(key)) is not None:
                return group.created
        first = queued.timestamp if queued.initial_attempt is None else queued.initial_attempt
        return self._epoch + first

    def _resort(self, key: str) -> None:
        self.handle.resort([pod.uid for pod in self._groups.members(key)])

    # PreFilter

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult | Status | None:
        if self._groups.is_planning or (group := self._groups.podgroup(group_of(pod))) is None:
            return Status.skip()
        progress = self._groups.progress(group.key)
        status = self._refusal(group, progress, pod, nodes)
        if status is None:
            status = self._plan(group, progress, pod)
        if status is not None:
            self._waits_for(group.key, status.message)
            return status
        under_way = self._groups.round(group.key)
        if progress.pinned and under_way is not None and pod.uid in under_way.planned:
            return PreFilterResult(frozenset((under_way.planned[pod.uid][1],)))
        return Status.skip()

    def _refusal(self, group: GroupObject, progress: Progress, pod: Pod, nodes: Nodes) -> Status | None:
        """Return why the pod is rejected, without searching for nodes."""
        if progress.backoff_until > self.handle.clock.now():
            return Status.unresolvable(f"podGroup {group.key} failed recently")
        members = self._groups.members(group.key)
        progress.lacks_members = True
        if len(members) < group.min_member:
            return Status.unresolvable(
                f"pre-filter pod {pod.name} cannot find enough sibling pods, current pods number: "
                f"{len(members)}, minMember of group: {group.min_member}"
            )
        if sum(not member.is_gated for member in members) < group.min_member:
            return Status.unresolvable(
                f"pre-filter pod {pod.name} cannot proceed due to gated pods in the same PodGroup"
            )
        progress.lacks_members = False
        if group.min_resources is None or progress.passed_until > self.handle.clock.now():
            return None
        if gap := missing(group, [*progress.placed.values()], nodes):
            return Status.unresolvable(f"resource gap: {gap}")
        progress.passed_until = self.handle.clock.now() + self._wait
        return None

    def _plan(self, group: GroupObject, progress: Progress, pod: Pod) -> Status | None:
        """Begin a round, unless one is in progress or the group has started; or return why the group does not fit."""
        now, key = self.handle.clock.now(), group.key
        if progress.refused is not None and now < progress.refused_at + REFUSED_FOR:
            return progress.refused
        self._groups.waiting(key)
        needed = group.min_member - len(progress.placed)
        if needed <= 1 or self._groups.round(key) is not None:
            return None  # the last one needs no plan: nothing waits longer for it than it is tried
        members = [*islice(self._groups.unplaced(pod), needed)]
        if len(members) < needed and progress.leaving:
            # A plan for a part of the group is of no use. Their nodes come free at once, which wakes it.
            return Status.unresolvable(f"PodGroup {key} waits for members that were rejected")
        with self._groups.planning(key):
            found = self._planner.plan(members, self._groups.planned_besides(key))
        if isinstance(found, planning.Misfit):
            progress.fitting = len(progress.placed) + found.placed
            fitting = f"{progress.fitting} of {group.min_member} members have a node"
            reason = f"PodGroup {key} does not fit: {fitting}, Pod {found.pod.name} has none: {found.why}"
            progress.refused, progress.refused_at = Status.unresolvable(reason), now
            return progress.refused
        planned = {member.uid: (member, node) for member, node in found}
        self._groups.rounds[key] = Round(planned, now + self._timeout(group))
        return None

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        group = self._groups.podgroup(group_of(pod))
        if group is not None:
            members, progress = self._groups.members(group.key), self._groups.progress(group.key)
            yield from explaining.details(group, members, progress, self.handle.nodes, self.handle.clock.now())

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        """Propose a minMember that the group can reach, if it has too few pods without scheduling gates."""
        key = group_of(pod)
        group, obj = self._groups.podgroup(key), self._groups.object(key)
        ready = sum(not member.is_gated for member in self._groups.members(key))
        if obj is not None and group is not None and 0 < ready < group.min_member:
            lower = Unstructured({**obj.raw, "spec": {**obj.raw["spec"], "minMember": ready}})
            text = f"lower minMember of PodGroup {key} from {group.min_member} to {ready}"
            yield Proposal(f"lower minMember of {key}", text, 4, changes=((PODGROUPS, obj, lower),))

    # PostFilter, Reserve, Permit, PostBind

    def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> Status:
        """Fail the group. This also runs if PreFilter rejected the pod."""
        group = self._groups.podgroup(group_of(pod))
        if group is None:
            return Status.unschedulable("can not find pod group")
        progress = self._groups.progress(group.key)
        self._groups.waiting(group.key)
        without = group.min_member - len(progress.placed)
        under_way, pinned = self._groups.round(group.key), progress.pinned
        if under_way is not None and under_way.planned.pop(pod.uid, None) is not None:
            progress.pinned = True
        if without <= 0 or without / group.min_member <= self.args.pod_group_reject_percentage / 100:
            return Status.unschedulable()
        self._fail(group.key, "optimistic rejection in PostFilter")
        if self._backoff and len(self._groups.members(group.key)) >= group.min_member:
            self._back_off(group.key, progress, self._backoff)
        elif pinned:
            # Plans lead to nothing again and again although members go where they say.
            progress.failures += 1
            if progress.failures > FREE_FAILURES:
                seconds = backoff(progress.failures - FREE_FAILURES, 2.0, MAX_BACKOFF_SECONDS)
                self._back_off(group.key, progress, seconds)
        return Status.unschedulable(
            f"PodGroup {group.key} gets rejected due to Pod {pod.name} is unschedulable even after PostFilter"
        )

    def _back_off(self, key: str, progress: Progress, seconds: float) -> None:
        now = self.handle.clock.now()
        if progress.backoff_until <= now:
            progress.backoff_until, progress.called = now + seconds, False
            self.handle.clock.call_later(seconds, self._backoff_over, key)

    def _backoff_over(self, key: str) -> None:
        if self._groups.progress(key).called:
            self.handle.wake(ROUNDS, None, key)
        self._groups.prune(key)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        under_way = self._groups.rounds.get(group_of(pod))
        if under_way is not None:
            under_way.take(pod.uid, node_name)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        key = group_of(pod)
        if not key:
            return
        progress = self._groups.progress(key)
        self._groups.waiting(key)
        progress.drop(pod.uid)
        progress.refused = None
        failed_before = progress.leaving.pop(pod.uid, None)
        group, under_way = self._groups.podgroup(key), self._groups.round(key)
        if group is not None and not failed_before:
            # Where its group has failed already, the members that wait now belong to the next round.
            self._fail(key, "rejection in Unreserve")
        if group is not None and failed_before is False:
            # It has waited in vain. Others may have the nodes for as long as the group had them.
            self._back_off(key, progress, self._timeout(group))
        elif group is not None and failed_before is None and progress.placed:
            # It was to be bound with those that run: no other group is to have its node before it is back.
            kept = under_way.planned if under_way is not None else {}
            until = self.handle.clock.now() + self._timeout(group)
            self._groups.rounds[key] = Round({**kept, pod.uid: (pod, node_name)}, until)
        self._groups.prune(key)

    def _fail(self, key: str, reason: str) -> None:
        """Reject all waiting members and move the group behind those that have not failed since."""
        progress = self._groups.progress(key)
        for uid in self._groups.waiting(key):
            progress.drop(uid)
            progress.leaving[uid] = True
            if (held := self.handle.waiting_pod(uid)) is not None:
                held.reject(self.name, reason)
        progress.passed_until = 0.0
        progress.failed_at = self.handle.clock.wall()
        self._resort(key)
        if self._groups.rounds.pop(key, None) is not None:
            self.handle.wake(ROUNDS, key)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        key = group_of(pod)
        if not key:
            return None
        group = self._groups.podgroup(key)
        if group is None:
            return Status.unschedulable("PodGroup not found")
        progress, waiting = self._groups.progress(key), self._groups.waiting(key)
        progress.placed[pod.uid] = (pod, node_name)
        missing_members = group.min_member - len(progress.placed)
        if missing_members > 0:
            if len(progress.placed) == 1:
                siblings = (member for member in self._groups.members(key) if member.uid != pod.uid)
                state.to_activate.update((member.key, member) for member in siblings)
            progress.held.add(pod.uid)
            self._waits_for(key, f"{missing_members} more members that have a node")
            self.handle.clock.call_later(SAY_AFTER, self._say_that_it_waits, pod)
            return Status.wait(timeout=self._timeout(group))
        self._start(key, progress, waiting)
        return None

    def _say_that_it_waits(self, pod: Pod) -> None:
        """Record an event on a pod that is pending although it was not rejected."""
        if self.handle.waiting_pod(pod.uid) is not None:
            key = group_of(pod)
            self.handle.recorder.event(
                pod,
                type="Normal",
                reason="WaitingForPodGroup",
                action="Scheduling",
                note=f"PodGroup {key} waits for {self._groups.waits_for(key)}",
                controller=self.handle.profile_name,
            )

    def _start(self, key: str, progress: Progress, waiting: Sequence[str]) -> None:
        progress.held.clear()
        for uid in waiting:
            if (held := self.handle.waiting_pod(uid)) is not None:
                held.allow(self.name)
        progress.pinned, progress.failures, progress.failed_at = False, 0, None
        self._groups.rounds.pop(key, None)
        self._waits_for(key, "")

    def _timeout(self, group: GroupObject) -> float:
        return group.timeout if group.timeout > 0 else self._wait

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        if key := group_of(pod):
            self._controller.changed(key)

    def _waits_for(self, key: str, what: str) -> None:
        """Record what the group waits for, for the status of the PodGroup."""
        progress = self._groups.progress(key)
        if progress.waits_for != what:
            progress.waits_for = what
            self._controller.changed(key)

    # What happens in the cluster

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for key in self._groups.pod_changed(old, new):
            self._controller.changed(key, ended=new is None or new.is_terminal)

    def _podgroup_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        obj = new or old
        if obj is not None:
            self._resort(obj.key)
            self._controller.changed(obj.key)

    def events_to_register(self) -> Sequence[Registration]:
        return self._waking.registrations()
