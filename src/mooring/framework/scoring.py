"""Score bounds and the normalisation that most plugins use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100

Scores = npt.NDArray[np.int64]


def default_normalize(scores: Scores, *, reverse: bool = False, top: int = MAX_NODE_SCORE) -> Scores:
    """Scale so that the highest becomes `top`, by integer division; `reverse` turns the order round.

    When no score is above 0 they stay as they are, or all become `top` with `reverse`.
    """
    highest = int(scores.max()) if len(scores) else 0
    if highest <= 0:
        return np.full_like(scores, top) if reverse else scores
    if highest <= _LARGEST // top and scores.min() >= 0:
        scaled: Scores = scores * top // highest
    else:
        scaled = np.array([_cut(score * top, highest) for score in scores.tolist()], dtype=np.int64)
    return top - scaled if reverse else scaled


_LARGEST = 2**63 - 1


def _cut(numerator: int, denominator: int) -> int:
    """Division as in Go: towards zero."""
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)
