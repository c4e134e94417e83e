"""Counters over pods: how many match a selector, per row, changed by every event. Implements
`framework.indexes.PodCounters`.

    pod comes or goes ──▶ its LabelSet ──▶ the counters that match it: one row of each changes
    new LabelSet ──▶ SelectorRegistry ──▶ the counters that match it
    new selector ──▶ PodLabelsIndex ──▶ the LabelSets that match it, added up

Counters are bounded in bytes; the one not asked for the longest goes first, and is rebuilt when asked for
again. `Counting` makes these and the affinity terms when the first plugin asks for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from moorage.api.selectors import NOTHING
from moorage.framework.indexes import PodSelector, Topology
from moorage.framework.nodes import BoolArray, FloatArray
from moorage.state.affinity_terms import HeldTerms
from moorage.state.columns import read_only
from moorage.state.label_index import LabelSet, PodLabelsIndex, SelectorRegistry
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntry
from moorage.state.row_counts import RowCounts, Wide

LIMIT = 48 * 1024 * 1024
"""Bytes of all counters together."""
_COUNTER = 1024
"""Bytes of a counter that counts nothing, its places in the indexes included."""
_LINK = 96
"""Bytes of the link between a counter and a LabelSet."""


class Counter:
    """Implements `framework.indexes.PodCounter`."""

    __slots__ = ("_closed", "_counts", "charged", "sets", "wanted")

    def __init__(self, wanted: PodSelector, table: Wide, closed: bool = False) -> None:
        self.wanted = wanted
        self._counts = RowCounts(table)
        self.sets: dict[LabelSet, None] = {}
        """Whose pods are counted."""
        self.charged = 0
        """Bytes that the owner has taken into account."""
        self._closed = closed

    @property
    def version(self) -> int:
        return self._counts.version

    @property
    def empty(self) -> bool:
        return self._counts.empty

    @property
    def nbytes(self) -> int:
        return _COUNTER + _LINK * len(self.sets) + self._counts.nbytes

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
        """Count the pods of an entry, those of now and all later ones."""
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
        """This counter is not notified of anything any more."""
        self._closed = True
        for entry in self.sets:
            entry.counters = tuple(other for other in entry.counters if other is not self)

    def as_dict(self) -> Mapping[int, int]:
        """Rows with matching pods; for checks."""
        return self._counts.as_dict()


class Counters:
    """Implements `framework.indexes.PodCounters`; an observer of the table."""

    def __init__(self, table: Wide, limit: int = LIMIT) -> None:
        self._table = table
        self._limit = limit
        self._labels = PodLabelsIndex()
        self._counters: OrderedDict[PodSelector, Counter] = OrderedDict()
        """The one asked for last at the end."""
        self._registry: SelectorRegistry[Counter] = SelectorRegistry()
        self._none = Counter(PodSelector(frozenset(), NOTHING), table, closed=True)
        """What selectors without pods count."""
        self._bytes = 0
        """Of all counters, each as it was when last asked for."""

    def __len__(self) -> int:
        return len(self._counters)

    def get(self, selector: PodSelector) -> Counter:
        counter = self._counters.get(selector)
        if counter is None:
            counter = self._build(selector)
        self._counters.move_to_end(selector)
        now = counter.nbytes
        self._bytes += now - counter.charged
        counter.charged = now
        while self._bytes > self._limit and len(self._counters) > 1:
            self._evict()
        return counter

    def once(self, selector: PodSelector) -> Counter:
        known = self._counters.get(selector)
        if known is not None:
            return known
        rows: dict[int, int] = {}
        for entry in self._labels.matching(selector):
            for row, pods in entry.rows.items():
                pods -= 0 if selector.terminating else entry.terminating.get(row, 0)
                rows[row] = rows.get(row, 0) + pods
        if not rows:
            return self._none
        counter = Counter(selector, self._table, closed=True)
        counter.count(rows)
        return counter

    def _build(self, selector: PodSelector) -> Counter:
        counter = self._counters[selector] = Counter(selector, self._table)
        for entry in self._labels.matching(selector):
            counter.include(entry)
        self._registry.add(counter, selector.namespaces, selector.selector)
        return counter

    def prepare(self, entry: PodEntry) -> bool:
        entry.label_set = self._labels.find(entry.came.metadata)
        return True

    def pod_added(self, row: int, entry: PodEntry) -> None:
        labels = entry.label_set
        # One that has pods is not dropped. Most pods are not the first of their kind.
        if labels is None or not labels.rows:
            labels, new = self._labels.find_or_make(entry.came.metadata)
            entry.label_set = labels
            if new:
                self._introduce(labels)
        if entry.came.metadata.deletion_timestamp is not None:
            self._change(labels, row, 1, True)
            return
        labels.rows[row] = labels.rows.get(row, 0) + 1
        for counter in labels.counters:
            counter.change(row, 1, False)

    def pod_removed(self, row: int, entry: PodEntry) -> None:
        labels = entry.label_set
        if labels is None:
            raise KeyError(f"pod {entry.came.key} was never counted")
        self._change(labels, row, -1, entry.came.is_terminating)
        if not labels.rows:
            self._labels.vacated(labels)

    def pod_replaced(self, row: int, old: PodEntry, new: PodEntry) -> None:
        before, after = old.came.metadata, new.came.metadata
        terminating = after.deletion_timestamp is not None
        if before.labels == after.labels and (before.deletion_timestamp is not None) is terminating:
            new.label_set = old.label_set
        else:
            self.pod_removed(row, old)
            self.pod_added(row, new)

    def _introduce(self, entry: LabelSet) -> None:
        for counter in self._registry.candidates(entry.namespace, entry.labels):
            if entry.matches(counter.wanted):
                counter.include(entry)

    def _change(self, entry: LabelSet, row: int, number: int, terminating: bool) -> None:
        _bump(entry.rows, row, number)
        if terminating:
            _bump(entry.terminating, row, number)
        for counter in entry.counters:
            counter.change(row, number, terminating)

    def _evict(self) -> None:
        _, counter = self._counters.popitem(last=False)
        self._registry.remove(counter, counter.wanted.namespaces, counter.wanted.selector)
        counter.close()
        self._bytes -= counter.charged


def _bump(numbers: dict[int, int], row: int, number: int) -> None:
    total = numbers.get(row, 0) + number
    if total:
        numbers[row] = total
    else:
        numbers.pop(row, None)


class Counting:
    """One per process. A profile without affinity and spreading costs nothing."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._counters: Counters | None = None
        self._terms: HeldTerms | None = None

    def pod_counters(self) -> Counters:
        if self._counters is None:
            self._counters = Counters(self._table)
            self._table.observers.observe(self._counters)
        return self._counters

    def affinity_terms(self) -> HeldTerms:
        if self._terms is None:
            self._terms = HeldTerms(self._table)
            self._table.observers.observe(self._terms)
        return self._terms
