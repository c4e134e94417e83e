"""Search, node by node, for the pods on the node and in its domains that must be preempted.

All pods that may be in the way are removed in a dry run. If the pod then fits, they return one by one if the pod still
fits beside them: first those whose eviction would violate a disruption budget, then the most important ones. The number
of nodes, the number of victims and the time are limited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from moorage.api.pod import Pod
from moorage.contrib.cross_node_preemption.conflicts import PlacementConflict
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle, Trial
from moorage.framework.nodes import IntArray
from moorage.framework.preemption import Budgets, Candidate, Candidates, best_candidate, start_of

Place = tuple[str, Pod]
"""A node, and a pod there."""


class SearchLimits(NamedTuple):
    nodes_beside: int
    """The maximum number of other nodes in a node's domains with pods that may be in the way."""
    victims: int
    seconds: float


class CrossNodeSearch:
    """The search for one pod, with the state of its cycle."""

    def __init__(
        self,
        handle: Handle,
        pod: Pod,
        state: CycleState,
        conflicts: Sequence[PlacementConflict],
        budgets: Budgets,
        limits: SearchLimits,
    ) -> None:
        self._handle = handle
        self._pod = pod
        self._state = state
        self._conflicts = conflicts
        self._budgets = budgets
        self._limits = limits
        self._columns = handle.nodes.columns

    def run(self, rows: Sequence[int]) -> list[Candidate]:
        """Return the cheapest solution: the node for the pod with its victims first, then the other nodes and their
        victims; empty if there is none."""
        until = self._handle.clock.now() + self._limits.seconds
        solutions: dict[str, list[Place]] = {}
        for row in rows:
            victims = self._victims(row)
            if victims:
                solutions[self._columns.view(row).name] = victims
            if self._handle.clock.now() > until:
                break
        if not solutions:
            return []
        costs = [Candidate(name, *self._cost(victims)) for name, victims in solutions.items()]
        best = best_candidate(Candidates.of(costs)).node_name
        return _by_node(best, solutions[best])

    def _victims(self, row: int) -> list[Place]:
        """Return the victims for one node; empty if preemption does not help or needs too many."""
        name = self._columns.view(row).name
        found = self._in_the_way(row)
        if not found:
            return []
        trial = self._handle.dry_run().trial(self._pod, self._state)
        for node, victim in found:
            trial.remove_pod(node, victim)
        if not self._fits(trial, name):
            return []
        away = [place for place in self._in_turn(found) if not self._returns(trial, name, place)]
        return away if len(away) <= self._limits.victims else []

    def _in_the_way(self, row: int) -> list[Place]:
        """Return the pods of lower priority on the node, and those of its domains that are in a conflict."""
        beside: dict[int, list[PlacementConflict]] = {}
        for conflict in self._conflicts:
            rows: IntArray = conflict.rows_beside(row, self._handle)
            if len(rows) > self._limits.nodes_beside:
                return []
            for other in rows.tolist():
                beside.setdefault(other, []).append(conflict)
        if len(beside) > self._limits.nodes_beside:
            return []
        lower = self._columns.lower_pods_on([row, *beside], self._pod.priority)
        found = [(self._columns.view(row).name, pod) for pod in lower[0]]
        for (other, conflicts), pods in zip(beside.items(), lower[1:], strict=True):
            name = self._columns.view(other).name
            found += [(name, pod) for pod in pods if any(conflict.is_meant(pod) for conflict in conflicts)]
        return found

    def _in_turn(self, found: Sequence[Place]) -> list[Place]:
        ranked = sorted(found, key=lambda place: (-place[1].priority, start_of(place[1])))
        _, violating = self._budgets.spent(pod for _, pod in ranked)
        spared = {pod.uid for pod in violating}
        return sorted(ranked, key=lambda place: place[1].uid not in spared)

    def _returns(self, trial: Trial, name: str, place: Place) -> bool:
        """Put a pod back if the preemptor still fits."""
        trial.add_pod(*place)
        if self._fits(trial, name):
            return True
        trial.remove_pod(*place)
        return False

    def _fits(self, trial: Trial, name: str) -> bool:
        return trial.status.is_success and trial.filter(name).is_success

    def _cost(self, victims: Sequence[Place]) -> tuple[list[Pod], int]:
        pods = [pod for _, pod in victims]
        return pods, len(self._budgets.spent(pods)[1])


def _by_node(first: str, victims: Sequence[Place]) -> list[Candidate]:
    found: dict[str, list[Pod]] = {first: []}
    for node, pod in victims:
        found.setdefault(node, []).append(pod)
    return [Candidate(node, pods) for node, pods in found.items()]


def spread_out(rows: IntArray, number: int, start: float) -> list[int]:
    """Return at most this many rows from the whole table, beginning at the given part of it."""
    rolled = np.roll(rows, -int(start * len(rows)))
    chosen: list[int] = rolled[np.linspace(0, len(rows) - 1, min(number, len(rows))).astype(np.int64)].tolist()
    return chosen
