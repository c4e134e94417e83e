"""The search for candidates: nodes on which the pod fits once some less important pods are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.handle import Clearing, DryRun
from mooring.framework.nodes import Nodes, NodeView
from mooring.framework.preemption.budgets import Budgets
from mooring.framework.status import Code, Status

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")

VictimsOn = Callable[[NodeView], Sequence[Pod]]
"""The pods that may have to go from a node, most important first."""


class Candidate(NamedTuple):
    """A node, and the pods that would have to go, most important first."""

    node_name: str
    victims: Sequence[Pod]
    pdb_violations: int = 0


class Found:
    """What a search for so many candidates has come to."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._sound: list[Candidate] = []
        self._violating: list[Candidate] = []
        self._reasons: Counter[str] = Counter()
        self._refused = 0
        self.errors: list[str] = []
        """What broke, by node."""

    @property
    def candidates(self) -> list[Candidate]:
        """Those that violate no budget come first."""
        return self._sound + self._violating

    @property
    def enough(self) -> bool:
        """As many as wanted, and at least one that violates no budget."""
        return bool(self._sound) and len(self._sound) + len(self._violating) >= self._wanted

    def add(self, candidate: Candidate) -> None:
        kind = self._violating if candidate.pdb_violations else self._sound
        if len(kind) < self._wanted:
            kind.append(candidate)

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
            block = Nodes(nodes.columns, nodes.rows[start : start + size])
            for candidate in self._judge(block, victims_on, found):
                found.add(candidate)
                if found.enough:
                    return found
        return found

    def _judge(self, block: Nodes, victims_on: VictimsOn, found: Found) -> Iterator[Candidate]:
        victims = {node.name: pods for node in block if (pods := victims_on(node))}
        if len(victims) < len(block):
            found.refuse(NO_VICTIMS, len(block) - len(victims))
        for clearing in self._session.clear(self._pod, self._state, victims):
            status = clearing.status
            if status.is_success:
                candidate = self._reprieve(clearing)
                status = clearing.status if candidate.victims else _nobody_goes(clearing.node_name)
                if status.is_success:
                    yield candidate
                    continue
            found.refuse(status)

    def _reprieve(self, clearing: Clearing) -> Candidate:
        """Keep as many pods as possible: first those whose loss would violate a budget, then the others, the
        most important first."""
        violating, others = self._budgets.split(clearing.victims)
        lost = clearing.put_back(violating) if violating else []
        gone = clearing.put_back(others)
        if lost:
            gone = sorted(lost + gone)
        victims = clearing.victims
        return Candidate(clearing.node_name, [victims[number] for number in gone], len(lost))


def _nobody_goes(node_name: str) -> Status:
    """The pod fits with everybody there, so it should not have been refused in the first place."""
    return Status.error(f'expected at least one victim pod on node "{node_name}"')
