"""The terms of an incoming pod, with namespaces resolved to names.

As upstream, a namespace selector is resolved to the names of the namespaces that it matches now. Up to 1.36 it also
stayed on the term, where it was matched against an empty set of labels: a selector that consists of NotIn and
DoesNotExist only matched pods of every namespace (`Behaviour.namespace_selector_leaks`).

A pod may have hundreds of terms, and thousands may select it. Most terms are about pods on a few nodes: `RowSums` adds
these up row by row, and makes one array per topology key instead of one per term."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from moorage.api.core import Namespace
from moorage.api.pod import Pod
from moorage.api.pod_affinity import AffinityTerm
from moorage.api.recent import Recent
from moorage.api.resources import NAMESPACES
from moorage.api.selectors import IN, NOTHING, Requirement, Selector, make_selector, size_of
from moorage.framework.access import Version
from moorage.framework.handle import Handle
from moorage.framework.indexes import DomainCounts, HeldTerm, PodCounter, PodSelector, Topology
from moorage.framework.nodes import FloatArray

_REMEMBERED = 65536
"""Namespaces of selectors that are remembered, with the requirements and values of the selectors."""
_NO_LABELS: Mapping[str, str] = {}


class Namespaces:
    """The labels of namespaces, and the namespaces that a selector matches."""

    def __init__(self, handle: Handle) -> None:
        self._leaks = handle.behaviour.namespace_selector_leaks
        self._lister = handle.lister(NAMESPACES)
        self._index = handle.object_index("labels", NAMESPACES, label_keys)
        self._resolved: Recent[Selector, tuple[int, frozenset[str]]] = Recent(_REMEMBERED)
        """Selector → version of the namespaces, and what it meant then."""

    @property
    def version(self) -> Version:
        return self._index.version

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace; empty if it is unknown."""
        namespace: Namespace | None = self._lister.get(name)
        return _NO_LABELS if namespace is None else namespace.labels

    def matching(self, selector: Selector) -> frozenset[str]:
        """Return the names of the namespaces that the selector matches."""
        known = self._resolved.get(selector)
        if known is None or known[0] != self.version.value:
            found = frozenset(ns.name for ns in self._lister.list() if selector.matches(ns.labels))
            weight = 1 + len(found) + size_of(selector.requirements)
            known = self._resolved.put(selector, (self.version.value, found), weight)
        return known[1]

    def resolve(self, term: AffinityTerm) -> AffinityTerm:
        """Return the term with the names of the namespaces that its namespace selector matches."""
        selector = term.namespace_selector
        if selector.nothing or selector.empty:
            return term
        names = term.namespaces | self.matching(selector)
        return AffinityTerm(term.topology_key, names, term.selector, selector if self._leaks else NOTHING)


def label_keys(namespace: Namespace) -> Iterator[object]:
    yield msgspec.json.encode(sorted(namespace.labels.items()))


def wanted(term: AffinityTerm) -> PodSelector:
    """Return the pods that a resolved term of an incoming pod selects."""
    everywhere = term.namespace_selector.matches(_NO_LABELS)
    return PodSelector(None if everywhere else term.namespaces, term.selector)


def wanted_by_all(terms: Iterable[AffinityTerm]) -> PodSelector:
    """Return the pods that all of the terms select."""
    namespaces: frozenset[str] | None = None
    requirements: list[Requirement] = []
    for selected in map(wanted, terms):
        if selected.selector.nothing:
            return PodSelector(frozenset(), NOTHING)
        requirements += selected.selector.requirements
        if selected.namespaces is not None:
            namespaces = selected.namespaces if namespaces is None else namespaces & selected.namespaces
    return PodSelector(namespaces, make_selector(requirements))


def matches_all(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Return whether one pod matches all resolved terms of an incoming pod; an empty list matches no pod."""
    return bool(terms) and all(term.matches(pod) for term in terms)


class TermIndex:
    """Finds the terms that may match a pod by a label that they require. A pod may have thousands of terms, and
    preemption asks about every pod that could go."""

    __slots__ = ("_by_label", "_rest", "_terms")

    def __init__(self, terms: Sequence[AffinityTerm]) -> None:
        self._terms = terms
        self._by_label: dict[tuple[str, str], list[AffinityTerm]] | None = None
        self._rest: list[AffinityTerm] = []

    def matching(self, pod: Pod) -> Iterator[AffinityTerm]:
        """Return the resolved terms that match the pod."""
        if self._by_label is None:
            self._by_label = self._built()
        listed = (self._by_label.get(label, ()) for label in pod.labels.items())
        return (term for terms in (self._rest, *listed) for term in terms if term.matches(pod))

    def _built(self) -> dict[tuple[str, str], list[AffinityTerm]]:
        found: dict[tuple[str, str], list[AffinityTerm]] = {}
        for term in self._terms:
            equal = (r for r in term.selector.requirements if r.operator == IN and len(r.values) == 1)
            asked = next(equal, None)
            place = self._rest if asked is None else found.setdefault((asked.key, asked.values[0]), [])
            place.append(term)
        return found


_HANDFUL = 8
"""Rows that are added up faster one by one."""


class RowSums:
    """Sums pods by topology key and row, each pod times the weight of its term."""

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
        """Return counts for filters, for topology keys whose domains have pods."""
        counts = {}
        for key, rows in self._rows.items():
            topology = self._topology_of(key)
            if topology.size and key not in self._domains and topology.one_node_each:
                counts[key] = DomainCounts.by_row(topology, rows)
        for topology, sums in self.tables(besides=counts):
            counts[topology.key] = DomainCounts(topology, sums)
        return counts

    def tables(self, besides: Container[str] = ()) -> list[tuple[Topology, FloatArray]]:
        """Return tables for scores, for topology keys whose domains have pods."""
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
