"""The search for candidates: nodes are tried in order, many at a time, until there are enough. Follows
DryRunPreemption in pkg/scheduler/framework/preemption/preemption.go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes
from moorage.framework.preemption import NO_VICTIMS, OFFSET, Candidate, Candidates, Costs, VictimsOn
from moorage.framework.status import Code, Status
from moorage.runtime.preemption.budgets import ClusterBudgets
from moorage.runtime.preemption.trial import NodesWithoutVictims

NOT_HELPFUL = "Preemption is not helpful for scheduling"

RemoveVictims = Callable[[Pod, CycleState, Mapping[str, Sequence[Pod]]], NodesWithoutVictims]
"""Judges a pod on several nodes, each without some of its pods."""
WithoutVictims = Callable[[Sequence[str]], Mapping[str, int]]
"""Returns the reasons for nodes from which no pod may go, each with its number of nodes."""


class Batch:
    """Nodes that were judged together, and which victims must go."""

    def __init__(self, trial: NodesWithoutVictims, away: BoolArray, violating: BoolArray | None) -> None:
        victims = trial.victims
        priorities = victims.priorities
        self._trial = trial
        self._away = away
        counts = victims.sums(away.astype(np.int64))
        violations = np.zeros_like(counts)
        if violating is not None:
            violations = victims.sums((away & violating).astype(np.int64))
        top = np.maximum.reduceat(np.where(away, priorities, -OFFSET), victims.offsets)
        total = victims.sums(np.where(away, priorities + OFFSET, 0))
        self.costs: Costs = np.column_stack((violations, top, total, counts))
        """A row per node, in the order in which they were named; meaningful only for nodes that fit."""
        self.rows: IntArray = trial.fitting
        """The indexes of the nodes on which the pod fits without the victims."""

    @cached_property
    def starts(self) -> FloatArray:
        """When the first of the top victims of each node started."""
        victims = self._trial.victims
        top = victims.priorities == np.repeat(self.costs[:, 1], victims.lengths)
        starts: FloatArray = np.minimum.reduceat(np.where(self._away & top, victims.starts(), np.inf), victims.offsets)
        return starts

    def name(self, row: int) -> str:
        return self._trial.names[row]

    def candidate(self, row: int) -> Candidate:
        victims = self._trial.victims
        start, pods = int(victims.offsets[row]), victims.by_node[row]
        gone: list[Pod] = []
        kept: list[Pod] = []
        for number, away in enumerate(self._away[start : start + int(victims.lengths[row])].tolist()):
            (gone if away else kept).append(pods[number])
        return Candidate(self.name(row), gone, int(self.costs[row, 0]), kept)


class Found:
    """The result of a search for a number of candidates."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._sound = _Kept(wanted)
        self._violating = _Kept(wanted)
        self._reasons: Counter[str] = Counter()
        self._refused = 0
        self.errors: list[str] = []
        """The errors of single nodes."""

    @property
    def candidates(self) -> Candidates:
        """The candidates; those that violate no budget come first."""
        parts = self._sound.parts + self._violating.parts
        costs = [batch.costs[rows] for batch, rows in parts]
        places = [(batch, row) for batch, rows in parts for row in rows.tolist()]
        return Candidates(np.concatenate(costs) if costs else np.zeros((0, 4), dtype=np.int64), places)

    @property
    def enough(self) -> bool:
        """Whether there are as many as wanted, and at least one that violates no budget."""
        return self._sound.count > 0 and self._sound.count + self._violating.count >= self._wanted

    def add(self, batch: Batch) -> None:
        """Add candidates in order until there are enough; of each kind at most as many as wanted."""
        costs_victims = batch.costs[batch.rows, 3] > 0
        for row in batch.rows[~costs_victims].tolist():
            self.refuse(_no_victims(batch.name(row)))
        rows = batch.rows[costs_victims]
        sound = batch.costs[rows, 0] == 0
        reached = self._sound.reached(sound)
        total = reached + self._violating.reached(~sound)
        enough = np.flatnonzero((reached > 0) & (total >= self._wanted))
        if len(enough):
            rows, sound = rows[: enough[0] + 1], sound[: enough[0] + 1]
        self._sound.add(batch, rows[sound])
        self._violating.add(batch, rows[~sound])

    def refuse(self, status: Status, nodes: int = 1) -> None:
        self._refused += nodes
        for reason in status.reasons:
            self._reasons[reason] += nodes
        if status.code is Code.ERROR:
            self.errors.append(status.message)

    def message(self, nodes: int) -> str:
        """Return why there is no candidate. Preemption cannot help on nodes that were not tried."""
        total = Counter(self._reasons)
        if nodes > self._refused:
            total[NOT_HELPFUL] += nodes - self._refused
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in total.items()))
        return f"0/{nodes} nodes are available: {reasons}."


class _Kept:
    """Candidates of one kind, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.parts: list[tuple[Batch, IntArray]] = []
        self.count = 0

    def reached(self, mine: BoolArray) -> IntArray:
        """Return the count after each candidate; `mine` marks the candidates of this kind."""
        reached: IntArray = np.minimum(self.count + np.cumsum(mine), self._limit)
        return reached

    def add(self, batch: Batch, rows: IntArray) -> None:
        rows = rows[: self._limit - self.count]
        if len(rows):
            self.parts.append((batch, rows))
            self.count += len(rows)


class CandidateSearch:
    """The search for one pod, with the state of its cycle."""

    def __init__(self, remove_victims: RemoveVictims, pod: Pod, state: CycleState, budgets: ClusterBudgets) -> None:
        self._remove_victims = remove_victims
        self._pod = pod
        self._state = state
        self._budgets = budgets

    def run(
        self,
        nodes: Nodes,
        wanted: int,
        victims_on: VictimsOn,
        without: WithoutVictims = lambda names: {NO_VICTIMS: len(names)},
    ) -> Found:
        """Walk the nodes in order until there are enough candidates. The dry run judges a block of nodes at a
        time: as many as would be enough if all of them were candidates."""
        found, size = Found(wanted), max(wanted, 1)
        for start in range(0, len(nodes), size):
            block = Nodes(nodes.columns, nodes.rows[start : start + size])
            self._judge(block, victims_on, without, found)
            if found.enough:
                break
        return found

    def _judge(self, block: Nodes, victims_on: VictimsOn, without: WithoutVictims, found: Found) -> None:
        victims = {name: pods for name, pods in zip(block.names, victims_on(block), strict=True) if pods}
        if len(victims) < len(block):
            for reason, nodes in without([name for name in block.names if name not in victims]).items():
                found.refuse(Status.unresolvable(reason), nodes)
        if not victims:
            return
        trial = self._remove_victims(self._pod, self._state, victims)
        if len(trial.fitting):
            found.add(self._reprieve(trial))
        for status, nodes in trial.statuses.count_by_verdict():
            found.refuse(status, nodes)

    def _reprieve(self, trial: NodesWithoutVictims) -> Batch:
        """Keep as many pods as possible: first those whose loss would violate a budget, then the others, the
        most important first."""
        violating = self._budgets.violating(trial.victims)
        turns = (None,) if violating is None else (violating, ~violating)
        return Batch(trial, trial.reprieve(*turns), violating)


def _no_victims(node_name: str) -> Status:
    """Return the error for a node that the pod fits with all pods in place: Filter should have kept it."""
    return Status.error(f'expected at least one victim pod on node "{node_name}"')
