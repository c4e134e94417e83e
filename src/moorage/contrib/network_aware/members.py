"""The pods that a pod depends on, kept in the cycle state for one attempt and its dry runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from moorage.contrib.network_aware.costs import Matrices
from moorage.framework.indexes import PodCounter
from moorage.framework.nodes import FloatArray, IntArray, Nodes


class Members(NamedTuple):
    """The pods of one workload."""

    workload: str
    limit: int
    """What talking to them may cost."""
    rows: IntArray
    """Rows of the node table that have some, perhaps several times; nodes that are gone included."""
    numbers: FloatArray
    """How many, for each of `rows`."""

    def changed(self, row: int, number: int) -> Members:
        """Return the members with this many more or fewer pods on a row."""
        return self._replace(rows=np.append(self.rows, row), numbers=np.append(self.numbers, number))


def count(workload: str, limit: int, counter: PodCounter) -> Members:
    few = counter.few()
    if few is None:
        column = counter.per_row
        [rows] = column.nonzero()
        return Members(workload, limit, rows, column[rows])
    rows = np.fromiter(few.keys(), dtype=np.int64, count=len(few))
    return Members(workload, limit, rows, np.fromiter(few.values(), dtype=np.float64, count=len(few)))


class Neighbours:
    """The pods of all workloads that one pod depends on, with the matrices of costs."""

    def __init__(self, members: Sequence[Members], places: IntArray) -> None:
        self._members = members
        self._places = places
        """Row → place."""

    def clone(self) -> Neighbours:
        return Neighbours(self._members, self._places)

    def includes(self, workload: str) -> bool:
        return any(found.workload == workload for found in self._members)

    def change(self, workload: str, row: int, number: int) -> None:
        """Count that pods of a workload were added to a row or removed from it."""
        self._members = [found.changed(row, number) if found.workload == workload else found for found in self._members]

    def satisfied_and_violated(self, matrices: Matrices, nodes: Nodes) -> tuple[FloatArray, FloatArray]:
        """Return per node how many pods are near enough and how many are too far away."""
        satisfied, violated = np.zeros((2, len(matrices.needed)))
        for found in self._members:
            needed = matrices.needed[:, self._places[found.rows]]
            satisfied += (needed <= found.limit) @ found.numbers
            violated += (needed > found.limit) @ found.numbers
        places = self._places[nodes.table_rows]
        if matrices.nowhere.any():
            # On the node itself all are near enough, also where nodes have neither region nor zone.
            beside = np.where(matrices.nowhere[places], self._beside(nodes), 0)
            return satisfied[places] + beside, violated[places] - beside
        return satisfied[places], violated[places]

    def by_workload(self, matrices: Matrices, node: Nodes) -> Iterator[tuple[Members, int, int]]:
        """Return how many pods of each workload are near enough to one node, and how many are too far away."""
        for found in self._members:
            alone = Neighbours([found], self._places)
            [satisfied], [violated] = alone.satisfied_and_violated(matrices, node)
            yield found, int(satisfied), int(violated)

    def costs(self, matrices: Matrices, nodes: Nodes) -> IntArray:
        """Return the sum of the costs per node; pods on the node itself cost nothing."""
        total = np.zeros(len(matrices.costs))
        for found in self._members:
            total += matrices.costs[:, self._places[found.rows]] @ found.numbers
        places = self._places[nodes.table_rows]
        within = matrices.costs.diagonal()
        costs: FloatArray = total[places] - within[places] * self._beside(nodes)
        return costs.astype(np.int64)

    def _beside(self, nodes: Nodes) -> FloatArray:
        """Return the number of these pods on each node itself."""
        column = np.zeros(len(self._places))
        for found in self._members:
            np.add.at(column, found.rows, found.numbers)
        beside: FloatArray = column[nodes.table_rows]
        return beside
