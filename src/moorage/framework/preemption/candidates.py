"""Candidates: nodes on which the pod fits once some less important pods are gone, and what that costs.

How they are found is the part of `search`, which of them is taken that of `policy`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from moorage.api.pod import Pod
from moorage.framework.handle import PreemptionTrial
from moorage.framework.nodes import BoolArray, FloatArray, IntArray
from moorage.framework.ranking import start_of

OFFSET = 2**31
"""Makes every priority positive, so that more victims of negative priority are never the better choice."""

Costs = npt.NDArray[np.int64]
"""A row per candidate: violated budgets, priority of the top victim, sum of priorities, number of victims."""


class Candidate(NamedTuple):
    """A node, and the pods that would have to go, most important first; `reprieved` ones can stay."""

    node_name: str
    victims: Sequence[Pod]
    pdb_violations: int = 0
    reprieved: Sequence[Pod] = ()

    @property
    def costs(self) -> tuple[int, int, int, int]:
        priorities = [pod.priority for pod in self.victims]
        total = sum(priority + OFFSET for priority in priorities)
        return self.pdb_violations, max(priorities), total, len(priorities)

    @property
    def start(self) -> float:
        """When the first of the top victims was started."""
        top = max(pod.priority for pod in self.victims)
        return min(start_of(pod) for pod in self.victims if pod.priority == top)


class Batch:
    """Nodes that were judged together, and which victims have to stay away."""

    def __init__(self, trial: PreemptionTrial, away: BoolArray, violating: BoolArray | None) -> None:
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
        """Of all nodes, in the order in which they were named; of a meaning only for those that fit."""
        self.rows: IntArray = trial.fitting
        """Numbers of the nodes on which the pod fits without the victims."""

    @cached_property
    def starts(self) -> FloatArray:
        """When the first of the top victims of each node was started."""
        victims = self._trial.victims
        top = victims.priorities == np.repeat(self.costs[:, 1], victims.lengths)
        starts: FloatArray = np.minimum.reduceat(
            np.where(self._away & top, victims.starts(), np.inf), victims.offsets
        )
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


class Candidates(Sequence[Candidate]):
    """Many candidates, made when they are looked at; their costs are known before."""

    def __init__(self, costs: Costs, places: Sequence[tuple[Batch, int] | Candidate]) -> None:
        self.costs = costs
        self._places = places

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Candidates:
        listed = list(candidates)
        return cls(np.array([found.costs for found in listed], dtype=np.int64).reshape(-1, 4), listed)

    def starts(self, indexes: IntArray) -> FloatArray:
        """When the first of the top victims of some candidates was started: the later, the less work is
        lost."""
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
