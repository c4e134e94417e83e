"""The terms of an incoming pod, with namespaces resolved to names.

As upstream, a namespace selector is resolved to the names of the namespaces that it matches now. It also stays on the
term, where it is matched against an empty set of labels: a selector that consists of NotIn and DoesNotExist only
matches pods of every namespace.

A pod may have hundreds of terms, and thousands may select it. Most terms are about pods on a few nodes: `RowSums` adds
these up row by row, and makes one array per topology key instead of one per term."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from moorage.api.core import Namespace
from moorage.api.pod import Pod
from moorage.api.pod_affinity import AffinityTerm
from moorage.api.resources import NAMESPACES
from moorage.api.selectors import NOTHING, Requirement, Selector, make_selector
from moorage.framework.access import Version
from moorage.framework.handle import Handle
from moorage.framework.indexes import DomainCounts, HeldTerm, PodCounter, PodSelector, Topology
from moorage.framework.nodes import FloatArray

_REMEMBERED = 1024
"""Namespace selectors whose namespaces are remembered."""
_NO_LABELS: Mapping[str, str] = {}


class Namespaces:
    """The labels of namespaces, and the namespaces that a selector matches."""

    def __init__(self, handle: Handle) -> None:
        self._lister = handle.lister(NAMESPACES)
        self._index = handle.object_index("labels", NAMESPACES, label_keys)
        self._resolved: dict[Selector, tuple[int, frozenset[str]]] = {}
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
        version, found = self._resolved.get(selector, (-1, frozenset()))
        if version != self.version.value:
            found = frozenset(ns.name for ns in self._lister.list() if selector.matches(ns.labels))
            if len(self._resolved) >= _REMEMBERED:
                self._resolved.clear()
            self._resolved[selector] = (self.version.value, found)
        return found

    def resolve(self, term: AffinityTerm) -> AffinityTerm:
        """Return the term with the names of the namespaces that its namespace selector matches."""
        selector = term.namespace_selector
        if selector.nothing or selector.empty:
            return term
        names = term.namespaces | self.matching(selector)
        return AffinityTerm(term.topology_key, names, term.selector, selector)


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
