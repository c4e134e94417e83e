"""The search: nodes are tried in order, many at a time, until there are enough candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.handle import Clearings, DryRun
from mooring.framework.nodes import Nodes, NodeView
from mooring.framework.preemption.budgets import Budgets
from mooring.framework.preemption.candidates import Batch, Candidates
from mooring.framework.status import Code, Status

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")

VictimsOn = Callable[[NodeView], Sequence[Pod]]
"""The pods that may have to go from a node, most important first."""


class Found:
    """What a search for so many candidates has come to."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._sound: list[tuple[Batch, int]] = []
        self._violating: list[tuple[Batch, int]] = []
        self._reasons: Counter[str] = Counter()
        self._refused = 0
        self.errors: list[str] = []
        """What broke, by node."""

    @property
    def candidates(self) -> Candidates:
        """Those that violate no budget come first."""
        places = self._sound + self._violating
        costs = [batch.costs[row] for batch, row in places]
        return Candidates(np.array(costs, dtype=np.int64).reshape(-1, 4), places)

    @property
    def enough(self) -> bool:
        """As many as wanted, and at least one that violates no budget."""
        return bool(self._sound) and len(self._sound) + len(self._violating) >= self._wanted

    def add(self, batch: Batch) -> None:
        """Take over candidates in order, until there are enough; of each kind at most as many as wanted."""
        violations, victims = batch.costs[:, 0].tolist(), batch.costs[:, 3].tolist()
        for row in batch.rows.tolist():
            if self.enough:
                return
            if not victims[row]:
                self.refuse(_nobody_goes(batch.name(row)))
                continue
            kind = self._violating if violations[row] else self._sound
            if len(kind) < self._wanted:
                kind.append((batch, row))

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
        told = ", ".join(sorted(f"{count} {reason}" for reason, count in total.items()))
        return f"0/{nodes} nodes are available: {told}."


class CandidateSearch:
    """One pod that looks for room, in the state of its cycle."""

    def __init__(self, session: DryRun, pod: Pod, state: CycleState, budgets: Budgets) -> None:
        self._session = session
        self._pod = pod
        self._state = state
        self._budgets = budgets

    def run(self, nodes: Nodes, wanted: int, victims_on: VictimsOn) -> Found:
        """Walk the nodes in order until there are enough candidates. The dry run takes a block of nodes at a
        time, as many as would do if all were good."""
        found, size = Found(wanted), max(wanted, 1)
        for start in range(0, len(nodes), size):
            self._judge(Nodes(nodes.columns, nodes.rows[start : start + size]), victims_on, found)
            if found.enough:
                break
        return found

    def _judge(self, block: Nodes, victims_on: VictimsOn, found: Found) -> None:
        victims = {node.name: pods for node in block if (pods := victims_on(node))}
        if len(victims) < len(block):
            found.refuse(NO_VICTIMS, len(block) - len(victims))
        if not victims:
            return
        clearings = self._session.clear(self._pod, self._state, victims)
        if len(clearings.fitting):
            found.add(self._reprieve(clearings))
        for status, nodes in clearings.statuses.count_by_verdict():
            found.refuse(status, nodes)

    def _reprieve(self, clearings: Clearings) -> Batch:
        """Keep as many pods as possible: first those whose loss would violate a budget, then the others, the
        most important first."""
        violating = self._budgets.violating(clearings.tails)
        turns = (None,) if violating is None else (violating, ~violating)
        return Batch(clearings, clearings.put_back(*turns), violating)


def _nobody_goes(node_name: str) -> Status:
    """The pod fits with everybody there, so it should not have been refused in the first place."""
    return Status.error(f'expected at least one victim pod on node "{node_name}"')
