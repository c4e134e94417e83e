"""Timestamps: RFC 3339 in, RFC 3339 out. Durations are Go's, to the nanosecond and to the letter."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import times
from moorage.api.times import format_time, parse_time


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0.0, id="epoch"),
        pytest.param("2026-09-01T12:00:00Z", 1788264000.0, id="whole seconds"),
        pytest.param("2026-09-01T14:00:00+02:00", 1788264000.0, id="with offset"),
        pytest.param("2026-09-01T12:00:00.250000Z", 1788264000.25, id="microseconds"),
        pytest.param("2026-09-01T12:00:00.250000000Z", 1788264000.25, id="nanoseconds"),
        pytest.param(None, None, id="absent"),
        pytest.param("", None, id="empty"),
        pytest.param("2026-09-01", None, id="only a date"),
        pytest.param("2026-13-01T00:00:00Z", None, id="no such month"),
        pytest.param("2026-09-01T12:00:00", None, id="without zone"),
        pytest.param("2026-09-01T12:00:00+99:00", None, id="no such zone"),
    ],
)
def test_parse_time(text, epoch):
    assert epoch == parse_time(text)


def test_format_time_with_and_without_microseconds():
    assert format_time(1788264000.25) == "2026-09-01T12:00:00Z"
    assert format_time(1788264000.25, micro=True) == "2026-09-01T12:00:00.250000Z"


@given(st.integers(0, 4_000_000_000 * 1_000_000))
def test_microseconds_survive_the_round_trip(micros):
    text = format_time(micros / 1_000_000, micro=True)
    parsed = parse_time(text)
    assert parsed is not None
    assert micros == round(parsed * 1_000_000)


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
    assert times.parse_nanoseconds(text) == nanoseconds


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
        pytest.param("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"', id="too long"),
    ],
)
def test_refuses_with_go_s_words(text, message):
    with pytest.raises(times.DurationError) as caught:
        times.parse_duration(text)
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
    assert times.format_duration(seconds) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_formatting_and_parsing_are_inverse(nanoseconds):
    assert times.parse_nanoseconds(times.format_nanoseconds(nanoseconds)) == nanoseconds


@given(st.integers(-(2**63), 2**63 - 1))
def test_seconds_survive_a_round_trip(nanoseconds):
    seconds = nanoseconds / times.SECOND
    if abs(seconds) < 2**33:  # the last second of the range rounds beyond it
        assert times.parse_duration(times.format_duration(seconds)) == seconds


@pytest.mark.parametrize(("failures", "pause"), [(1, 0.5), (2, 1.0), (5, 8.0), (6, 10.0), (10**6, 10.0)])
def test_pauses_double_with_each_failure_up_to_a_limit(failures: int, pause: float):
    assert times.backoff(failures, 0.5, 10.0) == pause
