"""PodTopologySpread as plain loops over nodes and pods: slow, obvious, and written apart from the plugin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from moorage.api.node import Node
from moorage.api.node_selectors import required_node_affinity
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.selectors import Selector, compile_label_selector, selector_from_labels
from moorage.api.taints import find_untolerated

HOSTNAME = "kubernetes.io/hostname"


class Plain:
    """One constraint with its selector."""

    def __init__(self, constraint: TopologySpreadConstraint, selector: Selector) -> None:
        self.c = constraint
        self.key = constraint.topology_key
        self.selector = selector

    def includes(self, pod: Pod, node: Node) -> bool:
        if (self.c.node_affinity_policy or "Honor") == "Honor":
            required = required_node_affinity(pod)
            if not required.matches(node.labels, node.name):
                return False
        if (self.c.node_taints_policy or "Ignore") == "Honor":
            return find_untolerated(node.taints, pod.spec.tolerations) is None
        return True

    def count(self, pod: Pod, node: Node, pods: Sequence[Pod]) -> int:
        if self.selector.empty:
            return 0
        return sum(
            other.spec.node_name == node.name
            and other.namespace == pod.namespace
            and not other.is_terminating
            and self.selector.matches(other.labels)
            for other in pods
        )


def plain_constraints(pod: Pod, action: str, default: Sequence[Any], selector: Selector) -> list[Plain]:
    own = pod.spec.topology_spread_constraints
    if own:
        found = []
        for constraint in own:
            if constraint.when_unsatisfiable != action:
                continue
            wanted = compile_label_selector(constraint.label_selector)
            merged = {k: pod.labels[k] for k in constraint.match_label_keys if k in pod.labels}
            if merged and not wanted.nothing:
                wanted = wanted.plus(*_equal(merged))
            found.append(Plain(constraint, wanted))
        return found
    if selector.empty:
        return []
    return [Plain(c, selector) for c in default if c.when_unsatisfiable == action]


def _equal(labels: dict[str, str]) -> tuple[Any, ...]:
    return selector_from_labels(labels).requirements


class PlainFilter:
    """Counts per constraint and label value, and what AddPod and RemovePod do to them."""

    def __init__(self, constraints: list[Plain], pod: Pod, nodes: list[Node], pods: list[Pod]) -> None:
        self.constraints, self.pod = constraints, pod
        self.counts: list[dict[str, int]] = [{} for _ in constraints]
        for node in nodes:
            if all(c.key in node.labels for c in constraints):
                for c, counts in zip(constraints, self.counts, strict=True):
                    if c.includes(pod, node):
                        value = node.labels[c.key]
                        counts[value] = counts.get(value, 0) + c.count(pod, node, pods)

    def clone(self) -> PlainFilter:
        other = PlainFilter(self.constraints, self.pod, [], [])
        other.counts = [dict(counts) for counts in self.counts]
        return other

    def update(self, other: Pod, node: Node, number: int) -> None:
        if other.namespace != self.pod.namespace or not all(c.key in node.labels for c in self.constraints):
            return
        for c, counts in zip(self.constraints, self.counts, strict=True):
            if c.selector.matches(other.labels) and c.includes(self.pod, node):
                counts[node.labels[c.key]] += number

    def verdict(self, node: Node) -> str:
        for c, counts in zip(self.constraints, self.counts, strict=True):
            if c.key not in node.labels:
                return "node(s) didn't match pod topology spread constraints (missing required label)"
            minimum = min(counts.values(), default=2**31 - 1)
            if len(counts) < (1 if c.c.min_domains is None else c.c.min_domains):
                minimum = 0
            here = counts.get(node.labels[c.key], 0) + int(c.selector.matches(self.pod.labels))
            if here - minimum > c.c.max_skew:
                return "node(s) didn't match pod topology spread constraints"
        return ""


def plain_scores(
    constraints: list[Plain], pod: Pod, nodes: list[Node], pods: list[Pod], require_all: bool
) -> dict[str, int]:
    """All nodes are feasible; scores are normalized."""
    ignored = {n.name for n in nodes if require_all and not all(c.key in n.labels for c in constraints)}
    kept = [node for node in nodes if node.name not in ignored]
    raw: dict[str, int] = {}
    for node in kept:
        score = 0.0
        for c in constraints:
            if c.key not in node.labels:
                continue
            if c.key == HOSTNAME:
                size, count = len(kept), c.count(pod, node, pods)
            else:
                size = len({other.labels.get(c.key, "") for other in kept})
                count = sum(
                    c.count(pod, other, pods)
                    for other in kept
                    if c.includes(pod, other) and other.labels.get(c.key, "") == node.labels[c.key]
                )
            score += count * math.log(size + 2) + (c.c.max_skew - 1)
        raw[node.name] = math.floor(score + 0.5)
    highest, lowest = max(raw.values(), default=0), min(raw.values(), default=0)
    scores = {name: 100 if highest == 0 else 100 * (highest + lowest - s) // highest for name, s in raw.items()}
    return scores | dict.fromkeys(ignored, 0)
