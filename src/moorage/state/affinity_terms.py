"""The affinity terms of running pods: each distinct one once, with its holders per row. Implements
`framework.indexes.AffinityTerms`.

An incoming pod finds the terms that mean it by its own labels; it never goes through all of them, let alone
through the pods that hold them. One pod may hold hundreds of terms that no other has, so a term that is held
on a single row is kept small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from moorage.api.pod import Pod
from moorage.api.pod_affinity import NO_TERMS, AffinityTerm, PodTerms, WeightedTerm, compile_pod_terms
from moorage.framework.access import Version
from moorage.framework.indexes import TermKind, Topology
from moorage.framework.nodes import FloatArray
from moorage.state.label_index import SelectorRegistry
from moorage.state.pod_entry import PodEntry
from moorage.state.row_counts import RowCounts, Wide


class HeldTerm:
    """Implements `framework.indexes.HeldTerm`."""

    __slots__ = ("_counts", "_row", "kind", "pods", "term", "weight")

    def __init__(self, kind: TermKind, term: AffinityTerm, weight: int) -> None:
        self.kind = kind
        self.term = term
        self.weight = weight
        self.pods = 0
        """Holders on all rows together."""
        self._row = -1
        """The only row with holders, while `_counts` is None."""
        self._counts: RowCounts | None = None

    def change(self, row: int, number: int, table: Wide) -> None:
        if self._counts is None:
            if not self.pods:
                self._row = row
            elif row != self._row:
                self._counts = RowCounts(table)
                self._counts.add(self._row, self.pods)
        if self._counts is not None:
            self._counts.add(row, number)
        self.pods += number

    def few(self) -> Mapping[int, int] | None:
        return {self._row: self.pods} if self._counts is None else self._counts.few()

    def sums(self, topology: Topology) -> FloatArray:
        if self._counts is not None:
            return self._counts.sums(topology)
        sums = np.zeros(topology.size + 1)
        sums[topology.bins[self._row]] = self.pods
        return sums[1:]

    def as_dict(self) -> Mapping[int, int]:
        """Rows with holders; for checks."""
        return {self._row: self.pods} if self._counts is None else self._counts.as_dict()


Held = dict[AffinityTerm | WeightedTerm, HeldTerm]


class HeldTerms:
    """Implements `framework.indexes.AffinityTerms`; an observer of the table."""

    def __init__(self, table: Wide) -> None:
        self._table = table
        self._lists: tuple[Held, Held, Held, Held] = ({}, {}, {}, {})
        """The distinct terms, as `_lists_of` orders them."""
        self._registries: dict[TermKind, SelectorRegistry[HeldTerm]] = {
            kind: SelectorRegistry() for kind in TermKind
        }
        self.version = Version()

    def __len__(self) -> int:
        """Number of distinct terms."""
        return sum(map(len, self._lists))

    def __iter__(self) -> Iterator[HeldTerm]:
        """All terms; for checks."""
        for held in self._lists:
            yield from held.values()

    def matching(
        self, pod: Pod, namespace_labels: Mapping[str, str], kinds: frozenset[TermKind]
    ) -> list[HeldTerm]:
        found: list[HeldTerm] = []
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        for kind in kinds:
            registry = self._registries[kind]
            if registry.is_empty:
                continue
            for held in registry.candidates(namespace, labels):
                if held.term.matches(pod, namespace_labels):
                    found.append(held)
        return found

    def prepare(self, entry: PodEntry) -> bool:
        return _terms_of(entry) is not NO_TERMS

    def pod_added(self, row: int, entry: PodEntry) -> None:
        self._change(row, _terms_of(entry), 1)

    def pod_removed(self, row: int, entry: PodEntry) -> None:
        self._change(row, _terms_of(entry), -1)

    def pod_replaced(self, row: int, old: PodEntry, new: PodEntry) -> None:
        before, after = _terms_of(old), _terms_of(new)
        if before is not after:
            self._change(row, before, -1)
            self._change(row, after, 1)

    def _change(self, row: int, terms: PodTerms, number: int) -> None:
        if terms is NO_TERMS:
            return
        table, before = self._table, len(self)
        for held, (kind, sign, listed) in zip(self._lists, lists_of(terms), strict=True):
            for key in listed:
                found = held.get(key)
                if found is None:
                    term, weight = (key, 0) if isinstance(key, AffinityTerm) else (key.term, key.weight)
                    if term.selector.nothing:
                        continue
                    found = held[key] = HeldTerm(kind, term, sign * weight)
                    self._registries[kind].add(found, _namespaces(term), term.selector)
                found.change(row, number, table)
                if not found.pods:
                    del held[key]
                    self._registries[kind].remove(found, _namespaces(found.term), found.term.selector)
        if len(self) != before:
            self.version.bump()


def _terms_of(entry: PodEntry) -> PodTerms:
    if entry.terms is None:
        entry.terms = compile_pod_terms(entry.came)
    return entry.terms


def lists_of(
    terms: PodTerms,
) -> tuple[tuple[TermKind, int, tuple[AffinityTerm | WeightedTerm, ...]], ...]:
    """The terms that a pod holds while it runs, each list with its kind and the sign of its weights. Lists
    with bad selectors are empty."""
    return (
        (TermKind.ANTI_AFFINITY, 1, terms.anti_affinity),
        (TermKind.AFFINITY, 1, terms.affinity),
        (TermKind.PREFERRED, 1, terms.preferred),
        (TermKind.PREFERRED, -1, terms.preferred_anti),
    )


def _namespaces(term: AffinityTerm) -> frozenset[str] | None:
    """The namespaces by name, or None where labels of namespaces decide as well."""
    return term.namespaces if term.namespace_selector.nothing else None
