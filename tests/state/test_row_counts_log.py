"""Which rows of a count have changed since a version: reported row by row, or not at all."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from moorage.state.row_counts import RowCounts

TABLE = SimpleNamespace(width=64)

changes = st.one_of(st.tuples(st.integers(0, 63), st.just(1)), st.lists(st.integers(0, 63), min_size=40, unique=True))


@given(st.lists(changes, max_size=40))
def test_the_reported_rows_lead_to_equal_numbers(happened):
    counts, version = RowCounts(TABLE), 0
    seen: dict[int, int] = {}
    for index, change in enumerate(happened):
        if isinstance(change, tuple):
            counts.add(*change)
        else:
            counts.add_all(dict.fromkeys(change, 1))
        if index % 3 == 0:
            seen, version = follow(counts, seen, version)
    seen, version = follow(counts, seen, version)
    assert {row: number for row, number in seen.items() if number} == counts.as_dict()


def follow(counts, seen, version):
    rows = counts.changed_since(version)
    if rows is None:
        return dict(counts.as_dict()), counts.version
    return {**seen, **{row: counts.number(row) for row in rows}}, counts.version


def test_before_the_first_question_nothing_is_known():
    counts = RowCounts(TABLE)
    counts.add(3, 1)
    assert counts.changed_since(0) is None
    counts.add(4, 1)
    assert counts.changed_since(1) == [4]
    assert counts.changed_since(2) == []


def test_a_long_log_is_cut():
    counts = RowCounts(TABLE)
    counts.changed_since(0)
    for _ in range(200):
        counts.add(5, 1)
    assert counts.changed_since(0) is None
    assert counts.changed_since(190) == [5] * 10
