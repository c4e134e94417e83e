"""Decide which pods a pod may preempt under quotas.

Within its min a pod takes back what other quotas have borrowed, whatever the priorities, and no quota falls further
than just below its min. Beyond its min, and without a quota, a pod preempts lower priorities of its own namespace, or
of namespaces without a quota. In a hierarchy the same holds at each level: pods below a quota that is within its min
take back what its sibling quotas have borrowed. Victims of another pod leave their node too, but their share is
promised to that pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from moorage.api.pod import Pod
from moorage.contrib.capacity_scheduling.account import Account
from moorage.contrib.capacity_scheduling.claims import claim_of
from moorage.contrib.capacity_scheduling.quotas import Amounts, QuotaLevel, add
from moorage.contrib.preempting import VictimPolicy
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView

Choose = Callable[[NodeView], Sequence[Pod]]
Borrowing = Mapping[str, Sequence[QuotaLevel]]
"""Namespace → the levels that have to give something before its pods go."""


class QuotaPolicy(VictimPolicy):
    def __init__(self, account: Account, handle: Handle) -> None:
        super().__init__()
        self._account = account
        self._handle = handle
        self._namespaces = handle.pod_index("CapacityScheduling.namespaces", lambda pod: (pod.namespace,))
        self.reach = 0
        """How far away victims are looked for: up to that level of the pod's path the quotas beside it."""

    def reaches(self, pod: Pod) -> Sequence[int]:
        """Return the levels at which there may be victims, the closest first."""
        claim = claim_of(pod, self._account, self._handle)
        above = (number for number in range(1, len(claim.path) - 1) if claim.is_within(number))
        return [0, *above]

    def victims(self, pod: Pod, node: NodeView) -> Sequence[Pod]:
        choose, _ = self._rule(pod, self.reach)
        return choose(node)

    def victims_on(self, pod: Pod, nodes: Nodes) -> Sequence[Sequence[Pod]]:
        """Return the victims on a node. Consider only nodes that run pods of namespaces over their minimum."""
        choose, namespaces = self._rule(pod, self.reach)
        rows: set[int] = set().union(*(self._namespaces.rows(name) for name in namespaces))
        mask = np.isin(nodes.table_rows, list(rows))
        found = map(choose, nodes.where(mask))
        return [next(found) if hit else () for hit in mask.tolist()]

    def awaits_victims(self, pod: Pod, node: NodeView) -> bool:
        """Return whether to wait for terminating pods; lower priorities of the own namespace count even within min."""
        lower = node.ranked.below(pod.priority)
        own = [other for other in lower if other.namespace == pod.namespace]
        choose, _ = self._rule(pod, self.reaches(pod)[-1])
        return any(other.is_terminating for other in (*own, *choose(node)))

    def _rule(self, pod: Pod, reach: int) -> tuple[Choose, Iterable[str]]:
        """Return how victims are chosen on a node, and their namespaces."""
        promised = self._account.promised(pod)
        claim = claim_of(pod, self._account, self._handle)
        if not claim.path:
            spaces = self._without_quota()
            return lambda node: lower_pods(pod, node, spaces, promised), spaces
        changes = self._account.changes(promised)
        within = {claim.path[number] for number in range(reach + 1) if claim.is_within(number)}
        borrowing = self._borrowing(claim.path, within, changes)
        own = set() if claim.path[0] in within else {pod.namespace}

        def choose(node: NodeView) -> Sequence[Pod]:
            taken = {other.uid for other in lower_pods(pod, node, own, promised)}
            taken.update(self._borrowers(node, borrowing, changes, promised))
            return [other for other in node.ranked.pods if other.uid in taken]

        return choose, own | borrowing.keys()

    def _without_quota(self) -> set[str]:
        return {str(name) for name in self._namespaces.keys()} - self._account.quotas.keys()  # noqa: SIM118

    def _borrowing(
        self, path: Sequence[QuotaLevel], within: set[QuotaLevel], changes: Mapping[QuotaLevel, Amounts]
    ) -> Borrowing:
        """Return the namespaces that borrow, beside a level of the path that is within its min."""
        found: dict[str, Sequence[QuotaLevel]] = {}
        for name in self._account.quotas:
            theirs = self._account.path(name)
            apart = [level for level in theirs if level not in path]
            beside = path[len(path) - (len(theirs) - len(apart)) - 1]
            if apart and beside in within and all(_borrows(level, changes) for level in apart):
                found[name] = apart
        return found

    def _borrowers(
        self, node: NodeView, borrowing: Borrowing, changes: Mapping[QuotaLevel, Amounts], promised: set[str]
    ) -> Iterable[str]:
        """Return the UIDs of pods of these namespaces, the least important first, until each is within its min. The
        changes include promised pods."""
        gone = {level: dict(change) for level, change in changes.items()}
        for other in reversed(node.ranked.pods):
            levels = borrowing.get(other.namespace, ())
            if levels and other.uid not in promised and all(_borrows(level, gone) for level in levels):
                yield other.uid
                for level in levels:
                    add(gone.setdefault(level, {}), self._account.requests(other), -1)


def _borrows(level: QuotaLevel, changes: Mapping[QuotaLevel, Amounts]) -> bool:
    return level.over_min(changes.get(level, {}))


def lower_pods(pod: Pod, node: NodeView, namespaces: set[str], promised: set[str]) -> list[Pod]:
    lower = {other.uid for other in node.ranked.below(pod.priority) if other.namespace in namespaces}
    return [other for other in node.ranked.pods if other.uid in lower or other.uid in promised]
