"""Topologies, indexes and counts over the pods of the cluster, which the state keeps up to date.

`handle.pod_counters` counts the pods that a selector matches, and `handle.affinity_terms` knows the terms of the
running pods. Both answer per row of the node table and are updated by every event, so nothing scans all pods. A sum per
topology value is one pass over a label column:

    topology = handle.topology("topology.kubernetes.io/zone")
    per_zone = counters.get(PodSelector(frozenset({"default"}), selector)).sums(topology)

A row whose node was deleted has no labels, so its remaining pods are in no such sum. An index (`handle.pod_index(name,
extract)`) returns the rows in which a key occurs; `extract` returns the keys of one object. A dry run changes neither:
a plugin updates its sums in AddPod and RemovePod, and reads the pods of a node from its view."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_affinity import AffinityTerm
from moorage.api.selectors import Selector
from moorage.framework.access import Version
from moorage.framework.nodes import BoolArray, FloatArray, Nodes

ScalarT = TypeVar("ScalarT", bound=np.generic)
Bins = npt.NDArray[np.intp]
_NO_LABEL: BoolArray = np.zeros(1, dtype=np.bool_)


class Topology:
    """The domains of a label key. Get it with `handle.topology(key)` for each use; it is valid until a node changes.

    A domain is a number from 0 to `size - 1`, one for each value of the label; -1 stands for no label. Some numbers may
    belong to values that no node has any more.
    """

    __slots__ = (
        "__weakref__",
        "_by_domain",
        "_columns",
        "_inhabited_domains",
        "_used",
        "_witnesses",
        "bins",
        "inhabited",
        "key",
        "live",
        "nodes",
        "size",
        "unlabelled",
        "values",
    )

    def __init__(self, live: Nodes, key: str) -> None:
        columns = live.columns
        self._columns = columns
        self.key = key
        self.live = live
        """All nodes."""
        self.values: Mapping[str, int] = columns.labels.values(key)
        """Label value → domain."""
        self.size = len(self.values)
        self.bins: Bins = np.add(columns.labels.codes(key), 1, dtype=np.intp)
        """Row → domain + 1, full width; 0 stands for no label."""
        self._used = self.bins[: int(live.rows.max(initial=-1)) + 1]
        """`bins` up to the last node."""
        self.nodes: FloatArray = self.sums(np.ones(len(self.bins)))
        """Domain → number of nodes."""
        self.unlabelled = len(live) - int(np.count_nonzero(self.bins))
        """The number of nodes without the label."""
        self.inhabited = int(np.count_nonzero(self.nodes))
        """The number of domains that have nodes."""
        self._inhabited_domains: Bins | None = None
        self._by_domain: tuple[Bins, Bins] | None = None
        """The rows sorted by bin, and the end of each bin."""
        self._witnesses: Bins | None = None
        """A row in each domain that has nodes, as `all_in` last found them."""

    def under(self, key: str) -> Topology:
        """Return this topology for another key that no node has either."""
        other = Topology.__new__(Topology)
        for name in Topology.__slots__[1:]:
            setattr(other, name, getattr(self, name))
        other.key = key
        return other

    @property
    def inhabited_domains(self) -> Bins:
        """The domains that have nodes."""
        if self._inhabited_domains is None:
            self._inhabited_domains = np.flatnonzero(self.nodes)
        return self._inhabited_domains

    @property
    def one_node_each(self) -> bool:
        """Whether no two nodes share a domain, as with hostnames."""
        return self.inhabited + self.unlabelled == len(self.live)

    def domain(self, labels: Mapping[str, str]) -> int:
        """Return the domain of a node with these labels; -1 for none."""
        value = labels.get(self.key)
        return -1 if value is None else self.values.get(value, -1)

    def rows_of(self, value: str) -> list[int]:
        """Return the rows of the nodes with this value."""
        if self._by_domain is None:
            ends = np.bincount(self._used, minlength=self.size + 1).cumsum()
            self._by_domain = self._used.argsort(kind="stable"), ends
        order, ends = self._by_domain
        domain = self.values.get(value, -1)
        if not 0 <= domain < self.size:
            return []
        rows: list[int] = order[ends[domain] : ends[domain + 1]].tolist()
        return rows

    def bins_of(self, nodes: Nodes) -> Bins:
        """Return the bins of some nodes, which may be those of a dry run."""
        if nodes.columns is self._columns:
            return nodes.take(self.bins)
        return self.bins[nodes.table_rows]

    def gather(self, per_domain: npt.NDArray[ScalarT], missing: Any, nodes: Nodes) -> npt.NDArray[ScalarT]:
        """Return the value of each node's domain; `missing` for a node without a domain."""
        values = np.empty(self.size + 1, dtype=per_domain.dtype)
        values[0] = missing
        values[1:] = per_domain
        return values.take(self.bins_of(nodes))

    def sums(self, column: npt.NDArray[Any]) -> FloatArray:
        """Return the sum of a full-width column per domain, as floats."""
        column = column[: len(self._used)]
        return np.bincount(self._used, column, self.size + 1)[1:]  # type: ignore[return-value]  # floats

    def present_in(self, nodes: Nodes) -> BoolArray:
        """Return for each bin whether it has a node of the view; the first is for nodes without the label."""
        if self.is_covered_by(nodes):
            return np.concatenate((_NO_LABEL, self.nodes > 0))
        return np.bincount(self.bins_of(nodes), minlength=self.size + 1) > 0

    def is_covered_by(self, nodes: Nodes) -> bool:
        """Return whether all nodes have the label, and every domain that has nodes has one in the view. It
        may return False if finding out is expensive."""
        mask = nodes.mask
        if mask is None or self.unlabelled or nodes.columns is not self._columns:
            return False
        return self.all_in(mask)

    def all_in(self, mask: BoolArray) -> bool:
        """Return whether every domain that has nodes has one among the rows of the mask. Usually the rows
        that proved it last time prove it again."""
        rows = self._witnesses
        if rows is not None and np.count_nonzero(mask[rows]) == len(rows):  # half the price of all()
            return True
        inside, bins = np.flatnonzero(mask), self.inhabited_domains + 1
        found = np.full(self.size + 1, -1, dtype=np.intp)
        found[self.bins[inside]] = inside
        rows = found[bins]
        self._witnesses = rows if (rows >= 0).all() else None
        return self._witnesses is not None

    def sums_of(self, rows: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> FloatArray:
        """Return the sum per domain of a column that is 0 except in a few rows."""
        return np.bincount(self.bins[rows], numbers, self.size + 1)[1:]  # type: ignore[return-value]  # floats


class DomainCounts:
    """Counts per domain in one attempt. A dry run clones it (`CycleState.own`) and adds its changes beside
    the array of the cluster, so a clone costs as much as was changed."""

    __slots__ = ("_changes", "_cluster", "_rows", "topology")

    def __init__(
        self, topology: Topology, cluster: FloatArray | None = None, changes: dict[int, int] | None = None
    ) -> None:
        self.topology = topology
        self._cluster = cluster
        self._changes = changes or {}
        """Domain → difference in the dry run."""
        self._rows: Mapping[int, int] = {}
        """Instead of `_cluster`: row → number of pods, including rows of deleted nodes."""

    @classmethod
    def by_row(cls, topology: Topology, rows: Mapping[int, int]) -> DomainCounts:
        """Build counts from the few rows that have pods, for a topology with `one_node_each`."""
        counts = cls(topology)
        counts._rows = rows
        return counts

    def clone(self) -> DomainCounts:
        return DomainCounts(self.topology, self.cluster, dict(self._changes))

    @property
    def cluster(self) -> FloatArray:
        """Domain → number of pods in the cluster."""
        if self._cluster is None:
            rows = np.fromiter(self._rows.keys(), dtype=np.int64, count=len(self._rows))
            numbers = np.fromiter(self._rows.values(), dtype=np.int64, count=len(self._rows))
            self._cluster = self.topology.sums_of(rows, numbers)
        return self._cluster

    @property
    def changes(self) -> dict[int, int]:
        return self._changes

    def add(self, domain: int, number: int) -> None:
        """Add pods to a domain, or remove them; domain -1 is ignored."""
        if domain >= 0:
            self._changes[domain] = self._changes.get(domain, 0) + number

    def at(self, domain: int) -> int:
        return int(self.cluster[domain]) + self._changes.get(domain, 0) if domain >= 0 else 0

    def now(self) -> FloatArray:
        """Return the counts of all domains; a copy only if the dry run differs from the cluster."""
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
        """Return for each node whether its domain has a count above zero; None if none has."""
        topology = self.topology
        if self._cluster is None and not self._changes and nodes.columns is topology.live.columns:
            mask = np.zeros(len(topology.bins), dtype=np.bool_)
            mask[list(self._rows)] = True
            if topology.unlabelled:
                mask &= topology.bins > 0
            return nodes.take(mask)
        present = self.now() > 0
        return topology.gather(present, False, nodes) if present.any() else None


class PodSelector(NamedTuple):
    """The pods to count."""

    namespaces: frozenset[str] | None
    """`None`: all namespaces."""
    selector: Selector
    terminating: bool = True
    """Whether terminating pods count: they do for affinity, but not for spreading."""


class PodCounter(Protocol):
    """The number of matching pods per row. Get it for each use; an evicted counter is not kept up to date."""

    @property
    def version(self) -> int:
        """Grows with every change."""

    @property
    def empty(self) -> bool:
        """True when no pod matches anywhere."""

    @property
    def per_row(self) -> FloatArray:
        """Full width, read-only. Whole numbers as floats."""

    def few(self) -> Mapping[int, int] | None:
        """Return the rows with matching pods and their numbers, including rows of deleted nodes; None if
        `per_row` is cheaper. Do not keep it; it changes with the pods."""

    def number(self, row: int) -> int:
        """Return the number of matching pods on one row."""

    def changed_since(self, version: int) -> list[int] | None:
        """Return the rows whose number has changed since that version; a row may occur several times. None
        if that is unknown: start over then."""

    def sums(self, topology: Topology, where: BoolArray | None = None) -> FloatArray:
        """Return the number of matching pods per domain, on the rows where `where` (full width) is true."""


class PodCounters(Protocol):
    """Counters by selector. Their number is bounded; the least recently used ones are evicted."""

    def get(self, selector: PodSelector) -> PodCounter:
        """Return the counter. It is built at the first call from an index of the pods' labels; a selector
        with an equality costs about as much as there are pods with that label."""

    def once(self, selector: PodSelector) -> PodCounter:
        """Count the current pods once, without keeping the counter. For a pod with very many selectors, whose
        counters would evict those of all other pods."""


_FEW_SELECTORS = 16


def counting(counters: PodCounters, selectors: int) -> Callable[[PodSelector], PodCounter]:
    """Return the way to count for one pod with this number of selectors."""
    return counters.get if selectors <= _FEW_SELECTORS else counters.once


class TermKind(enum.Enum):
    """What a term of a running pod requires or prefers."""

    __hash__ = object.__hash__  # members are single objects; the hash of Enum is a Python function

    ANTI_AFFINITY = "required anti-affinity"
    AFFINITY = "required affinity"
    PREFERRED = "preferred affinity"
    """Preferred anti-affinity has a negative weight."""


class HeldTerm(Protocol):
    """A distinct term and the running pods that have it (its holders)."""

    @property
    def kind(self) -> TermKind: ...

    @property
    def term(self) -> AffinityTerm: ...

    @property
    def weight(self) -> int:
        """The weight of a preferred term; 0 for a required one."""

    def few(self) -> Mapping[int, int] | None:
        """Return the rows with holders and their numbers; see `PodCounter.few`."""

    def sums(self, topology: Topology) -> FloatArray:
        """Return the number of holders per domain."""


class AffinityTerms(Protocol):
    """The affinity terms of running pods."""

    @property
    def version(self) -> Version:
        """Bumped when a distinct term appears or disappears. While it stays the same, a pod that no term
        matches is still matched by none."""

    def __len__(self) -> int:
        """Return the number of distinct terms."""

    def matching(self, pod: Pod, namespace_labels: Mapping[str, str], kinds: frozenset[TermKind]) -> Sequence[HeldTerm]:
        """Return the terms of these kinds that match `pod`. `namespace_labels` are those of the pod's namespace."""


PodKeys = Callable[[Pod], Iterable[Hashable]]
"""Returns the keys of a pod. They must not depend on its node, which a pod may not have yet."""
NodeKeys = Callable[[Node], Iterable[tuple[Hashable, Any]]]
ObjectKeys = Callable[[Any], Iterable[Hashable]]


class PodIndex(Protocol):
    """An index from keys to the rows with pods that have the key."""

    def rows(self, key: Hashable) -> Mapping[int, int]:
        """Return the number of pods with the key per row, including rows of deleted nodes."""

    def keys(self) -> Iterable[Hashable]: ...


class ObjectIndex(Protocol):
    """An index from keys to objects of one kind, from `handle.object_index(name, resource, extract)`."""

    @property
    def version(self) -> Version:
        """Bumped when an object is added or deleted, or when its keys change."""

    def at(self, key: Hashable) -> Iterable[Any]:
        """Return the objects with the key, in no particular order."""


class NodeIndex(Protocol):
    """An index from keys to the rows of the nodes that have the key, with the value that `extract` returned."""

    @property
    def version(self) -> Version:
        """Bumped when an entry is added, changed or removed; for `reads`."""

    def rows(self, key: Hashable) -> Mapping[int, Any]:
        """Return the value per row, for the nodes with the key."""

    def keys(self) -> Iterable[Hashable]: ...
