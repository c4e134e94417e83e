"""Timestamps: RFC 3339 in, RFC 3339 out."""

# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.times import format_time, parse_time


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
