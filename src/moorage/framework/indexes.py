"""Indexes and counts over the pods of the cluster, kept up to date by the state.

`handle.pod_counters` counts the pods that a selector matches, and `handle.affinity_terms` knows which terms
the running pods hold. Both answer per row of the node table and are changed by every event, so nothing ever
scans all pods. A sum per topology value is one pass over a label column:

    topology = handle.topology("topology.kubernetes.io/zone")
    per_zone = counters.get(PodSelector(frozenset({"default"}), selector)).sums(topology)

A row without a node (the ghost of one that is gone) has no labels, hence no part in any such sum, whatever
still runs there. An index (`handle.pod_index(name, extract)`) answers in which rows a key occurs; `extract`
names the keys of one object. A dry run changes neither: there a plugin corrects its own sums in AddPod and
RemovePod, and reads the pods of a node from its view."""

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
    """The domains of a key while no node changes: get it anew, with `handle.topology(key)`, for each use.

    A domain is a number from 0 to `size - 1`, one for each value of the label; -1 stands for no label. There
    may be numbers for values that no node has any more.
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
        """Row → domain + 1, full width; 0 stands for no label, as `bincount` and `gather` want it."""
        self._used = self.bins[: int(live.rows.max(initial=-1)) + 1]
        """The rows up to the last node."""
        self.nodes: FloatArray = self.sums(np.ones(len(self.bins)))
        """Domain → number of nodes."""
        self.unlabelled = len(live) - int(np.count_nonzero(self.bins))
        """Number of nodes without the label."""
        self.inhabited = int(np.count_nonzero(self.nodes))
        """Number of domains that have nodes."""
        self._inhabited_domains: Bins | None = None
        self._by_domain: tuple[Bins, Bins] | None = None
        """The rows, sorted by bin, and where each bin ends."""
        self._witnesses: Bins | None = None
        """A row in each domain that has nodes: those that were found the last time."""

    def under(self, key: str) -> Topology:
        """This topology, for another key that no node has either."""
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
        """The domain of a node with these labels, -1 for none."""
        value = labels.get(self.key)
        return -1 if value is None else self.values.get(value, -1)

    def rows_of(self, value: str) -> list[int]:
        """The rows of the nodes with this value."""
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
        """The bins of some nodes, which may be those of a dry run."""
        if nodes.columns is self._columns:
            return nodes.take(self.bins)
        return self.bins[nodes.table_rows]

    def gather(self, per_domain: npt.NDArray[ScalarT], missing: Any, nodes: Nodes) -> npt.NDArray[ScalarT]:
        """The value of each node's domain, `missing` where the node has none."""
        values = np.empty(self.size + 1, dtype=per_domain.dtype)
        values[0] = missing
        values[1:] = per_domain
        return values.take(self.bins_of(nodes))

    def sums(self, column: npt.NDArray[Any]) -> FloatArray:
        """Per domain the sum of a column of full width. Sums of whole numbers are whole, as floats."""
        column = column[: len(self._used)]
        return np.bincount(self._used, column, self.size + 1)[1:]  # type: ignore[return-value]  # floats

    def present_in(self, nodes: Nodes) -> BoolArray:
        """Bin → whether some node of the view is there; the first is for nodes without the label."""
        if self.is_covered_by(nodes):
            return np.concatenate((_NO_LABEL, self.nodes > 0))
        return np.bincount(self.bins_of(nodes), minlength=self.size + 1) > 0

    def is_covered_by(self, nodes: Nodes) -> bool:
        """Whether all nodes have the label, and every domain that has nodes has one in the view. False also
        where that is not known at once."""
        mask = nodes.mask
        if mask is None or self.unlabelled or nodes.columns is not self._columns:
            return False
        return self.all_in(mask)

    def all_in(self, mask: BoolArray) -> bool:
        """Whether every domain that has nodes has one among the rows of the mask. As a rule it has, and the
        rows that proved it the last time prove it again."""
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
        """Per domain the sum of a column that is 0 but in a few rows."""
        return np.bincount(self.bins[rows], numbers, self.size + 1)[1:]  # type: ignore[return-value]  # floats


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


class PodSelector(NamedTuple):
    """Which pods are counted."""

    namespaces: frozenset[str] | None
    """`None`: those of every namespace."""
    selector: Selector
    terminating: bool = True
    """Whether pods that are being deleted count: for affinity they do, for spreading they do not."""


class PodCounter(Protocol):
    """How many pods match, per row. Get it anew for each use: an evicted one is not kept up to date."""

    @property
    def version(self) -> int:
        """Grows with every change."""

    @property
    def empty(self) -> bool:
        """True when no pod matches anywhere."""

    @property
    def per_row(self) -> FloatArray:
        """Full width; must not be written. Whole numbers, as floats: that is what arithmetic wants."""

    def few(self) -> Mapping[int, int] | None:
        """The rows with matching pods and how many there are, ghosts of deleted nodes included; None where
        `per_row` is the better form. Must not be kept: it changes with the pods."""

    def number(self, row: int) -> int:
        """Matching pods on one row."""

    def changed_since(self, version: int) -> list[int] | None:
        """The rows whose number has changed since the counter had that version, some of them several times:
        for those who keep something of their own up to date. None where that is not known: there were many
        changes, it had not been asked before, or the counter was evicted. Then start anew."""

    def sums(self, topology: Topology, where: BoolArray | None = None) -> FloatArray:
        """Matching pods per domain, on the rows where `where` (full width) is true. Whole numbers."""


class PodCounters(Protocol):
    """Counters by selector, bounded: those not asked for the longest are forgotten."""

    def get(self, selector: PodSelector) -> PodCounter:
        """The counter, built at first sight from an index of the pods' labels: a selector with an equality
        costs about as much as there are pods with that label."""

    def once(self, selector: PodSelector) -> PodCounter:
        """The pods of now, counted for this question alone. For a pod that asks with very many selectors:
        kept, their counters would push out those of all other pods."""


_FEW_SELECTORS = 16


def counting(counters: PodCounters, selectors: int) -> Callable[[PodSelector], PodCounter]:
    """How to count for one pod that asks with so many selectors."""
    return counters.get if selectors <= _FEW_SELECTORS else counters.once


class TermKind(enum.Enum):
    """What a running pod demands or prefers."""

    __hash__ = object.__hash__  # members are single objects; the hash of Enum is a Python function

    ANTI_AFFINITY = "required anti-affinity"
    AFFINITY = "required affinity"
    PREFERRED = "preferred affinity"
    """Preferences to be away have a negative weight."""


class HeldTerm(Protocol):
    """A distinct term and who holds it."""

    @property
    def kind(self) -> TermKind: ...

    @property
    def term(self) -> AffinityTerm: ...

    @property
    def weight(self) -> int:
        """Of a preferred term; 0 for required ones."""

    def few(self) -> Mapping[int, int] | None:
        """The rows with holders and how many there are; see `PodCounter.few`."""

    def sums(self, topology: Topology) -> FloatArray:
        """Holders per domain."""


class AffinityTerms(Protocol):
    """The terms of the pods that run somewhere."""

    @property
    def version(self) -> Version:
        """Bumped when a term comes that no pod held, and when its last holder goes: as long as it stays the
        same, a pod that no term means is still meant by none."""

    def __len__(self) -> int:
        """The number of distinct terms; where there are none, no pod is meant."""

    def matching(
        self, pod: Pod, namespace_labels: Mapping[str, str], kinds: frozenset[TermKind]
    ) -> Sequence[HeldTerm]:
        """The terms of these kinds that mean `pod`, found by its labels. `namespace_labels` are those of the
        pod's namespace."""


PodKeys = Callable[[Pod], Iterable[Hashable]]
"""The keys of a pod. They must not depend on its node: pods are shown before they have one, and the row says
where they run."""
NodeKeys = Callable[[Node], Iterable[tuple[Hashable, Any]]]
ObjectKeys = Callable[[Any], Iterable[Hashable]]


class PodIndex(Protocol):
    """key → rows with pods that have the key."""

    def rows(self, key: Hashable) -> Mapping[int, int]:
        """Row → number of pods with the key there, ghosts of deleted nodes included."""

    def keys(self) -> Iterable[Hashable]: ...


class ObjectIndex(Protocol):
    """key → objects of one kind, made with `handle.object_index(name, resource, extract)`."""

    @property
    def version(self) -> Version:
        """Bumped when an object comes or goes, or when its keys change; not by other updates of it."""

    def at(self, key: Hashable) -> Iterable[Any]:
        """The objects with the key, in no particular order."""


class NodeIndex(Protocol):
    """key → rows of the nodes that have the key, each with the value that `extract` gave."""

    @property
    def version(self) -> Version:
        """Grows when an entry comes, changes or goes; for `reads`."""

    def rows(self, key: Hashable) -> Mapping[int, Any]:
        """Row → value, for the nodes with the key."""

    def keys(self) -> Iterable[Hashable]: ...
