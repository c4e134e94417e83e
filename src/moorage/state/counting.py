"""Counters over pods, and the affinity terms of running pods. Implements `framework.indexes`.

    a pod comes or goes ──▶ its LabelSet ──▶ the counters that match it: one row of each changes
    a new LabelSet ──▶ SelectorRegistry ──▶ the counters that match it
    a new selector ──▶ PodLabelsIndex ──▶ the sum of the LabelSets that match it

Counters are bounded in bytes. The least recently used one is dropped first and rebuilt on demand.

Each distinct affinity term is stored once, with the number of its holders per row. An incoming pod finds the
terms that match it through its own labels, without going through all terms or the pods that hold them. One
pod may hold hundreds of terms that no other pod has, so a term that is held on a single row is kept small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from moorage.api.pod import Pod
from moorage.api.pod_affinity import NO_TERMS, AffinityTerm, PodTerms, WeightedTerm, compile_pod_terms
from moorage.api.recent import Recent
from moorage.api.selectors import NOTHING, size_of
from moorage.framework.access import Version
from moorage.framework.indexes import PodSelector, TermKind, Topology
from moorage.framework.nodes import BoolArray, FloatArray
from moorage.state.columns import read_only
from moorage.state.label_index import LabelSet, PodLabelsIndex, SelectorRegistry, is_tried_by_all
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntry
from moorage.state.row_counts import RowCounts, RowTable

MAX_BYTES = 48 * 1024 * 1024
"""The memory that all counters together may take."""
_COUNTER_BYTES = 1024
"""The memory of an empty counter, including its entries in the indexes."""
_MAX_KEPT_SIZE = 64
"""Selectors with more requirements, values and namespaces get no counter that is kept: tenants choose how large they
are, and every new set of labels is compared with the counters."""
_TRIED_BYTES = 128 * 1024
"""The charge for a counter that is compared with every new set of labels. It bounds their number, and with it the time
that they cost the pods of other tenants."""
_LINK_BYTES = 96
"""The memory of the link between a counter and a LabelSet."""


class SelectorCounter:
    """The number of pods per row that match one selector. Implements `framework.indexes.PodCounter`."""

    __slots__ = ("_base_bytes", "_closed", "_counts", "charged", "sets", "wanted")

    def __init__(self, wanted: PodSelector, table: RowTable, closed: bool = False) -> None:
        self.wanted = wanted
        self._base_bytes = _COUNTER_BYTES + (_TRIED_BYTES if is_tried_by_all(wanted.selector) else 0)
        self._counts = RowCounts(table)
        self.sets: dict[LabelSet, None] = {}
        """The label sets whose pods are counted."""
        self.charged = 0
        """The bytes that the owner has accounted for this counter."""
        self._closed = closed

    @property
    def version(self) -> int:
        return self._counts.version

    @property
    def empty(self) -> bool:
        return self._counts.empty

    @property
    def nbytes(self) -> int:
        return self._base_bytes + _LINK_BYTES * len(self.sets) + self._counts.nbytes

    @property
    def per_row(self) -> FloatArray:
        return read_only(self._counts.per_row)

    def few(self) -> Mapping[int, int] | None:
        return self._counts.few()

    def number(self, row: int) -> int:
        return self._counts.number(row)

    def changed_since(self, version: int) -> list[int] | None:
        return None if self._closed else self._counts.changed_since(version)

    def sums(self, topology: Topology, where: BoolArray | None = None) -> FloatArray:
        return self._counts.sums(topology, where)

    def include(self, entry: LabelSet) -> None:
        """Count the pods of an entry, present and future."""
        self.sets[entry] = None
        entry.counters = (*entry.counters, self)
        self.count(entry.rows)
        if not self.wanted.terminating:
            self.count(entry.terminating, -1)

    def count(self, rows: Mapping[int, int], sign: int = 1) -> None:
        self._counts.add_all(rows, sign)

    def leave(self, entry: LabelSet) -> None:
        del self.sets[entry]

    def change(self, row: int, number: int, terminating: bool) -> None:
        if self.wanted.terminating or not terminating:
            self._counts.add(row, number)

    def close(self) -> None:
        """Stop counting."""
        self._closed = True
        for entry in self.sets:
            entry.counters = tuple(other for other in entry.counters if other is not self)

    def as_dict(self) -> Mapping[int, int]:
        """Return the rows with matching pods. For checks."""
        return self._counts.as_dict()


class SelectorCounters:
    """All counters. Implements `framework.indexes.PodCounters` and observes the table."""

    def __init__(self, table: RowTable, limit: int = MAX_BYTES) -> None:
        self._table = table
        self._labels = PodLabelsIndex()
        self._counters: Recent[PodSelector, SelectorCounter] = Recent(limit, self._close)
        """Selector → counter, weighed by its memory as of its last use."""
        self._registry: SelectorRegistry[SelectorCounter] = SelectorRegistry()
        self._none = SelectorCounter(PodSelector(frozenset(), NOTHING), table, closed=True)
        """The counter of selectors that match no pod."""

    def __len__(self) -> int:
        return len(self._counters)

    def get(self, selector: PodSelector) -> SelectorCounter:
        counter = self._counters.get(selector)
        if counter is None:
            if _size(selector) > _MAX_KEPT_SIZE:
                return self.once(selector)
            counter = self._build(selector)
        now = counter.nbytes
        if now != counter.charged:
            counter.charged = now
            self._counters.put(selector, counter, now)
        return counter

    def once(self, selector: PodSelector) -> SelectorCounter:
        known = self._counters.get(selector)
        if known is not None:
            return known
        rows: dict[int, int] = {}
        for entry in self._labels.matching(selector, occupied=True):
            for row, pods in entry.rows.items():
                pods -= 0 if selector.terminating else entry.terminating.get(row, 0)
                rows[row] = rows.get(row, 0) + pods
        if not rows:
            return self._none
        counter = SelectorCounter(selector, self._table, closed=True)
        counter.count(rows)
        return counter

    def _build(self, selector: PodSelector) -> SelectorCounter:
        counter = SelectorCounter(selector, self._table)
        for entry in self._labels.matching(selector):
            counter.include(entry)
        self._registry.add(counter, selector.namespaces, selector.selector)
        return counter

    def prepare(self, entry: PodEntry) -> bool:
        entry.label_set = self._labels.find(entry.original.metadata)
        return True

    def pod_added(self, row: int, entry: PodEntry) -> None:
        labels = entry.label_set
        # A set with pods is never dropped, and most pods are not the first of their set.
        if labels is None or not labels.rows:
            labels, new = self._labels.find_or_create(entry.original.metadata)
            entry.label_set = labels
            if new:
                self._introduce(labels)
        if entry.original.metadata.deletion_timestamp is not None:
            self._change(labels, row, 1, True)
            return
        labels.rows[row] = labels.rows.get(row, 0) + 1
        for counter in labels.counters:
            counter.change(row, 1, False)

    def pod_removed(self, row: int, entry: PodEntry) -> None:
        labels = entry.label_set
        if labels is None:
            raise KeyError(f"Pod {entry.original.key} was never counted.")
        self._change(labels, row, -1, entry.original.is_terminating)
        if not labels.rows:
            self._labels.mark_vacant(labels)

    def pod_replaced(self, row: int, old: PodEntry, new: PodEntry) -> None:
        before, after = old.original.metadata, new.original.metadata
        same_set = before.labels == after.labels and before.namespace == after.namespace
        if same_set and (before.deletion_timestamp is None) is (after.deletion_timestamp is None):
            new.label_set = old.label_set
        else:
            self.pod_removed(row, old)
            self.pod_added(row, new)

    def _introduce(self, entry: LabelSet) -> None:
        for counter in self._registry.candidates(entry.namespace, entry.labels):
            if entry.matches(counter.wanted):
                counter.include(entry)

    def _change(self, entry: LabelSet, row: int, number: int, terminating: bool) -> None:
        _add_to_row(entry.rows, row, number)
        if terminating:
            _add_to_row(entry.terminating, row, number)
        for counter in entry.counters:
            counter.change(row, number, terminating)

    def _close(self, counter: SelectorCounter) -> None:
        self._registry.remove(counter, counter.wanted.namespaces, counter.wanted.selector)
        counter.close()


def _size(wanted: PodSelector) -> int:
    """Return the size of a selector."""
    return size_of(wanted.selector.requirements) + len(wanted.namespaces or ())


def _add_to_row(numbers: dict[int, int], row: int, number: int) -> None:
    total = numbers.get(row, 0) + number
    if total:
        numbers[row] = total
    else:
        numbers.pop(row, None)


class RowHeldTerm:
    """An affinity term and the number of its holders per row. Implements `framework.indexes.HeldTerm`."""

    __slots__ = ("_counts", "_row", "kind", "pods", "term", "weight")

    def __init__(self, kind: TermKind, term: AffinityTerm, weight: int) -> None:
        self.kind = kind
        self.term = term
        self.weight = weight
        self.pods = 0
        """Number of holders on all rows."""
        self._row = -1
        """The only row with holders, while `_counts` is None."""
        self._counts: RowCounts | None = None

    def change(self, row: int, number: int, table: RowTable) -> None:
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
        """Return the rows with holders. For checks."""
        return {self._row: self.pods} if self._counts is None else self._counts.as_dict()


_TermsByKey = dict[AffinityTerm | WeightedTerm, RowHeldTerm]


class HeldTerms:
    """The distinct terms of running pods. Implements `framework.indexes.AffinityTerms`; observes the table."""

    def __init__(self, table: RowTable) -> None:
        self._table = table
        self._lists: tuple[_TermsByKey, _TermsByKey, _TermsByKey, _TermsByKey] = ({}, {}, {}, {})
        """The distinct terms, in the order of `lists_of`."""
        self._registries: dict[TermKind, SelectorRegistry[RowHeldTerm]] = {
            kind: SelectorRegistry() for kind in TermKind
        }
        self.version = Version()

    def __len__(self) -> int:
        """Return the number of distinct terms."""
        return sum(map(len, self._lists))

    def __iter__(self) -> Iterator[RowHeldTerm]:
        """Iterate over all terms. For checks."""
        for held in self._lists:
            yield from held.values()

    def matching(self, pod: Pod, namespace_labels: Mapping[str, str], kinds: frozenset[TermKind]) -> list[RowHeldTerm]:
        found: list[RowHeldTerm] = []
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
                    found = held[key] = RowHeldTerm(kind, term, sign * weight)
                    self._registries[kind].add(found, _namespaces(term), term.selector)
                found.change(row, number, table)
                if not found.pods:
                    del held[key]
                    self._registries[kind].remove(found, _namespaces(found.term), found.term.selector)
        if len(self) != before:
            self.version.bump()


def _terms_of(entry: PodEntry) -> PodTerms:
    if entry.terms is None:
        entry.terms = compile_pod_terms(entry.original)
    return entry.terms


def lists_of(terms: PodTerms) -> tuple[tuple[TermKind, int, tuple[AffinityTerm | WeightedTerm, ...]], ...]:
    """Return the terms that a pod holds while it runs, each list with its kind and the sign of its weights.

    A list with an invalid selector is empty.
    """
    return (
        (TermKind.ANTI_AFFINITY, 1, terms.anti_affinity),
        (TermKind.AFFINITY, 1, terms.affinity),
        (TermKind.PREFERRED, 1, terms.preferred),
        (TermKind.PREFERRED, -1, terms.preferred_anti),
    )


def _namespaces(term: AffinityTerm) -> frozenset[str] | None:
    """Return the namespaces of a term, or None if it also selects namespaces by label."""
    return term.namespaces if term.namespace_selector.nothing else None


class LazyCounting:
    """Creates the counters and the terms when the first plugin asks; profiles without them pay nothing."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._counters: SelectorCounters | None = None
        self._terms: HeldTerms | None = None

    def pod_counters(self) -> SelectorCounters:
        if self._counters is None:
            self._counters = SelectorCounters(self._table)
            self._table.observers.observe(self._counters)
        return self._counters

    def affinity_terms(self) -> HeldTerms:
        if self._terms is None:
            self._terms = HeldTerms(self._table)
            self._table.observers.observe(self._terms)
        return self._terms
