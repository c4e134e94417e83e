"""One node out of several candidates, by what its victims cost.

The first of these that separates the candidates decides: fewest violated budgets, least important top victim,
smallest sum of priorities, fewest victims, latest start of the earliest top victim; then the first one.
"""

from __future__ import annotations

import numpy as np

from mooring.framework.preemption.candidates import Candidate, Candidates


def best_candidate(candidates: Candidates) -> Candidate:
    """The candidate that costs least; there must be one."""
    left = np.arange(len(candidates))
    for cost in candidates.costs.T:
        costs = cost[left]
        left = left[costs == costs.min()]
    return candidates[int(left[np.argmax(candidates.starts(left))] if len(left) > 1 else left[0])]
