"""One node out of several candidates, by what its victims cost.

The first of these that separates the candidates decides: fewest violated budgets, least important top victim,
smallest sum of priorities, fewest victims, latest start of the earliest top victim; then the first one.
"""

from __future__ import annotations

import numpy as np

from mooring.framework.preemption.candidates import Candidate, Candidates
from mooring.framework.ranking import start_of


def best_candidate(candidates: Candidates) -> Candidate:
    """The candidate that costs least; there must be one."""
    left = np.arange(len(candidates))
    for cost in candidates.costs.T:
        costs = cost[left]
        left = left[costs == costs.min()]
    finalists = [candidates[index] for index in left.tolist()]
    return finalists[0] if len(finalists) == 1 else max(finalists, key=earliest_start)


def earliest_start(candidate: Candidate) -> float:
    """When the first of the top victims was started: the later, the less work is lost."""
    top = max(pod.priority for pod in candidate.victims)
    return min(start_of(pod) for pod in candidate.victims if pod.priority == top)
