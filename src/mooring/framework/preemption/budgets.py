"""Disruption budgets: which of the pods that may have to go would violate one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring.api.errors import SelectorError
from mooring.api.label_selectors import NOTHING, Selector, compile_label_selector
from mooring.api.pod import Pod
from mooring.api.policy import PodDisruptionBudget
from mooring.framework.ranking import PodTail

Matches = tuple[int, ...]
"""Indices of the budgets that apply to a pod."""


class Budgets:
    """All budgets of the cluster at one moment. Which ones match a pod is remembered with the ranking of its
    node, for as long as neither changes."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self.all: tuple[PodDisruptionBudget, ...] = tuple(budgets)
        self._by_namespace: dict[str, list[tuple[int, Selector]]] = {}
        for index, budget in enumerate(self.all):
            selector = _selector(budget)
            if not selector.nothing:
                self._by_namespace.setdefault(budget.namespace, []).append((index, selector))
        self._allowed = [budget.status.disruptions_allowed for budget in self.all]
        self._disrupted = [budget.status.disrupted_pods for budget in self.all]

    def split(self, victims: Sequence[Pod]) -> tuple[list[int], Sequence[int]]:
        """Numbers of the victims, in order: those that would violate a budget, and the others. A pod uses up
        one disruption of every budget that applies to it, unless that has already counted it."""
        if not self._by_namespace:
            return [], range(len(victims))
        left: dict[int, int] = {}
        violating: list[int] = []
        others: list[int] = []
        for number, (pod, matches) in enumerate(zip(victims, self._matches(victims), strict=True)):
            violated = matches and self._charge(pod, matches, left)
            (violating if violated else others).append(number)
        return violating, others

    def _charge(self, pod: Pod, matches: Matches, left: dict[int, int]) -> bool:
        violated = False
        for index in matches:
            if pod.metadata.name not in self._disrupted[index]:
                left[index] = left.get(index, self._allowed[index]) - 1
                violated |= left[index] < 0
        return violated

    def _matches(self, victims: Sequence[Pod]) -> Sequence[Matches]:
        if not isinstance(victims, PodTail):
            return [self._matching(pod) for pod in victims]
        known = victims.ranked.memo.get(Budgets)
        if known is None or known[0] is not self:
            found = [self._matching(pod) for pod in victims.ranked.pods]
            known = victims.ranked.memo[Budgets] = (self, found)
        matches: list[Matches] = known[1][victims.start :]
        return matches

    def _matching(self, pod: Pod) -> Matches:
        """A pod without labels has no budget, whatever the selectors say."""
        if not pod.labels:
            return ()
        here = self._by_namespace.get(pod.namespace, ())
        return tuple(index for index, selector in here if selector.matches(pod.labels))


def _selector(budget: PodDisruptionBudget) -> Selector:
    """An empty selector selects nothing here, and neither does one that cannot be read."""
    try:
        selector = compile_label_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
    return NOTHING if selector.empty else selector
