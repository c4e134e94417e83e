"""InterPodAffinity as plain loops over nodes and pods: slow, obvious, and written apart from the plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from moorage.api.node import Node
from moorage.api.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm
from moorage.api.selectors import compile_label_selector

Labels = Mapping[str, str]
Spaces = Mapping[str, Labels]
Pairs = Counter[tuple[str, str]]


def required(pod: Pod, anti: bool) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    side = affinity and (affinity.pod_anti_affinity if anti else affinity.pod_affinity)
    return side.required_during_scheduling_ignored_during_execution if side else ()


def preferred(pod: Pod, anti: bool) -> tuple[WeightedPodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    side = affinity and (affinity.pod_anti_affinity if anti else affinity.pod_affinity)
    return side.preferred_during_scheduling_ignored_during_execution if side else ()


def means(term: PodAffinityTerm, holder: Pod, other: Pod, space_labels: Labels, names: set[str]) -> bool:
    """`names` are further namespaces, by name."""
    listed = set(term.namespaces) | names
    if not term.namespaces and term.namespace_selector is None:
        listed.add(holder.namespace)
    by_labels = compile_label_selector(term.namespace_selector).matches(space_labels)
    if other.namespace not in listed and not by_labels:
        return False
    return compile_label_selector(term.label_selector).matches(other.labels)


def of_incoming(term: PodAffinityTerm, pod: Pod, other: Pod, spaces: Spaces) -> bool:
    """A term of the incoming pod: namespaces by name, and the selector once more against no labels."""
    selector = compile_label_selector(term.namespace_selector)
    names = {name for name, labels in spaces.items() if not selector.empty and selector.matches(labels)}
    return means(term, pod, other, {}, names)


def of_running(term: PodAffinityTerm, holder: Pod, pod: Pod, spaces: Spaces) -> bool:
    return means(term, holder, pod, spaces.get(pod.namespace, {}), set())


class PlainFilter:
    """Pods per pair of label and value, and what AddPod and RemovePod do to them."""

    def __init__(self, pod: Pod, nodes: Sequence[Node], pods: Sequence[Pod], spaces: Spaces) -> None:
        self.pod, self.spaces = pod, spaces
        self.near: Pairs = Counter()
        self.away: Pairs = Counter()
        self.hostile: Pairs = Counter()
        by_name = {node.name: node for node in nodes}
        for other in pods:
            self.update(other, by_name[other.spec.node_name], 1)

    @property
    def skips(self) -> bool:
        return not (required(self.pod, False) or required(self.pod, True) or any(self.hostile.values()))

    def clone(self) -> PlainFilter:
        other = PlainFilter(self.pod, [], [], self.spaces)
        other.near, other.away, other.hostile = self.near.copy(), self.away.copy(), self.hostile.copy()
        return other

    def update(self, other: Pod, node: Node, number: int) -> None:
        terms = required(self.pod, False)
        if terms and all(of_incoming(term, self.pod, other, self.spaces) for term in terms):
            for term in terms:
                _add(self.near, term, node, number)
        for term in required(self.pod, True):
            if of_incoming(term, self.pod, other, self.spaces):
                _add(self.away, term, node, number)
        for term in required(other, True):
            if of_running(term, other, self.pod, self.spaces):
                _add(self.hostile, term, node, number)

    def verdict(self, node: Node) -> str:
        terms, pod = required(self.pod, False), self.pod
        if any(term.topology_key not in node.labels for term in terms):
            return "node(s) didn't match pod affinity rules"
        if not all(self.near[(t.topology_key, node.labels[t.topology_key])] > 0 for t in terms):
            own = all(of_incoming(term, pod, pod, self.spaces) for term in terms)
            if not own or any(self.near.values()):
                return "node(s) didn't match pod affinity rules"
        if any(self.away[pair] > 0 for pair in node.labels.items()):
            return "node(s) didn't match pod anti-affinity rules"
        if any(self.hostile[pair] > 0 for pair in node.labels.items()):
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        return ""


def _add(pairs: Pairs, term: PodAffinityTerm, node: Node, number: int) -> None:
    if term.topology_key in node.labels:
        pairs[(term.topology_key, node.labels[term.topology_key])] += number


def plain_scores(
    pod: Pod, nodes: Sequence[Node], pods: Sequence[Pod], spaces: Spaces, hard: int, ignore: bool
) -> dict[str, int] | None:
    """Normalized scores with all nodes feasible; None when PreScore skips."""
    if ignore and not (preferred(pod, False) or preferred(pod, True)):
        return None
    by_name = {node.name: node for node in nodes}
    pairs: Pairs = Counter()

    def add(term: PodAffinityTerm, weight: int, node: Node) -> None:
        _add(pairs, term, node, weight)

    for other in pods:
        node = by_name[other.spec.node_name]
        for sign in (1, -1):
            for preference in preferred(pod, sign < 0):
                if of_incoming(preference.pod_affinity_term, pod, other, spaces):
                    add(preference.pod_affinity_term, sign * preference.weight, node)
            for preference in preferred(other, sign < 0):
                if of_running(preference.pod_affinity_term, other, pod, spaces):
                    add(preference.pod_affinity_term, sign * preference.weight, node)
        for term in required(other, False):
            if hard > 0 and of_running(term, other, pod, spaces):
                add(term, hard, node)
    if not pairs:
        return None
    raw = {node.name: sum(pairs[pair] for pair in node.labels.items()) for node in nodes}
    lowest, highest = min(raw.values()), max(raw.values())
    return {
        name: int(100 * ((score - lowest) / (highest - lowest))) if highest > lowest else 0
        for name, score in raw.items()
    }
