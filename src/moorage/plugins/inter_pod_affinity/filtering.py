"""Filter by required affinity and anti-affinity, with three tables of pod counts per domain.

Follows pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.

- near: pods that match all of the pod's required affinity terms. A node needs one in its domain of every
  term; if no domain has one, a pod that matches its own terms may be the first.
- away: pods that match one of the pod's required anti-affinity terms. A node must have none.
- hostile: pods whose required anti-affinity terms select the pod. A node must have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from moorage.api.pod import Pod
from moorage.api.pod_affinity import AffinityTerm, compile_pod_terms
from moorage.framework.handle import Handle
from moorage.framework.indexes import DomainCounts, HeldTerm, counting
from moorage.framework.nodes import BoolArray, Nodes, NodeView, Refusals
from moorage.framework.status import Code, Status
from moorage.plugins.inter_pod_affinity.terms import RowSums, TermIndex, matches_all, wanted, wanted_by_all

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

Tables = dict[str, DomainCounts]
"""Topology key → counts."""


class AffinityState:
    """The result of PreFilter, used by Filter, AddPod and RemovePod."""

    __slots__ = (
        "anti_index",
        "anti_terms",
        "away",
        "handle",
        "hostile",
        "namespace_labels",
        "near",
        "self_match",
        "terms",
    )

    def __init__(
        self,
        terms: tuple[AffinityTerm, ...],
        anti_terms: tuple[AffinityTerm, ...],
        namespace_labels: Mapping[str, str],
        handle: Handle,
        self_match: bool,
    ) -> None:
        self.terms = terms
        self.anti_terms = anti_terms
        self.anti_index = TermIndex(anti_terms)
        self.namespace_labels = namespace_labels
        """Of the incoming pod's namespace."""
        self.handle = handle
        self.self_match = self_match
        """Whether the pod matches all its own affinity terms."""
        self.near: Tables = {}
        self.away: Tables = {}
        self.hostile: Tables = {}

    @classmethod
    def of(
        cls,
        pod: Pod,
        terms: tuple[AffinityTerm, ...],
        anti_terms: tuple[AffinityTerm, ...],
        namespace_labels: Mapping[str, str],
        handle: Handle,
    ) -> AffinityState:
        return cls(terms, anti_terms, namespace_labels, handle, matches_all(terms, pod))

    def clone(self) -> AffinityState:
        other = AffinityState(self.terms, self.anti_terms, self.namespace_labels, self.handle, self.self_match)
        other.anti_index = self.anti_index
        other.near, other.away, other.hostile = map(_cloned, (self.near, self.away, self.hostile))
        return other

    def count(self, held: Iterable[HeldTerm]) -> None:
        """Fill the tables from the counters and from the terms of running pods that select the pod."""
        counters, topology_of = self.handle.pod_counters, self.handle.topology
        if self.terms:
            counter = counters.get(wanted_by_all(self.terms))
            for key in {term.topology_key: None for term in self.terms}:
                topology = topology_of(key)
                self.near[key] = DomainCounts(topology, counter.sums(topology))
        away, hostile = RowSums(topology_of), RowSums(topology_of)
        count = counting(counters, len(self.anti_terms))
        for term in self.anti_terms:
            away.add(term.topology_key, count(wanted(term)))
        for found in held:
            hostile.add(found.term.topology_key, found)
        self.away, self.hostile = away.counts(), hostile.counts()

    def update(self, pod: Pod, other: Pod, node: NodeView, number: int) -> None:
        """Count that `other` was added to the node or removed from it."""
        if matches_all(self.terms, other):
            for counts in self.near.values():
                counts.add(counts.topology.domain(node.labels), number)
        for term in self.anti_index.matching(other):
            self._add(self.away, term.topology_key, node, number)
        for term in compile_pod_terms(other).anti_affinity:
            if term.matches(pod, self.namespace_labels):
                self._add(self.hostile, term.topology_key, node, number)

    def concerns(self, pod: Pod, other: Pod) -> bool:
        """Return whether `other` counts in any table."""
        return (
            matches_all(self.terms, other)
            or next(self.anti_index.matching(other), None) is not None
            or any(t.matches(pod, self.namespace_labels) for t in compile_pod_terms(other).anti_affinity)
        )

    def _add(self, tables: Tables, key: str, node: NodeView, number: int) -> None:
        counts = tables.get(key)
        if counts is None:
            topology = self.handle.topology(key)
            counts = tables[key] = DomainCounts(topology, np.zeros(topology.size))
        counts.add(counts.topology.domain(node.labels), number)


def filter_node(state: AffinityState, node: NodeView) -> Status | None:
    """Check affinity, then anti-affinity, then the anti-affinity of existing pods; the first failure decides."""
    if state.terms and not has_company(state, node):
        return Status.unresolvable(REASON_AFFINITY)
    if meets(state.away, node):
        return Status.unschedulable(REASON_ANTI_AFFINITY)
    if meets(state.hostile, node):
        return Status.unschedulable(REASON_EXISTING)
    return None


def has_company(state: AffinityState, node: NodeView) -> bool:
    """Return whether the pod's affinity terms are satisfied on the node."""
    domains = [(counts, counts.topology.domain(node.labels)) for counts in state.near.values()]
    if any(domain < 0 for _, domain in domains):
        return False
    return all(counts.at(domain) > 0 for counts, domain in domains) or may_be_first(state)


def may_be_first(state: AffinityState) -> bool:
    """Return whether the pod matches its own terms and no other pod does, so that it may run anywhere."""
    return state.self_match and not any(counts.any for counts in state.near.values())


def meets(tables: Tables, node: NodeView) -> bool:
    """Return whether some counted pod is in the node's domains."""
    return any(counts.at(counts.topology.domain(node.labels)) > 0 for counts in tables.values())


def filter_nodes(state: AffinityState, nodes: Nodes) -> Refusals:
    """Filter all nodes: compute one verdict per domain and spread it to the nodes."""
    refusals = nodes.refusals()
    lonely = _lonely(state, nodes) if state.terms else None
    if lonely is not None:
        refusals.add(lonely, REASON_AFFINITY, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    away = _any_in_domain(state.away, nodes)
    hostile = _any_in_domain(state.hostile, nodes)
    if away is not None:
        refusals.add(away if lonely is None else away & ~lonely, REASON_ANTI_AFFINITY)
    if hostile is not None:
        for earlier in (lonely, away):
            hostile = hostile if earlier is None else hostile & ~earlier
        refusals.add(hostile, REASON_EXISTING)
    return refusals


def _lonely(state: AffinityState, nodes: Nodes) -> BoolArray | None:
    """Return the nodes that lack a matching pod in one of the domains; None for none."""
    first = may_be_first(state)
    lonely: BoolArray | None = None
    for counts in state.near.values():
        alone = np.zeros(counts.topology.size, dtype=np.bool_) if first else counts.now() <= 0
        if counts.topology.unlabelled or alone.any():
            lonely = _either(lonely, counts.topology.gather(alone, True, nodes))
            if lonely.all():
                break  # a pod may name thousands of keys that no node has
    return lonely


def _any_in_domain(tables: Tables, nodes: Nodes) -> BoolArray | None:
    """Return the nodes with a count above zero in one of the tables; None for none."""
    found: BoolArray | None = None
    for counts in tables.values():
        mask = counts.occupied(nodes)
        if mask is not None:
            found = _either(found, mask)
    return found


def _either(found: BoolArray | None, mask: BoolArray) -> BoolArray:
    return mask if found is None else found | mask


def _cloned(tables: Tables) -> Tables:
    return {key: counts.clone() for key, counts in tables.items()}
