"""Disruption budgets: which of the pods that may have to go would violate one."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import numpy as np

from moorage.api.errors import SelectorError
from moorage.api.pod import Pod
from moorage.api.selectors import IN, NOTHING, Selector, compile_label_selector
from moorage.api.workloads import PodDisruptionBudget
from moorage.framework.nodes import BoolArray
from moorage.framework.ranking import LowerPods, RankedPods, VictimColumns

Label = tuple[str, str, str]
"""Namespace, key and value."""
Charges = tuple[tuple[int, int], ...]
"""Pods of a ranking, by index, and a budget that each would use up a disruption of."""


class Budgets:
    """All budgets of the cluster at one moment. Which ones apply to a pod is remembered with the ranking of
    its node, for as long as neither changes."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self.all: tuple[PodDisruptionBudget, ...] = tuple(budgets)
        self._allowed = [budget.status.disruptions_allowed for budget in self.all]
        self._filed: dict[Label, list[tuple[int, Selector]]] = {}
        """Budgets by namespace and a label that they demand; under no label those that demand none."""
        for index, budget in enumerate(self.all):
            selector = _selector(budget)
            for label in () if selector.nothing else _labels(budget.namespace, selector):
                self._filed.setdefault(label, []).append((index, selector))

    def spent(self, victims: Iterable[Pod]) -> tuple[Budgets, list[Pod]]:
        """What the budgets allow once these pods are gone as well, and which of them violate one. The very
        same object where no budget applies to any of them."""
        charges = [(pod, charged) for pod in victims if (charged := [*self._charged(pod)])]
        if not charges:
            return self, []
        later = copy(self)
        later._allowed = [*self._allowed]
        violating = []
        for pod, charged in charges:
            for index in charged:
                later._allowed[index] -= 1
            if any(later._allowed[index] < 0 for index in charged):
                violating.append(pod)
        return later, violating

    def violating(self, victims: VictimColumns) -> BoolArray | None:
        """Which victims would violate a budget, each node by itself; None when none would. Victims use up
        disruptions in their order, one of every budget that applies to them."""
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
        """The numbers of those pods."""
        charges = self._charges(pods.ranked)
        if not charges:
            return ()
        allowed: dict[int, int] = {}
        found: dict[int, None] = {}
        for index, budget in charges:
            if index >= pods.start:
                allowed[budget] = remaining = allowed.get(budget, self._allowed[budget]) - 1
                if remaining < 0:
                    found[index - pods.start] = None
        return found

    def _charges(self, ranked: RankedPods) -> Charges:
        known = ranked.memo.get(Budgets)
        if known is None or known[0] is not self.all:
            found = tuple((index, b) for index, pod in enumerate(ranked.pods) for b in self._charged(pod))
            known = ranked.memo[Budgets] = (self.all, found)
        charges: Charges = known[1]
        return charges

    def _charged(self, pod: Pod) -> Iterable[int]:
        """Budgets that the pod's disruption uses up. A pod without labels has none, whatever the selectors
        say; one that a budget knows to be disrupted has been counted there."""
        if not pod.labels:
            return ()
        namespace, labels = pod.namespace, pod.labels
        filed = self._filed.get((namespace, "", ""), ())
        for key, value in labels.items():
            filed = (*filed, *self._filed.get((namespace, key, value), ()))
        return [
            index
            for index, selector in filed
            if selector.matches(labels) and pod.name not in self.all[index].status.disrupted_pods
        ]


def _labels(namespace: str, selector: Selector) -> list[Label]:
    """Where to file a budget: every pod that it applies to has one of these labels."""
    demand = next((r for r in selector.requirements if r.operator == IN), None)
    return [(namespace, demand.key, value) for value in demand.values] if demand else [(namespace, "", "")]


def _selector(budget: PodDisruptionBudget) -> Selector:
    """An empty selector selects nothing here, and neither does one that cannot be read."""
    try:
        selector = compile_label_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
    return NOTHING if selector.empty else selector
