"""PodDisruptionBudgets: which potential victims would violate one. Follows FilterVictimsWithPDBViolation in
pkg/scheduler/framework/preemption/util.go. Up to 1.36 every budget that applies to a victim was charged; now the first
one without a disruption left ends the check (`Behaviour.overdrawn_budget_ends_check`)."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import numpy as np

from moorage.api.errors import SelectorError
from moorage.api.pod import Pod
from moorage.api.selectors import IN, NOTHING, Selector, compile_label_selector
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.api.workloads import PodDisruptionBudget
from moorage.framework.nodes import BoolArray
from moorage.state.ranking import LowerPods, PodRanking, VictimColumns

Label = tuple[str, str, str]
"""Namespace, key and value."""
Charges = tuple[tuple[int, int], ...]
"""Pairs of a pod, by its index in the ranking, and a budget of which it would use up a disruption."""


class ClusterBudgets:
    """The budgets of the cluster at one moment. Which budgets apply to a pod is cached with the ranking of
    its node until either changes."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget], behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> None:
        self._stops = behaviour.overdrawn_budget_ends_check
        self.all: tuple[PodDisruptionBudget, ...] = tuple(budgets)
        self._allowed = [budget.status.disruptions_allowed for budget in self.all]
        self._filed: dict[Label, list[tuple[int, Selector]]] = {}
        """The budgets by namespace and one label that they require; those that require none have no label."""
        for index, budget in enumerate(self.all):
            selector = _selector(budget)
            for label in () if selector.nothing else _labels(budget.namespace, selector):
                self._filed.setdefault(label, []).append((index, selector))

    def spent(self, victims: Iterable[Pod]) -> tuple[ClusterBudgets, list[Pod]]:
        """See `framework.preemption.Budgets`."""
        charges = [(pod, charged) for pod in victims if (charged := [*self._charged(pod)])]
        if not charges:
            return self, []
        later = copy(self)
        later._allowed = [*self._allowed]
        violating = []
        for pod, charged in charges:
            overdrawn = False
            for index in charged:
                later._allowed[index] -= 1
                overdrawn |= later._allowed[index] < 0
                if overdrawn and self._stops:
                    break
            if overdrawn:
                violating.append(pod)
        return later, violating

    def violating(self, victims: VictimColumns) -> BoolArray | None:
        """Return which victims would violate a budget, each node by itself; None if none would. Victims use
        up disruptions in their order."""
        if not self._filed:
            return None
        hit = [
            offset + number
            for offset, pods in zip(victims.offsets.tolist(), victims.by_node, strict=True)
            for number in self._violating(pods)
        ]
        if not hit:
            return None
        mask = np.zeros(victims.size, dtype=np.bool_)
        mask[hit] = True
        return mask

    def _violating(self, pods: LowerPods) -> Iterable[int]:
        """Return the indexes of the pods that violate a budget."""
        charges = self._charges(pods.ranked)
        if not charges:
            return ()
        allowed: dict[int, int] = {}
        found: dict[int, None] = {}
        for index, budget in charges:
            if index >= pods.start and not (self._stops and index - pods.start in found):
                allowed[budget] = remaining = allowed.get(budget, self._allowed[budget]) - 1
                if remaining < 0:
                    found[index - pods.start] = None
        return found

    def _charges(self, ranked: PodRanking) -> Charges:
        known = ranked.memo.get(ClusterBudgets)
        if known is None or known[0] is not self.all:
            found = tuple((index, b) for index, pod in enumerate(ranked.pods) for b in self._charged(pod))
            known = ranked.memo[ClusterBudgets] = (self.all, found)
        charges: Charges = known[1]
        return charges

    def _charged(self, pod: Pod) -> Iterable[int]:
        """Return the budgets that the pod's disruption uses up, in the order of the list. A pod without labels has
        none, whatever the selectors say. A budget that lists the pod as disrupted has counted it already."""
        if not pod.labels:
            return ()
        namespace, labels = pod.namespace, pod.labels
        filed = self._filed.get((namespace, "", ""), ())
        for key, value in labels.items():
            filed = (*filed, *self._filed.get((namespace, key, value), ()))
        return sorted(
            index
            for index, selector in filed
            if selector.matches(labels) and pod.name not in self.all[index].status.disrupted_pods
        )


def _labels(namespace: str, selector: Selector) -> list[Label]:
    """Return the labels under which to file a budget: every pod that it applies to has one of them."""
    demand = next((r for r in selector.requirements if r.operator == IN), None)
    return [(namespace, demand.key, value) for value in demand.values] if demand else [(namespace, "", "")]


def _selector(budget: PodDisruptionBudget) -> Selector:
    """Compile the selector. An empty selector selects nothing here, and so does an invalid one."""
    try:
        selector = compile_label_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
    return NOTHING if selector.empty else selector
