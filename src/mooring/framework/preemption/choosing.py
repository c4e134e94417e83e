"""One node out of several candidates, by what its victims cost.

The first of these that separates the candidates decides: fewest violated budgets, least important top victim,
smallest sum of priorities, fewest victims, latest start of the earliest top victim; then the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.framework.preemption.candidates import Candidate
from mooring.framework.ranking import start_of

_OFFSET = 2**31
"""Makes every priority positive, so that more victims of negative priority are never the better choice."""


def best_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate that costs least; there must be one."""
    for cost in _COSTS:
        if len(candidates) == 1:
            break
        costs = [cost(candidate) for candidate in candidates]
        least = min(costs)
        candidates = [found for found, its in zip(candidates, costs, strict=True) if its == least]
    return candidates[0]


def violations(candidate: Candidate) -> int:
    return candidate.pdb_violations


def top_priority(candidate: Candidate) -> int:
    """The victims are in order of importance, unless an extender has changed them."""
    return max(pod.spec.priority or 0 for pod in candidate.victims)


def priority_sum(candidate: Candidate) -> int:
    return sum((pod.spec.priority or 0) + _OFFSET for pod in candidate.victims)


def number_of_victims(candidate: Candidate) -> int:
    return len(candidate.victims)


def earliest_start(candidate: Candidate) -> float:
    """Negative, since a later start means less lost work."""
    top = top_priority(candidate)
    return -min(start_of(pod) for pod in candidate.victims if (pod.spec.priority or 0) == top)


_COSTS: tuple[Callable[[Candidate], float], ...] = (
    violations,
    top_priority,
    priority_sum,
    number_of_victims,
    earliest_start,
)
