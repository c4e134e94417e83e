"""The beta distribution against what is known of it in closed form."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.contrib.trimaran.low_risk_over_commitment import distribution, distributions

SHARES = st.integers(0, 1000).map(lambda number: number / 1000)
SHAPES = st.floats(0.05, 200)


def at(x, a, b):
    """One, computed in both ways."""
    alone = distribution(x, a, b)
    arrays = (np.array([each], dtype=float) for each in (x, a, b))
    assert distributions(*arrays)[0] == pytest.approx(alone, abs=1e-12)
    return alone


@given(SHARES, SHAPES)
def test_with_one_shape_of_one_it_is_a_power(x, a):
    assert at(x, a, 1) == pytest.approx(x**a, abs=1e-9)
    assert at(x, 1, a) == pytest.approx(1 - (1 - x) ** a, abs=1e-9)


@given(SHARES, st.integers(1, 30), st.integers(1, 30))
def test_with_whole_shapes_it_is_a_binomial_sum(x, a, b):
    n = a + b - 1
    expected = sum(comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert at(x, a, b) == pytest.approx(expected, abs=1e-9)


@given(SHARES, SHAPES, SHAPES)
def test_it_is_a_probability_and_symmetric(x, a, b):
    assert 0 <= at(x, a, b) <= 1
    assert at(x, a, b) == pytest.approx(1 - at(1 - x, b, a), abs=1e-9)


def test_the_ends_are_exact():
    assert [at(0, 2, 3), at(1, 2, 3)] == [0, 1]


def test_many_are_computed_at_once():
    x, a, b = np.array([0.1, 0.5, 0.9]), np.array([0.5, 20.0, 300.0]), np.array([0.5, 20.0, 3.0])
    assert distributions(x, a, b).tolist() == pytest.approx([at(*each) for each in zip(x, a, b, strict=True)])
