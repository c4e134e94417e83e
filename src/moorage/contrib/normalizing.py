"""Scale scores of any range to 0-100: the worst node gets 0, the best 100."""

from __future__ import annotations

import numpy as np

from moorage.framework.nodes import IntArray
from moorage.framework.status import MAX_NODE_SCORE

_LARGEST = (2**63 - 1) // MAX_NODE_SCORE


def min_max(scores: IntArray, top: int = MAX_NODE_SCORE) -> IntArray:
    """Scale and round down; all get 0 if they are equal."""
    if not len(scores):
        return scores
    low, high = int(scores.min()), int(scores.max())
    if low == high:
        return np.zeros_like(scores)
    if high - low <= _LARGEST:
        scaled: IntArray = (scores - low) * top // (high - low)
        return scaled
    return np.array([(score - low) * top // (high - low) for score in scores.tolist()], dtype=np.int64)
