"""Where the pods are that a pod depends on: kept in the cycle state for one attempt and its dry runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.contrib.network_aware.app_groups import Dependency
from mooring.contrib.network_aware.costs import Matrices
from mooring.framework.nodes import FloatArray, IntArray, Nodes


class Members:
    """One line per dependency: the pods of that workload per row of the node table, and per place."""

    def __init__(
        self, dependencies: Sequence[Dependency], rows: FloatArray, per_place: FloatArray, places: IntArray
    ) -> None:
        self._dependencies = dependencies
        self._rows = rows
        self._per_place = per_place
        self._places = places
        """Row → place."""

    @classmethod
    def of(cls, dependencies: Sequence[Dependency], rows: FloatArray, places: IntArray, size: int) -> Members:
        per_place = np.array([np.bincount(places, numbers, size) for numbers in rows])
        return cls(dependencies, rows, per_place, places)

    def clone(self) -> Members:
        return Members(self._dependencies, self._rows.copy(), self._per_place.copy(), self._places)

    def concern(self, selector: str) -> bool:
        return any(found.workload.selector == selector for found in self._dependencies)

    def change(self, selector: str, row: int, number: int) -> None:
        """Pods of a workload came to a row, or left it."""
        for line, dependency in enumerate(self._dependencies):
            if dependency.workload.selector == selector:
                self._rows[line, row] += number
                self._per_place[line, self._places[row]] += number

    def satisfied_and_violated(self, matrices: Matrices, nodes: Nodes) -> tuple[FloatArray, FloatArray]:
        """Per node, how many are near enough and how many too far away."""
        satisfied, violated = np.zeros((2, len(matrices.needed)))
        for dependency, there in zip(self._dependencies, self._per_place, strict=True):
            [hosts] = there.nonzero()
            needed, limit = matrices.needed[:, hosts], dependency.max_network_cost
            satisfied += (needed <= limit) @ there[hosts]
            violated += (needed > limit) @ there[hosts]
        places = self._places[nodes.table_rows]
        # On the node itself all are near enough, also where nodes have neither region nor zone.
        beside = np.where(matrices.nowhere[places], self._beside(nodes), 0)
        return satisfied[places] + beside, violated[places] - beside

    def costs(self, matrices: Matrices, nodes: Nodes) -> IntArray:
        """Per node, the sum over all of them; those on the node itself cost nothing."""
        places = self._places[nodes.table_rows]
        total = matrices.costs @ self._per_place.sum(axis=0)
        within = matrices.costs.diagonal()
        costs: FloatArray = total[places] - within[places] * self._beside(nodes)
        return costs.astype(np.int64)

    def _beside(self, nodes: Nodes) -> FloatArray:
        beside: FloatArray = self._rows.sum(axis=0)[nodes.table_rows]
        return beside
