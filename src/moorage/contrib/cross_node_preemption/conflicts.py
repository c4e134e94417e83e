"""Find pods on any node that may keep a pod off a node: pods that its required anti-affinity selects, pods whose
required anti-affinity selects it, and pods that its hard spread constraints count.

The result may contain pods that do not matter in the end; the filters decide that in a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from moorage.api.errors import SelectorError
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.pod_affinity import AffinityTerm, compile_pod_terms
from moorage.api.resources import NAMESPACES
from moorage.api.selectors import NOTHING, Selector, compile_label_selector
from moorage.framework.handle import Handle
from moorage.framework.indexes import PodSelector, TermKind
from moorage.framework.nodes import IntArray

_HOSTILE = frozenset((TermKind.ANTI_AFFINITY,))


class PlacementConflict(NamedTuple):
    """Pods that keep a pod off all nodes of their domain."""

    topology_key: str
    rows: IntArray
    """Where such pods run."""
    is_meant: Callable[[Pod], bool]

    def rows_beside(self, row: int, handle: Handle) -> IntArray:
        """Return the other rows of the node's domain with such pods."""
        bins = handle.topology(self.topology_key).bins
        here = (bins[self.rows] == bins[row]) & (self.rows != row) & (bins[row] > 0)
        beside: IntArray = self.rows[here]
        return beside


class Conflicts:
    """Finds conflicts with the counters and indexes of the state."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._counters = handle.pod_counters
        self._running = handle.affinity_terms

    def of(self, pod: Pod) -> list[PlacementConflict]:
        return [*self._own_terms(pod), *self._terms_of_others(pod), *self._spread(pod)]

    def _own_terms(self, pod: Pod) -> Iterator[PlacementConflict]:
        for term in compile_pod_terms(pod).anti_affinity:
            namespaces = term.namespaces if term.namespace_selector.nothing else None
            rows = self._rows(PodSelector(namespaces, term.selector))
            yield PlacementConflict(term.topology_key, rows, _by_labels(term.selector))

    def _terms_of_others(self, pod: Pod) -> Iterator[PlacementConflict]:
        namespace = self._handle.lister(NAMESPACES).get(pod.namespace)
        labels: Mapping[str, str] = namespace.labels if namespace is not None else {}
        for held in self._running.matching(pod, labels, _HOSTILE):
            few = held.few()
            rows = self._handle.nodes.rows if few is None else np.array([*few], dtype=np.int64)
            yield PlacementConflict(held.term.topology_key, rows, _by_term(held.term))

    def _spread(self, pod: Pod) -> Iterator[PlacementConflict]:
        for constraint in pod.spec.topology_spread_constraints:
            if constraint.when_unsatisfiable == "DoNotSchedule":
                selector = _selector(constraint)
                rows = self._rows(PodSelector(frozenset((pod.namespace,)), selector, terminating=False))
                yield PlacementConflict(constraint.topology_key, rows, _by_labels(selector))

    def _rows(self, selector: PodSelector) -> IntArray:
        counter = self._counters.get(selector)
        few = counter.few()
        rows = np.flatnonzero(counter.per_row) if few is None else np.array([*few], dtype=np.int64)
        return rows[np.isin(rows, self._handle.nodes.rows)]


def _by_labels(selector: Selector) -> Callable[[Pod], bool]:
    return lambda other: selector.matches(other.labels)


def _by_term(term: AffinityTerm) -> Callable[[Pod], bool]:
    return lambda other: term in compile_pod_terms(other).anti_affinity


def _selector(constraint: TopologySpreadConstraint) -> Selector:
    """Return the selector without matchLabelKeys, so that it matches more pods."""
    try:
        return compile_label_selector(constraint.label_selector)
    except SelectorError:
        return NOTHING
