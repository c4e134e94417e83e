"""Score bounds and the normalisation that most plugins use."""

from __future__ import annotations

import enum

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


class Normalization(enum.Enum):
    """The default normalisation as a declaration: a plugin that needs nothing else leaves it to the runtime,
    which can do it on all rows at once and skip it where all scores are equal."""

    DEFAULT = False
    REVERSED = True

    def apply(self, scores: Scores | int, feasible: npt.NDArray[np.bool_]) -> Scores | int:
        """Normalised scores; only feasible rows count for the maximum. Scores are not negative."""
        highest = scores if isinstance(scores, int) else int((scores * feasible).max(initial=0))
        if highest <= 0:
            return MAX_NODE_SCORE if self.value else 0
        scaled = scores * MAX_NODE_SCORE // highest
        return MAX_NODE_SCORE - scaled if self.value else scaled
