"""The affinity terms of running pods: each distinct one once, with its holders per row. Implements
`framework.counting.AffinityTerms`.

An incoming pod finds the terms that mean it by its own labels; it never goes through all of them, let alone
through the pods that hold them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mooring.api.pod import Pod
from mooring.api.pod_affinity import NO_TERMS, AffinityTerm, PodTerms, compile_pod_terms
from mooring.framework.access import Version
from mooring.framework.counting import TermKind
from mooring.framework.nodes import FloatArray
from mooring.framework.topology import Topology
from mooring.state.label_index import SelectorRegistry
from mooring.state.pod_entry import PodEntry
from mooring.state.row_counts import RowCounts, Wide

_REMEMBERED = 4096
_known: dict[int, tuple[PodTerms, tuple[TermKey, ...]]] = {}
"""Identity of compiled terms, which pods of one template share → the terms, kept alive by this, and keys."""


class TermKey(NamedTuple):
    """What makes a term distinct."""

    kind: TermKind
    term: AffinityTerm
    weight: int


class HeldTerm:
    """Implements `framework.counting.HeldTerm`."""

    __slots__ = ("holders", "key", "pods")

    def __init__(self, key: TermKey, table: Wide) -> None:
        self.key = key
        self.holders = RowCounts(table)
        self.pods = 0
        """Holders on all rows together."""

    @property
    def kind(self) -> TermKind:
        return self.key.kind

    @property
    def term(self) -> AffinityTerm:
        return self.key.term

    @property
    def weight(self) -> int:
        return self.key.weight

    def few(self) -> Mapping[int, int] | None:
        return self.holders.few()

    def sums(self, topology: Topology) -> FloatArray:
        return self.holders.sums(topology)


class HeldTerms:
    """Implements `framework.counting.AffinityTerms`; an observer of the table."""

    def __init__(self, table: Wide) -> None:
        self._table = table
        self._terms: dict[TermKey, HeldTerm] = {}
        self._registries: dict[TermKind, SelectorRegistry[HeldTerm]] = {
            kind: SelectorRegistry() for kind in TermKind
        }
        self.version = Version()

    def __len__(self) -> int:
        """Number of distinct terms."""
        return len(self._terms)

    def __iter__(self) -> Iterator[HeldTerm]:
        """All terms; for checks."""
        return iter(self._terms.values())

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
        return entry.came.spec.affinity is not None

    def pod_added(self, row: int, entry: PodEntry) -> None:
        if entry.came.spec.affinity is not None:
            self._change(row, entry.came, 1)

    def pod_removed(self, row: int, entry: PodEntry) -> None:
        if entry.came.spec.affinity is not None:
            self._change(row, entry.came, -1)

    def pod_replaced(self, row: int, old: PodEntry, new: PodEntry) -> None:
        if old.came.spec.affinity != new.came.spec.affinity:
            self.pod_removed(row, old)
            self.pod_added(row, new)

    def _change(self, row: int, pod: Pod, number: int) -> None:
        for key in _keys_of(pod):
            found = self._terms.get(key)
            if found is None:
                found = self._terms[key] = HeldTerm(key, self._table)
                self._registries[key.kind].add(found, _namespaces(key.term), key.term.selector)
                self.version.bump()
            found.holders.add(row, number)
            found.pods += number
            if not found.pods:
                del self._terms[key]
                self._registries[key.kind].remove(found, _namespaces(key.term), key.term.selector)
                self.version.bump()


def _keys_of(pod: Pod) -> tuple[TermKey, ...]:
    terms = compile_pod_terms(pod)
    if terms is NO_TERMS:
        return ()
    found = _known.get(id(terms))
    if found is None:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        found = _known[id(terms)] = (terms, tuple(terms_of(pod)))
    return found[1]


def terms_of(pod: Pod) -> Iterator[TermKey]:
    """The terms that a pod holds while it runs. Lists with bad selectors count as empty; terms that match
    nothing are left out."""
    terms = compile_pod_terms(pod)
    if terms is NO_TERMS:
        return
    anti = (TermKey(TermKind.ANTI_AFFINITY, term, 0) for term in terms.anti_affinity)
    near = (TermKey(TermKind.AFFINITY, term, 0) for term in terms.affinity)
    preferred = (TermKey(TermKind.PREFERRED, found.term, found.weight) for found in terms.preferred)
    avoided = (TermKey(TermKind.PREFERRED, found.term, -found.weight) for found in terms.preferred_anti)
    for group in (anti, near, preferred, avoided):
        yield from (key for key in group if not key.term.selector.nothing)


def _namespaces(term: AffinityTerm) -> frozenset[str] | None:
    """The namespaces by name, or None where labels of namespaces decide as well."""
    return term.namespaces if term.namespace_selector.nothing else None
