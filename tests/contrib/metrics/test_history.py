"""Samples of several minutes, and functions over a window of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.contrib.metrics.history import AVERAGE, DEVIATION, PERCENTILE, UsageHistory, Window

NAN = float("nan")


def history(*ticks, keep=1000.0):
    """Ticks of a node `a` and a node `b`, ten seconds apart."""
    made = UsageHistory()
    for number, (a, b) in enumerate(ticks):
        made.add(10.0 * number, ["a", "b"], {"cpu": np.array([a, b], dtype=float)}, keep)
    return made


def over(function, seconds=1000.0, percentile=95.0):
    return Window(function=function, seconds=seconds, percentile=percentile)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window(), [30, 4]),
        (over(AVERAGE), [20, 6]),
        (over(AVERAGE, 10.0), [25, 6]),
        (over(PERCENTILE, percentile=50.0), [20, 4]),
        (over(PERCENTILE), [30, 8]),
        (over(DEVIATION), [np.sqrt(200 / 3), 2]),
    ],
    ids=["latest", "average", "average of the last two", "median", "percentile", "deviation"],
)
def test_functions_over_a_window_leave_out_what_is_not_known(window, expected):
    samples = history((10, NAN), (20, 8), (30, 4))
    np.testing.assert_allclose(samples.value("cpu", window), expected)


def test_the_latest_value_is_that_of_the_newest_sample_even_where_it_is_not_known():
    np.testing.assert_array_equal(history((10, 10), (NAN, 20)).value("cpu"), [NAN, 20])


def test_a_measure_that_no_sample_has_is_not_known():
    assert np.isnan(history((1, 1)).value("power", over(AVERAGE))).all()
    assert not history((1, 1)).has("power")
    assert len(UsageHistory().value("cpu", over(AVERAGE))) == 0


def test_old_samples_are_forgotten():
    assert history((100, 100), (1, 1), (3, 3), keep=10.0).value("cpu", over(AVERAGE)).tolist() == [2, 2]


def test_values_follow_their_nodes_when_others_come_and_go():
    samples = history((10, 20))
    samples.add(10.0, ["c", "b"], {"cpu": np.array([1.0, 40.0])}, 1000.0)
    assert samples.value("cpu", over(AVERAGE)).tolist() == [1, 30]


def test_the_value_at_a_time_is_the_newest_that_is_not_later():
    samples = history((1, 1), (2, 2), (3, 3))
    assert samples.as_of("cpu", np.array([15.0, 20.0])).tolist() == [2, 3]
    assert samples.as_of("cpu", np.array([-5.0, NAN])).tolist() == [1, 1]
    assert history((NAN, 1), (2, NAN)).as_of("cpu", np.array([5.0, 15.0])).tolist() == [2, 1]


@given(
    st.lists(st.lists(st.floats(0, 100) | st.none(), min_size=3, max_size=3), min_size=1, max_size=8), st.floats(1, 100)
)
def test_functions_agree_with_plain_arithmetic(rows, percent):
    made = UsageHistory()
    for number, row in enumerate(rows):
        values = np.array([NAN if value is None else value for value in row])
        made.add(float(number), ["a", "b", "c"], {"cpu": values}, 1000.0)
    average, highest = (made.value("cpu", over(AVERAGE)), made.value("cpu", over(PERCENTILE, percentile=percent)))
    for index in range(3):
        known = sorted(row[index] for row in rows if row[index] is not None)
        if not known:
            assert np.isnan(average[index])
            assert np.isnan(highest[index])
        else:
            assert average[index] == pytest.approx(sum(known) / len(known))
            assert sum(value <= highest[index] for value in known) >= percent / 100 * len(known)
            assert sum(value < highest[index] for value in known) < percent / 100 * len(known)
