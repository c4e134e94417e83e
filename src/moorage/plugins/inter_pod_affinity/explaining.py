"""Explain which affinity terms keep a pod off a node, and which pods cause that. Filtering adds up all terms of a
topology key; this module checks each term separately."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec.structs import replace

from moorage.api.pod import Affinity, Pod, PodAffinity, PodAntiAffinity
from moorage.api.pod_affinity import compile_pod_terms
from moorage.framework.handle import Handle
from moorage.framework.indexes import Bins, HeldTerm, PodSelector, counting
from moorage.framework.nodes import NodeView
from moorage.framework.optional import NO_LABEL, Detail, Proposal, a_few, deletion
from moorage.plugins.inter_pod_affinity.filtering import AffinityState, has_company, may_be_first, meets
from moorage.plugins.inter_pod_affinity.terms import wanted, wanted_by_all

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
        yield _dropped("pod_anti_affinity", "pod anti-affinity")
    in_the_way = {name for detail in explain_node(state, held, pod, node) for name in detail.pods}
    others = [other for other in node.pods if other.key in in_the_way]
    if len(in_the_way) == 1 and others:
        yield deletion(others[0], node)


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
