"""DomainCounts: how many pods there are per domain of a topology, in one attempt and in its dry runs.

The counts of the cluster are an array that is not changed; a dry run keeps what it changed beside it. A clone
therefore costs as much as was changed, not as much as there are domains. Where every node is a domain of its
own and few of them have pods, even the array is only made when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.framework.nodes import BoolArray, FloatArray, Nodes
from mooring.framework.topology import Topology


class DomainCounts:
    """Counts per domain. Made for `CycleState.own`: `clone` and then `add`."""

    __slots__ = ("_changes", "_cluster", "_rows", "topology")

    def __init__(
        self, topology: Topology, cluster: FloatArray | None = None, changes: dict[int, int] | None = None
    ) -> None:
        self.topology = topology
        self._cluster = cluster
        self._changes = changes or {}
        """Domain → how many more (or fewer) in the dry run."""
        self._rows: Mapping[int, int] = {}
        """In the place of `_cluster`: row → pods there, ghosts of deleted nodes included."""

    @classmethod
    def by_row(cls, topology: Topology, rows: Mapping[int, int]) -> DomainCounts:
        """From the few rows that have pods, for a topology with `one_node_each`."""
        counts = cls(topology)
        counts._rows = rows
        return counts

    def clone(self) -> DomainCounts:
        return DomainCounts(self.topology, self.cluster, dict(self._changes))

    @property
    def cluster(self) -> FloatArray:
        """Domain → pods in the cluster as it is."""
        if self._cluster is None:
            rows = np.fromiter(self._rows.keys(), dtype=np.int64, count=len(self._rows))
            numbers = np.fromiter(self._rows.values(), dtype=np.int64, count=len(self._rows))
            self._cluster = self.topology.sums_of(rows, numbers)
        return self._cluster

    @property
    def changes(self) -> dict[int, int]:
        return self._changes

    def add(self, domain: int, number: int) -> None:
        """So many pods came to a domain, or left it; -1, no domain, has none."""
        if domain >= 0:
            self._changes[domain] = self._changes.get(domain, 0) + number

    def at(self, domain: int) -> int:
        return int(self.cluster[domain]) + self._changes.get(domain, 0) if domain >= 0 else 0

    def now(self) -> FloatArray:
        """All domains; a copy only where the dry run differs from the cluster."""
        if not self._changes:
            return self.cluster
        counts = self.cluster.copy()
        for domain, number in self._changes.items():
            counts[domain] += number
        return counts

    @property
    def any(self) -> bool:
        """Whether some domain has a count other than zero."""
        return bool(self.now().any())

    def occupied(self, nodes: Nodes) -> BoolArray | None:
        """Per node, whether its domain has a count above zero; None where none has."""
        topology = self.topology
        if self._cluster is None and not self._changes and nodes.columns is topology.live.columns:
            mask = np.zeros(len(topology.bins), dtype=np.bool_)
            mask[list(self._rows)] = True
            if topology.unlabelled:
                mask &= topology.bins > 0
            return nodes.take(mask)
        present = self.now() > 0
        return topology.gather(present, False, nodes) if present.any() else None
