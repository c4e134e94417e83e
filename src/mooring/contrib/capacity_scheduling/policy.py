"""Whom a pod may preempt under quotas.

Within its min a pod takes back what other quotas have borrowed, whatever the priorities, and no quota falls
further than just below its min. Beyond its min, and without a quota, a pod takes lower priorities of its own
namespace, or of namespaces without a quota. Pods that make way for another one already leave their node too,
but their share is promised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from mooring.api.pod import Pod
from mooring.contrib.capacity_scheduling.claims import claim_of
from mooring.contrib.capacity_scheduling.quotas import Account, add
from mooring.contrib.preempting import VictimPolicy
from mooring.framework.handle import Handle
from mooring.framework.nodes import Nodes, NodeView

Choose = Callable[[NodeView], Sequence[Pod]]
Changes = Mapping[str, Mapping[str, int]]
"""Namespace → by how much pods that are about to go change what it uses."""


class QuotaPolicy(VictimPolicy):
    def __init__(self, account: Account, handle: Handle) -> None:
        super().__init__()
        self._account = account
        self._handle = handle
        self._namespaces = handle.pod_index("CapacityScheduling.namespaces", lambda pod: (pod.namespace,))

    def victims(self, pod: Pod, node: NodeView) -> Sequence[Pod]:
        choose, _ = self._rule(pod)
        return choose(node)

    def victims_on(self, pod: Pod, nodes: Nodes) -> Sequence[Sequence[Pod]]:
        """Only nodes with pods of namespaces that are to give something are looked at."""
        choose, namespaces = self._rule(pod)
        rows: set[int] = set().union(*(self._namespaces.rows(name) for name in namespaces))
        mask = np.isin(nodes.table_rows, list(rows))
        found = map(choose, nodes.where(mask))
        return [next(found) if hit else () for hit in mask.tolist()]

    def awaits_victims(self, pod: Pod, node: NodeView) -> bool:
        """Lower priorities of the own namespace are waited for also by a pod within its min."""
        lower = node.ranked.below(pod.priority)
        own = (other for other in lower if other.namespace == pod.namespace)
        return any(other.is_terminating for other in own) or super().awaits_victims(pod, node)

    def _rule(self, pod: Pod) -> tuple[Choose, Iterable[str]]:
        """How victims are chosen on a node, and the namespaces of which they are."""
        quotas, promised = self._account.quotas, self._account.promised(pod)
        quota = quotas.get(pod.namespace)
        if quota is not None and not quota.over_min_with(claim_of(pod, self._account, self._handle).own):
            changes = self._account.changes(promised)
            others = {name: changes.get(name, {}) for name, other in quotas.items() if other is not quota}
            borrowing = {name: change for name, change in others.items() if quotas[name].over_min(change)}
            return lambda node: self._borrowers(node, borrowing, promised), borrowing
        spaces = {pod.namespace} if quota is not None else self._without_quota()
        return lambda node: lower_pods(pod, node, spaces, promised), spaces

    def _without_quota(self) -> set[str]:
        return {str(name) for name in self._namespaces.keys()} - self._account.quotas.keys()  # noqa: SIM118

    def _borrowers(self, node: NodeView, borrowing: Changes, promised: set[str]) -> list[Pod]:
        """Pods of these namespaces, least important first until each is within its min again; given back
        with the most important first."""
        victims: list[Pod] = []
        gone = {name: dict(change) for name, change in borrowing.items()}
        for other in reversed(node.ranked.pods):
            change = gone.get(other.namespace)
            if other.uid in promised:
                victims.append(other)
            elif change is not None and self._account.quotas[other.namespace].over_min(change):
                victims.append(other)
                add(change, self._account.requests(other), -1)
        return victims[::-1]


def lower_pods(pod: Pod, node: NodeView, namespaces: set[str], promised: set[str]) -> list[Pod]:
    lower = {other.uid for other in node.ranked.below(pod.priority) if other.namespace in namespaces}
    return [other for other in node.ranked.pods if other.uid in lower or other.uid in promised]
