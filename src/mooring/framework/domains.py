"""DomainCounts: how many pods there are per domain of a topology, in one attempt and in its dry runs.

The counts of the cluster are an array that nobody changes; a dry run keeps what it changed beside it. A clone
therefore costs as much as was changed, not as much as there are domains.
"""

from __future__ import annotations

from mooring.framework.nodes import FloatArray
from mooring.framework.topology import Topology


class DomainCounts:
    """Counts per domain. Made for `CycleState.own`: `clone` and then `add`."""

    __slots__ = ("_changes", "cluster", "topology")

    def __init__(
        self, topology: Topology, cluster: FloatArray, changes: dict[int, int] | None = None
    ) -> None:
        self.topology = topology
        self.cluster = cluster
        """Domain → pods in the cluster as it is."""
        self._changes = changes or {}
        """Domain → how many more (or fewer) in the dry run."""

    def clone(self) -> DomainCounts:
        return DomainCounts(self.topology, self.cluster, dict(self._changes))

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
