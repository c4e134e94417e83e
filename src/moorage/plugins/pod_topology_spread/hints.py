"""Queueing hints of PodTopologySpread (KEP-4247), as in pkg/scheduler/framework/plugins/podtopologyspread/plugin.go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.events import NODE, POD, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.plugins.pod_topology_spread.constraints import Constraint

Constraints = Callable[[Pod], Sequence[Constraint]]
"""The hard constraints of a pod."""

POD_EVENT = ClusterEvent(
    POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
)
NODE_EVENT = ClusterEvent(
    NODE, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
)


class Hints:
    def __init__(self, constraints: Constraints) -> None:
        self._constraints = constraints

    def registrations(self) -> Sequence[Registration]:
        return [Registration(POD_EVENT, self.after_pod_change), Registration(NODE_EVENT, self.after_node_change)]

    def after_pod_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """Queue if a counted pod was added or deleted, or a label change makes a pod start or stop counting."""
        pods = [seen for seen in (old, new) if isinstance(seen, Pod)]
        if not all(_involved(seen, pod) for seen in pods):
            return QueueingHint.SKIP
        constraints = self._constraints(pod)
        if len(pods) == 2:
            return _hint(_changes(pod, pods[0], pods[1], constraints))
        return _hint(any(c.selector.matches(seen.labels) for c in constraints for seen in pods))

    def after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """Queue if a node with all topology keys was added, deleted, or changed its domain or its taints."""
        constraints = self._constraints(pod)
        before = isinstance(old, Node) and _has_all(old.labels, constraints)
        after = isinstance(new, Node) and _has_all(new.labels, constraints)
        if isinstance(old, Node) and isinstance(new, Node):
            moved = any(old.labels.get(c.topology_key) != new.labels.get(c.topology_key) for c in constraints)
            return _hint(before != after or (after and (moved or old.taints != new.taints)))
        return _hint(before or after)


def _involved(seen: Pod, pod: Pod) -> bool:
    """Return whether a pod matters for spreading `pod`: it is the pod itself, or an assigned pod of its namespace."""
    if seen.uid == pod.uid:
        return True
    placed = bool(seen.spec.node_name or seen.nominated_node_name)
    return placed and seen.namespace == pod.namespace


def _changes(pod: Pod, old: Pod, new: Pod, constraints: Sequence[Constraint]) -> bool:
    tolerations = old.spec.tolerations != new.spec.tolerations
    if new.uid == pod.uid and tolerations and any(c.honors_taints for c in constraints):
        return True
    return any(c.selector.matches(old.labels) != c.selector.matches(new.labels) for c in constraints)


def _has_all(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    return all(c.topology_key in labels for c in constraints)


def _hint(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
