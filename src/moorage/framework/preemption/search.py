"""The search: nodes are tried in order, many at a time, until there are enough candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import DryRun, PreemptionTrial
from moorage.framework.nodes import BoolArray, IntArray, Nodes
from moorage.framework.preemption.budgets import Budgets
from moorage.framework.preemption.candidates import Batch, Candidates
from moorage.framework.preemption.policy import NO_VICTIMS
from moorage.framework.status import Code, Status

NOT_HELPFUL = "Preemption is not helpful for scheduling"

VictimsOn = Callable[[Nodes], Sequence[Sequence[Pod]]]
"""By node: the pods that may have to go, most important first."""
WithoutVictims = Callable[[Sequence[str]], Mapping[str, int]]
"""Of nodes from which no pod may go: reason → number of nodes."""


class Found:
    """What a search for so many candidates has come to."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._sound = _Kept(wanted)
        self._violating = _Kept(wanted)
        self._reasons: Counter[str] = Counter()
        self._refused = 0
        self.errors: list[str] = []
        """What broke, by node."""

    @property
    def candidates(self) -> Candidates:
        """Those that violate no budget come first."""
        parts = self._sound.parts + self._violating.parts
        costs = [batch.costs[rows] for batch, rows in parts]
        places = [(batch, row) for batch, rows in parts for row in rows.tolist()]
        return Candidates(np.concatenate(costs) if costs else np.zeros((0, 4), dtype=np.int64), places)

    @property
    def enough(self) -> bool:
        """As many as wanted, and at least one that violates no budget."""
        return self._sound.count > 0 and self._sound.count + self._violating.count >= self._wanted

    def add(self, batch: Batch) -> None:
        """Take over candidates in order, until there are enough; of each kind at most as many as wanted."""
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
        """Why there is no candidate among so many nodes; those not looked at are beyond help."""
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
        """How many there would be after each of some candidates, those of the kind being marked."""
        reached: IntArray = np.minimum(self.count + np.cumsum(mine), self._limit)
        return reached

    def add(self, batch: Batch, rows: IntArray) -> None:
        rows = rows[: self._limit - self.count]
        if len(rows):
            self.parts.append((batch, rows))
            self.count += len(rows)


class CandidateSearch:
    """The search for one pod, in the state of its cycle."""

    def __init__(self, session: DryRun, pod: Pod, state: CycleState, budgets: Budgets) -> None:
        self._session = session
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
        """Walk the nodes in order until there are enough candidates. The dry run takes a block of nodes at a
        time, as many as would do if all were good."""
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
        trial = self._session.remove_victims(self._pod, self._state, victims)
        if len(trial.fitting):
            found.add(self._reprieve(trial))
        for status, nodes in trial.statuses.count_by_verdict():
            found.refuse(status, nodes)

    def _reprieve(self, trial: PreemptionTrial) -> Batch:
        """Keep as many pods as possible: first those whose loss would violate a budget, then the others, the
        most important first."""
        violating = self._budgets.violating(trial.victims)
        turns = (None,) if violating is None else (violating, ~violating)
        return Batch(trial, trial.reprieve(*turns), violating)


def _no_victims(node_name: str) -> Status:
    """The pod fits with all pods there, so it should not have been refused in the first place."""
    return Status.error(f'expected at least one victim pod on node "{node_name}"')
