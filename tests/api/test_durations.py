"""Durations are Go's, to the nanosecond and to the letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api import durations


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        pytest.param("0", 0, id="zero needs no unit"),
        pytest.param("0s", 0, id="zero seconds"),
        pytest.param("5s", 5_000_000_000, id="seconds"),
        pytest.param("1m30s", 90_000_000_000, id="two units"),
        pytest.param("100ms", 100_000_000, id="milliseconds"),
        pytest.param("1h15m30.918273645s", 4_530_918_273_645, id="all units with a fraction"),
        pytest.param("-1.5h", -5_400_000_000_000, id="negative"),
        pytest.param("+5s", 5_000_000_000, id="explicit plus"),
        pytest.param("5.s", 5_000_000_000, id="point without digits behind"),
        pytest.param(".5s", 500_000_000, id="point without digits before"),
        pytest.param("10us", 10_000, id="micro as u"),
        pytest.param("10\u00b5s", 10_000, id="micro sign"),
        pytest.param("10\u03bcs", 10_000, id="Greek mu"),
        pytest.param("0.0000000009s", 0, id="below a nanosecond is cut off"),
        pytest.param("9223372036854775807ns", 2**63 - 1, id="largest"),
        pytest.param("-9223372036854775808ns", -(2**63), id="smallest"),
    ],
)
def test_parses_as_go_does(text, nanoseconds):
    assert durations.parse_nanoseconds(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", 'time: invalid duration ""', id="empty"),
        pytest.param("-", 'time: invalid duration "-"', id="sign only"),
        pytest.param("3", 'time: missing unit in duration "3"', id="no unit"),
        pytest.param("3d", 'time: unknown unit "d" in duration "3d"', id="days"),
        pytest.param(".s", 'time: invalid duration ".s"', id="no digits"),
        pytest.param("s", 'time: invalid duration "s"', id="unit only"),
        pytest.param("1 s", 'time: unknown unit " s" in duration "1 s"', id="space"),
        pytest.param(
            "9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"', id="too long"
        ),
    ],
)
def test_refuses_with_go_s_words(text, message):
    with pytest.raises(durations.DurationError) as caught:
        durations.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0, "0s", id="zero"),
        pytest.param(15, "15s", id="seconds"),
        pytest.param(90, "1m30s", id="minutes"),
        pytest.param(600, "10m0s", id="zero seconds are written"),
        pytest.param(3600, "1h0m0s", id="zero minutes are written"),
        pytest.param(1.5, "1.5s", id="fraction"),
        pytest.param(0.1, "100ms", id="milliseconds"),
        pytest.param(1.5e-6, "1.5\u00b5s", id="microseconds"),
        pytest.param(2e-9, "2ns", id="nanoseconds"),
        pytest.param(-90, "-1m30s", id="negative"),
    ],
)
def test_formats_as_go_does(seconds, text):
    assert durations.format(seconds) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_formatting_and_parsing_are_inverse(nanoseconds):
    assert durations.parse_nanoseconds(durations.format_nanoseconds(nanoseconds)) == nanoseconds


@given(st.integers(-(2**63), 2**63 - 1))
def test_seconds_survive_a_round_trip(nanoseconds):
    seconds = nanoseconds / durations.SECOND
    if abs(seconds) < 2**33:  # the last second of the range rounds beyond it
        assert durations.parse(durations.format(seconds)) == seconds
