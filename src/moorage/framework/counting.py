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
from typing import Any, NamedTuple, Protocol

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_affinity import AffinityTerm
from moorage.api.selectors import Selector
from moorage.framework.access import Version
from moorage.framework.nodes import BoolArray, FloatArray
from moorage.framework.topology import Topology


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
        ...

    @property
    def empty(self) -> bool:
        """True when no pod matches anywhere."""
        ...

    @property
    def per_row(self) -> FloatArray:
        """Full width; must not be written. Whole numbers, as floats: that is what arithmetic wants."""
        ...

    def few(self) -> Mapping[int, int] | None:
        """The rows with matching pods and how many there are, ghosts of deleted nodes included; None where
        `per_row` is the better form. Must not be kept: it changes with the pods."""
        ...

    def number(self, row: int) -> int:
        """Matching pods on one row."""
        ...

    def changed_since(self, version: int) -> list[int] | None:
        """The rows whose number has changed since the counter had that version, some of them several times:
        for those who keep something of their own up to date. None where that is not known: there were many
        changes, it had not been asked before, or the counter was evicted. Then start anew."""
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

    def once(self, selector: PodSelector) -> PodCounter:
        """The pods of now, counted for this question alone. For a pod that asks with very many selectors:
        kept, their counters would push out those of all other pods."""
        ...


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
        ...

    def few(self) -> Mapping[int, int] | None:
        """The rows with holders and how many there are; see `PodCounter.few`."""
        ...

    def sums(self, topology: Topology) -> FloatArray:
        """Holders per domain."""
        ...


class AffinityTerms(Protocol):
    """The terms of the pods that run somewhere."""

    @property
    def version(self) -> Version:
        """Bumped when a term comes that no pod held, and when its last holder goes: as long as it stays the
        same, a pod that no term means is still meant by none."""
        ...

    def __len__(self) -> int:
        """The number of distinct terms; where there are none, no pod is meant."""
        ...

    def matching(
        self, pod: Pod, namespace_labels: Mapping[str, str], kinds: frozenset[TermKind]
    ) -> Sequence[HeldTerm]:
        """The terms of these kinds that mean `pod`, found by its labels. `namespace_labels` are those of the
        pod's namespace."""
        ...


PodKeys = Callable[[Pod], Iterable[Hashable]]
"""The keys of a pod. They must not depend on its node: pods are shown before they have one, and the row says
where they run."""
NodeKeys = Callable[[Node], Iterable[tuple[Hashable, Any]]]
ObjectKeys = Callable[[Any], Iterable[Hashable]]


class PodIndex(Protocol):
    """key → rows with pods that have the key."""

    def rows(self, key: Hashable) -> Mapping[int, int]:
        """Row → number of pods with the key there, ghosts of deleted nodes included."""
        ...

    def keys(self) -> Iterable[Hashable]: ...


class ObjectIndex(Protocol):
    """key → objects of one kind, made with `handle.object_index(name, resource, extract)`."""

    @property
    def version(self) -> Version:
        """Bumped when an object comes or goes, or when its keys change; not by other updates of it."""
        ...

    def at(self, key: Hashable) -> Iterable[Any]:
        """The objects with the key, in no particular order."""
        ...


class NodeIndex(Protocol):
    """key → rows of the nodes that have the key, each with the value that `extract` gave."""

    @property
    def version(self) -> Version:
        """Grows when an entry comes, changes or goes; for `reads`."""
        ...

    def rows(self, key: Hashable) -> Mapping[int, Any]:
        """Row → value, for the nodes with the key."""
        ...

    def keys(self) -> Iterable[Hashable]: ...
