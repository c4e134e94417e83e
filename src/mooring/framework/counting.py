"""Counts over the pods of the cluster, kept up to date by the state: what affinity and spreading are made of.

`handle.pod_counters` counts the pods that a selector matches, and `handle.affinity_terms` knows which terms
the running pods hold. Both answer per row of the node table and are changed by every event, so nothing ever
scans all pods. A sum per topology value is one pass over a label column:

    topology = Topology(nodes.columns, "topology.kubernetes.io/zone")
    per_zone = counters.get(PodSelector(frozenset({"default"}), selector)).sums(topology)

A row without a node (the ghost of one that is gone) has no labels, hence no part in any such sum, whatever
still runs there. A dry run does not change counts: there a plugin corrects its own sums in AddPod and
RemovePod.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from mooring.api.pod import Pod
from mooring.api.pod_affinity import AffinityTerm
from mooring.api.selectors import Selector
from mooring.framework.access import Version
from mooring.framework.nodes import BoolArray, Columns, FloatArray, IntArray, Nodes

ScalarT = TypeVar("ScalarT", bound=np.generic)


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Which pods are counted."""

    namespaces: frozenset[str] | None
    """`None`: those of every namespace."""
    selector: Selector
    terminating: bool = True
    """Whether pods that are being deleted count: for affinity they do, for spreading they do not."""


class Topology:
    """The domains of one label key: which row is in which, as of the moment it was made.

    A domain is a code of the label's values, from 0 to `size - 1`; -1 stands for no label. Codes may name
    values that no node has any more.
    """

    __slots__ = ("_columns", "bins", "key", "size", "values")

    def __init__(self, columns: Columns, key: str) -> None:
        self._columns = columns
        self.key = key
        self.values = columns.label_values(key)
        """Label value → domain."""
        self.size = len(self.values)
        self.bins: npt.NDArray[np.intp] = np.add(columns.label_codes(key), 1, dtype=np.intp)
        """Row → domain + 1, full width; 0 stands for no label, as `bincount` and `gather` want it."""

    def domain(self, labels: Mapping[str, str]) -> int:
        """The domain of a node with these labels, -1 for none."""
        value = labels.get(self.key)
        return -1 if value is None else self.values.get(value, -1)

    def bins_of(self, nodes: Nodes) -> npt.NDArray[np.intp]:
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

    def sums(self, weights: npt.NDArray[Any] | None = None) -> FloatArray:
        """Per domain the sum of a full-width column, or the number of rows. Whole numbers, as floats."""
        counted = np.bincount(self.bins, weights, self.size + 1)[1:]
        return counted.astype(np.float64, copy=False)


class PodCounter(Protocol):
    """How many pods match, per row. Get it anew for each use: an evicted one is not kept up to date."""

    @property
    def version(self) -> int:
        """Grows with every change."""
        ...

    @property
    def empty(self) -> bool:
        """True when no pod matches anywhere."""
        ...

    @property
    def per_row(self) -> IntArray:
        """Full width; must not be written."""
        ...

    def sums(self, topology: Topology, where: BoolArray | None = None) -> FloatArray:
        """Matching pods per domain, on the rows where `where` (full width) is true. Whole numbers."""
        ...


class PodCounters(Protocol):
    """Counters by selector, bounded: those not asked for the longest are forgotten."""

    def get(self, selector: PodSelector) -> PodCounter:
        """The counter, built at first sight from an index of the pods' labels: a selector with an equality
        costs about as much as there are pods with that label."""
        ...


class TermKind(enum.Enum):
    """What a running pod demands or wishes."""

    ANTI_AFFINITY = "required anti-affinity"
    AFFINITY = "required affinity"
    PREFERRED = "preferred affinity"
    """Wishes to be away have a negative weight."""


class HeldTerm(Protocol):
    """A distinct term and who holds it."""

    @property
    def kind(self) -> TermKind: ...

    @property
    def term(self) -> AffinityTerm: ...

    @property
    def weight(self) -> int:
        """Of a preferred term; 0 for required ones."""
        ...

    def sums(self, topology: Topology) -> FloatArray:
        """Holders per domain."""
        ...


class AffinityTerms(Protocol):
    """The terms of the pods that run somewhere."""

    @property
    def version(self) -> Version:
        """Bumped whenever a pod with terms comes, goes or changes."""
        ...

    def matching(
        self, pod: Pod, namespace_labels: Mapping[str, str], kinds: frozenset[TermKind]
    ) -> Iterable[HeldTerm]:
        """The terms of these kinds that mean `pod`, found by its labels. `namespace_labels` are those of the
        pod's namespace."""
        ...
