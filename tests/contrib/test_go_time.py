"""Times in Go's layouts."""

import pytest

from moorage.contrib.go_time import RFC3339, parse, unreadable

NOON = 1768478400.0  # 2026-01-15T12:00:00Z


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (RFC3339, "2026-01-15T12:00:00Z"),
        (RFC3339, "2026-01-15T13:00:00+01:00"),
        ("2006-01-02 15:04:05", "2026-01-15 12:00:00"),
        ("2006-01-02T15:04:05.000Z0700", "2026-01-15T12:00:00.000+0000"),
        ("Mon, 02 Jan 2006 15:04:05 -0700", "Thu, 15 Jan 2026 13:00:00 +0100"),
        ("January 2, 2006 3:04PM", "January 15, 2026 12:00PM"),
        ("02.01.06 15h04", "15.01.26 12h00"),
    ],
)
def test_one_moment_in_many_layouts(layout, text):
    assert parse(layout, text) == NOON


def test_a_text_of_another_layout_is_no_time():
    assert parse("2006-01-02", "15.01.2026") is None
    assert parse(RFC3339, "2026-01-15") is None


@pytest.mark.parametrize("layout", ["2006-01-02 MST", "15:04:05", "yyyy-mm-dd", ""])
def test_layouts_that_cannot_be_read_are_named(layout):
    assert unreadable(layout)


@pytest.mark.parametrize("layout", [RFC3339, "2006-01-02 15:04:05", "Jan _2 2006"])
def test_layouts_that_can_be_read(layout):
    assert unreadable(layout) == ""
