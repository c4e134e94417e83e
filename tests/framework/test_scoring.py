"""default_normalize against a plain model of Go's int64 arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework import default_normalize


def go_normalize(scores: list[int], top: int, reverse: bool) -> list[int]:
    """helper.DefaultNormalizeScore, statement by statement; Go's `/` cuts towards zero."""
    highest = 0
    for score in scores:
        if score > highest:
            highest = score
    if highest == 0:
        return [top] * len(scores) if reverse else list(scores)
    normalized = []
    for score in scores:
        product = top * score
        scaled = abs(product) // highest * (1 if product >= 0 else -1)
        normalized.append(top - scaled if reverse else scaled)
    return normalized


@given(st.lists(st.integers(-(2**40), 2**40), max_size=20), st.booleans(), st.sampled_from((100, 10, 1)))
def test_it_counts_as_go_does(scores, reverse, top):
    array = np.array(scores, dtype=np.int64)
    assert default_normalize(array, reverse=reverse, top=top).tolist() == go_normalize(scores, top, reverse)
    assert array.tolist() == scores, "what is handed in stays as it was"


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=8), st.booleans())
def test_it_never_wraps_round(scores, reverse):
    """Where Go would overflow the exact value is given: always within 0 and 100."""
    result = default_normalize(np.array(scores, dtype=np.int64), reverse=reverse).tolist()
    assert result == go_normalize(scores, 100, reverse)


CASES = [
    pytest.param([0, 0], False, [0, 0], id="all zero stay"),
    pytest.param([0, 0], True, [100, 100], id="all zero reversed are best"),
    pytest.param([1, 2, 3], False, [33, 66, 100], id="integer division"),
    pytest.param([1, 2, 3], True, [67, 34, 0], id="reversed after the division"),
    pytest.param([-5, -10], False, [-5, -10], id="negative ones only stay as they are"),
    pytest.param([-1, 300], False, [0, 100], id="cut towards zero, not down"),
    pytest.param([], True, [], id="nobody"),
]


@pytest.mark.parametrize(("scores", "reverse", "expected"), CASES)
def test_examples(scores, reverse, expected):
    assert default_normalize(np.array(scores, dtype=np.int64), reverse=reverse).tolist() == expected
