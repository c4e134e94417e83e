"""Find the victims that give every member of a group a node, in one dry run for the whole group.

Members are packed as in Coscheduling. A member that fits nowhere gets the node whose victims add least to the cost of
the plan, in kube-scheduler's order of comparison. A later victim may make an earlier one unnecessary, so at the end
each victim is put back if all members still fit. `plugin` decides when victims are evicted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.contrib.coscheduling.groups import group_of
from moorage.contrib.coscheduling.planning import Packing, Placements, interchangeable, preempts
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import DryRun, Handle, Trial
from moorage.framework.nodes import Nodes
from moorage.framework.preemption import Budgets, Candidate, Candidates, PreemptionPolicy, start_of
from moorage.framework.status import Code
from moorage.framework.statuses import NodeStatuses

_NO_VICTIM = -(2**31)
"""Below every priority."""


class EvictingPacking(Packing):
    """One dry run. A victim has a lower priority than the member that it makes way for, and is not in its group."""

    def __init__(
        self,
        handle: Handle,
        reserved: Placements,
        own: Collection[str],
        policy: PreemptionPolicy,
        budgets: Budgets,
        pins: Mapping[str, str],
    ) -> None:
        """Start a dry run. `own` are the nodes with members of the group. A member whose UID is in `pins` goes there
        only."""
        super().__init__(handle, reserved, (), preempt=False)
        self._reserved = [(pod, node) for pod, node in reserved if handle.node(node) is not None]
        self._policy = policy
        self._pins = pins
        self._budgets = budgets
        self._remaining = budgets
        """What the budgets still allow after the victims so far."""
        self._special = {node for _, node in self._reserved} | {*own}
        """Nodes that are not in the dry run what they are in the snapshot, or have members of the group."""
        self._states: dict[str, CycleState] = {}
        """UID of a member → PreFilter's results for the cluster as it is."""
        self._last: Pod | None = None
        self._evictions: dict[str, Candidate] = {}
        """UID of a member → its node and victims, in the order in which they were found."""
        self._others: tuple[Pod, Iterator[Candidate]] | None = None
        """A member, and what was found for it and not taken, the cheapest first."""

    def first_fit(self, trial: Trial, pod: Pod) -> str | NodeStatuses:
        """Return a node without victims, or otherwise the one with the cheapest victims."""
        found: str | NodeStatuses
        if pinned := self._pins.get(pod.uid):
            found = pinned if self._fits(trial, pinned) else trial.filter_all()
        else:
            found = self._as_for_the_last(trial, pod) or super().first_fit(trial, pod)
        if isinstance(found, NodeStatuses) and preempts(pod):
            best = self._cheapest(trial, pod, found)
            if best is not None:
                self._evict(trial, pod, best)
                found = best.node_name
        if isinstance(found, str):
            self._special.add(found)
        return found

    def _cheapest(self, trial: Trial, pod: Pod, statuses: NodeStatuses) -> Candidate | None:
        rows = statuses.rows_with(Code.UNSCHEDULABLE)
        if pinned := self._pins.get(pod.uid):
            rows = rows[rows == statuses.nodes.columns.row_of(pinned)]
        wanted = self._policy.number_of_candidates(len(rows))
        if wanted < len(rows):
            rows = np.roll(rows, -self.handle.random.randrange(len(rows)))
        candidates = self.session.candidates(
            pod,
            self._state(pod),
            Nodes(statuses.nodes.columns, rows),
            wanted,
            lambda block: self._lower_on(trial, pod, block),
            self._remaining,
        )
        if not candidates:
            return None
        # What counts is the top victim of the whole plan: a node cannot make it less important.
        np.maximum(candidates.costs[:, 1], self._top(), out=candidates.costs[:, 1])
        best, *others = cheapest_first(candidates)
        self._others = (pod, map(candidates.__getitem__, others)) if looks_at_its_node_only(pod) else None
        return candidates[best]

    def _as_for_the_last(self, trial: Trial, pod: Pod) -> str:
        """Return a node for a member like the previous one without another search: the same node, or the next best. For
        a pod that depends on its own node only, nothing else has changed."""
        if self._others is None or not interchangeable(pod, self._others[0]):
            self._others = None  # what this one frees may be enough for them
            return ""
        if self._fits(trial, self.likely[0]):
            return self.likely[0]
        for candidate in self._others[1]:
            if candidate.node_name not in self._special and self._fits_without(trial, candidate):
                self._evict(trial, pod, candidate)
                return candidate.node_name
        return ""

    def _fits_without(self, trial: Trial, candidate: Candidate) -> bool:
        without = trial.fork()
        for victim in candidate.victims:
            without.remove_pod(candidate.node_name, victim)
        return self._fits(without, candidate.node_name)

    def _top(self) -> int:
        victims = (victim for found in self._evictions.values() for victim in found.victims)
        return max((victim.priority for victim in victims), default=_NO_VICTIM)

    def _lower_on(self, trial: Trial, pod: Pod, block: Nodes) -> Sequence[Sequence[Pod]]:
        found: list[Sequence[Pod]] = [*block.columns.lower_pods_on(block.rows.tolist(), pod.priority)]
        kept = {other.uid for other, _ in self._reserved}
        for number, name in enumerate(block.names):
            if name in self._special:
                lower = trial.node(name).ranked.below(pod.priority)
                found[number] = [other for other in lower if other.uid not in kept and group_of(other) != group_of(pod)]
        return found

    def _evict(self, trial: Trial, pod: Pod, best: Candidate) -> None:
        for victim in best.victims:
            trial.remove_pod(best.node_name, victim)
            self.session.remove_pod(best.node_name, victim)
        remaining, _ = self._remaining.spent(best.victims)
        if remaining is not self._remaining:
            self._remaining, self._others = remaining, None  # what they cost may be more now
        self._evictions[pod.uid] = best
        self.likely = [best.node_name]

    def _state(self, pod: Pod) -> CycleState:
        if pod.uid not in self._states:
            if self._last is not None and interchangeable(pod, self._last):
                self._states[pod.uid] = self._states[self._last.uid]
            else:
                self._states[pod.uid] = self.handle.dry_run().trial(pod).state
            self._last = pod
        return self._states[pod.uid]

    def reprieved(self, placed: Placements) -> list[tuple[Pod, Candidate]]:
        """Return each member with its node and its necessary victims, in the order of the plan."""
        turns = {pod.uid: turn for turn, (pod, _) in enumerate(placed)}
        evicted = [
            (turns[uid], found.node_name, victim) for uid, found in self._evictions.items() for victim in found.victims
        ]
        away = {victim.uid: (node, victim) for _, node, victim in evicted}
        last = {node: turn for turn, node, _ in evicted}
        local = all(looks_at_its_node_only(pod) for pod, _ in placed)
        for turn, node, victim in self._by_importance(evicted):
            if local and turn == last[node]:
                continue  # nothing was freed there since, so its own reprieve holds
            del away[victim.uid]
            if not (self._holds(placed, away, turn) and self._holds(placed, away)):
                away[victim.uid] = (node, victim)
        return [(pod, self._needed(pod, node, away)) for pod, node in placed]

    def _needed(self, pod: Pod, node: str, away: dict[str, tuple[str, Pod]]) -> Candidate:
        found = self._evictions.get(pod.uid)
        return Candidate(node, [victim for victim in found.victims if victim.uid in away] if found else [])

    def _by_importance(self, evicted: Sequence[tuple[int, str, Pod]]) -> list[tuple[int, str, Pod]]:
        """Sort the victims: those whose eviction violates a budget first, then the most important."""
        ranked = sorted(evicted, key=lambda entry: (-entry[2].priority, start_of(entry[2])))
        _, violating = self._budgets.spent(victim for _, _, victim in ranked)
        spared = {victim.uid for victim in violating}
        return sorted(ranked, key=lambda entry: entry[2].uid not in spared)

    def _holds(self, placed: Placements, away: dict[str, tuple[str, Pod]], only: int | None = None) -> bool:
        """Return whether the members, or one of them, fit as planned with these victims gone."""
        session = self._emptied(away)
        for turn, (pod, node) in enumerate(placed):
            if only is None or only == turn:
                trial = session.trial(pod, self._state(pod))
                if not (trial.status.is_success and trial.filter(node).is_success):
                    return False
                if only == turn:
                    break
            session.add_pod(node, pod)
        return True

    def _emptied(self, away: dict[str, tuple[str, Pod]]) -> DryRun:
        session = self.handle.dry_run()
        for pod, node in self._reserved:
            session.add_pod(node, pod)
        for node, victim in away.values():
            session.remove_pod(node, victim)
        return session


def looks_at_its_node_only(pod: Pod) -> bool:
    """Return whether the pod's own spec ignores pods on other nodes."""
    return pod.spec.affinity is None and not pod.spec.topology_spread_constraints


def cheapest_first(candidates: Candidates) -> list[int]:
    """Return the indices in kube-scheduler's order of comparison."""
    violations, top, total, number = candidates.costs.T
    starts = candidates.starts(np.arange(len(candidates)))
    order: list[int] = np.lexsort((-starts, number, total, top, violations)).tolist()
    return order
