"""Pods that many terms mean, added up per domain.

A pod may have hundreds of terms, and thousands may mean it. Most are about pods on a few nodes: these are
added up row by row, and become an array once for each topology key instead of once for each term.
"""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np

from moorage.framework.indexes import DomainCounts, HeldTerm, PodCounter, Topology
from moorage.framework.nodes import FloatArray

_HANDFUL = 8
"""Rows that are added up faster one by one."""


class RowSums:
    """Topology key → pods, each times the weight of its term."""

    def __init__(self, topology_of: Callable[[str], Topology]) -> None:
        self._topology_of = topology_of
        self._rows: dict[str, dict[int, int]] = {}
        self._domains: dict[str, FloatArray] = {}

    def add(self, key: str, found: PodCounter | HeldTerm, weight: int = 1) -> None:
        few = found.few()
        if few is not None and (len(few) <= _HANDFUL or self._topology_of(key).one_node_each):
            rows = self._rows.get(key)
            if rows is None:
                if few:
                    self._rows[key] = {row: weight * pods for row, pods in few.items()}
                return
            for row, pods in few.items():
                rows[row] = rows.get(row, 0) + weight * pods
            return
        sums = found.sums(self._topology_of(key))
        if sums.any():
            known = self._domains.get(key)
            self._domains[key] = weight * sums if known is None else known + weight * sums

    def counts(self) -> dict[str, DomainCounts]:
        """For filters; only keys in whose domains there are pods."""
        counts = {}
        for key, rows in self._rows.items():
            topology = self._topology_of(key)
            if topology.size and key not in self._domains and topology.one_node_each:
                counts[key] = DomainCounts.by_row(topology, rows)
        for topology, sums in self.tables(besides=counts):
            counts[topology.key] = DomainCounts(topology, sums)
        return counts

    def tables(self, besides: Container[str] = ()) -> list[tuple[Topology, FloatArray]]:
        """For scores; only keys in whose domains there are pods."""
        keys = [key for key in dict.fromkeys((*self._rows, *self._domains)) if key not in besides]
        tables = [(topology, self._sums(topology)) for topology in map(self._topology_of, keys)]
        return [(topology, sums) for topology, sums in tables if sums is not None]

    def _sums(self, topology: Topology) -> FloatArray | None:
        rows, domains = self._rows.get(topology.key), self._domains.get(topology.key)
        if rows is None or not topology.size:
            return domains
        where = np.fromiter(rows.keys(), dtype=np.int64, count=len(rows))
        if not topology.bins[where].any():
            return domains  # nodes without the label
        numbers = np.fromiter(rows.values(), dtype=np.int64, count=len(rows))
        sums = topology.sums_of(where, numbers)
        return sums if domains is None else sums + domains
