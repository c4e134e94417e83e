"""Score bounds and the normalisation that most plugins use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100

Scores = npt.NDArray[np.int64]


def default_normalize(scores: Scores, *, reverse: bool = False, top: int = MAX_NODE_SCORE) -> Scores:
    """Scale so that the highest becomes `top`, by integer division; `reverse` turns the order round.

    When all scores are 0 they stay 0, or become `top` with `reverse`.
    """
    highest = int(scores.max()) if len(scores) else 0
    if highest == 0:
        return np.full_like(scores, top) if reverse else scores
    scaled: Scores = scores * top // highest
    return top - scaled if reverse else scaled
