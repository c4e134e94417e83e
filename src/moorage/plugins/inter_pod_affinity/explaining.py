"""Explain which affinity terms keep a pod off a node, and which pods cause that. Filtering adds up all terms of a
topology key; this module checks each term separately."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from msgspec.structs import replace

from moorage.api.pod import Affinity, Pod, PodAffinity, PodAntiAffinity, WeightedPodAffinityTerm
from moorage.api.pod_affinity import compile_pod_terms
from moorage.framework.handle import Handle
from moorage.framework.indexes import Bins, HeldTerm, PodSelector, counting
from moorage.framework.nodes import NodeView
from moorage.framework.optional import NO_LABEL, Detail, Proposal, a_few, deletion
from moorage.plugins.inter_pod_affinity.filtering import AffinityState, has_company, may_be_first, meets
from moorage.plugins.inter_pod_affinity.terms import wanted, wanted_by_all

MAX_NAMED = 5
"""Pods that a fact names."""
ALL = "all pods"
"""An empty selector, in words."""


def explain_node(state: AffinityState, held: Iterable[HeldTerm], pod: Pod, node: NodeView) -> Iterator[Detail]:
    """Return the affinity, anti-affinity and existing pods' anti-affinity terms that the node fails. `held` are the
    terms of running pods that select the pod."""
    if state.terms and not has_company(state, node):
        yield from _lonely(state, pod, node)
    yield from _away(state, pod, node)
    for found in held:
        yield from _hostile(found, state.handle, node)


def proposals(state: AffinityState, held: Iterable[HeldTerm], pod: Pod, node: NodeView) -> Iterator[Proposal]:
    """Propose to drop the pod's own terms if they fail, and to delete a pod if it is the only obstacle. The terms of
    running pods are not proposed for change."""
    if state.terms and not has_company(state, node):
        yield _dropped("pod_affinity", "pod affinity")
    elif meets(state.away, node):
        text = "prefer the pod anti-affinity instead of requiring it"
        yield Proposal(text, text, 4, _preferring)
    in_the_way = {name for detail in explain_node(state, held, pod, node) for name in detail.pods}
    others = [other for other in node.pods if other.key in in_the_way]
    if len(in_the_way) == 1 and others:
        yield deletion(others[0], node)


def facts(state: AffinityState, pod: Pod) -> Iterator[str]:
    """Say that no pod matches the affinity of the pod, and where pods are that its anti-affinity keeps away from."""
    if state.terms and not any(counts.any for counts in state.near.values()) and not may_be_first(state):
        selected = wanted_by_all(state.terms)
        where = f" in namespace {pod.namespace}" if selected.namespaces == frozenset((pod.namespace,)) else ""
        yield f"No running pod matches {_text(selected, pod)}{where}, which the pod affinity requires."
    count = counting(state.handle.pod_counters, len(state.anti_terms))
    for term in state.anti_terms:
        rows = np.flatnonzero(count(wanted(term)).per_row > 0)
        matching = (other for other in _pods(state.handle, rows) if term.matches(other))
        found = ", ".join(f"{other.key} on {other.spec.node_name}" for other in islice(matching, MAX_NAMED))
        if found:
            yield f"The pod anti-affinity keeps the pod away from {_text(wanted(term), pod)}: {found}."


def _preferring(pod: Pod) -> Pod:
    """Return the pod with its required anti-affinity terms preferred, with the largest weight."""
    affinity = pod.spec.affinity or Affinity()
    group = affinity.pod_anti_affinity
    if group is None:
        return pod
    required = group.required_during_scheduling_ignored_during_execution
    soft = tuple(WeightedPodAffinityTerm(weight=100, pod_affinity_term=term) for term in required)
    preferred = (*group.preferred_during_scheduling_ignored_during_execution, *soft)
    free = replace(
        group,
        required_during_scheduling_ignored_during_execution=(),
        preferred_during_scheduling_ignored_during_execution=preferred,
    )
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, pod_anti_affinity=free)))


def _dropped(field: str, what: str) -> Proposal:
    def drop(given: Pod) -> Pod:
        affinity = given.spec.affinity or Affinity()
        group: PodAffinity | PodAntiAffinity | None = getattr(affinity, field)
        if group is None:
            return given
        free = replace(group, required_during_scheduling_ignored_during_execution=())
        return replace(given, spec=replace(given.spec, affinity=replace(affinity, **{field: free})))

    return Proposal(f"drop required {what}", f"drop the required {what}", 5, drop)


def _lonely(state: AffinityState, pod: Pod, node: NodeView) -> Iterator[Detail]:
    rule, first = f"affinity {_text(wanted_by_all(state.terms), pod)}", may_be_first(state)
    for key, counts in state.near.items():
        domain = counts.topology.domain(node.labels)
        if domain < 0:
            yield Detail(f"{rule} per {key}", there=NO_LABEL)
        elif not first and counts.at(domain) <= 0:
            where = f"in {node.labels[key]}" if counts.any else "anywhere"
            yield Detail(f"{rule} per {key}", there=f"no matching pod {where}")


def _away(state: AffinityState, pod: Pod, node: NodeView) -> Iterator[Detail]:
    count = counting(state.handle.pod_counters, len(state.anti_terms))
    for term in state.anti_terms:
        topology = state.handle.topology(term.topology_key)
        domain, per_row = topology.domain(node.labels), count(wanted(term)).per_row
        rows = np.flatnonzero((topology.bins == domain + 1) & (per_row[: len(topology.bins)] > 0))
        if domain >= 0 and len(rows):
            number = int(per_row[rows].sum())
            there = (other for other in _pods(state.handle, rows) if term.matches(other))
            rule = f"anti-affinity {_text(wanted(term), pod)} per {term.topology_key}"
            yield Detail(rule, asked=0, there=number, missing=number, pods=a_few(there))


def _hostile(found: HeldTerm, handle: Handle, node: NodeView) -> Iterator[Detail]:
    term, topology = found.term, handle.topology(found.term.topology_key)
    domain = topology.domain(node.labels)
    number = int(found.sums(topology)[domain]) if domain >= 0 else 0
    if number:
        rows = np.flatnonzero(topology.bins == domain + 1)
        few = found.few()
        if few is not None:
            rows = rows[np.isin(rows, [*few])]
        holders = (other for other in _pods(handle, rows) if term in compile_pod_terms(other).anti_affinity)
        rule = f"anti-affinity of running pods against {str(term.selector) or ALL} per {term.topology_key}"
        yield Detail(rule, asked=0, there=number, missing=number, pods=a_few(holders))


def _pods(handle: Handle, rows: Bins) -> Iterator[Pod]:
    """Yield the pods on the given rows; callers stop after a few."""
    columns = handle.nodes.columns
    return (pod for row in rows for pod in columns.view(int(row)).pods)


def _text(selected: PodSelector, pod: Pod) -> str:
    """Return the selector as text, with the namespaces unless they are the pod's own."""
    text = str(selected.selector) or ALL
    if selected.namespaces is None:
        return f"{text} in all namespaces"
    if selected.namespaces == {pod.namespace}:
        return text
    return f"{text} in namespaces {', '.join(sorted(selected.namespaces)) or '<none>'}"
