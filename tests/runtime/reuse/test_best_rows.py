"""The best rows are what a look at all rows finds, whatever has changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.runtime.reuse import best_rows
from moorage.runtime.reuse.best_rows import BestRows
from moorage.runtime.score_board import NEVER

totals = st.one_of(st.integers(0, 5), st.integers(0, 900), st.just(NEVER))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few rows at a time, so that the heap runs empty and overflows."""
    monkeypatch.setattr(best_rows, "_ROWS", 4)
    monkeypatch.setattr(best_rows, "_LONGEST", 9)


@given(st.lists(totals, min_size=1, max_size=40), st.lists(st.tuples(st.integers(0, 39), totals), max_size=80))
def test_the_best_is_that_of_all_rows(start, changes):
    column, found = np.array(start, dtype=np.int64), BestRows()
    for position, total in [(0, start[0]), *changes]:
        position %= len(column)
        column[position] = total
        found.changed(position, total)
        if column.max() >= 0:
            assert found.best(column) == int(column.argmax())


@given(st.lists(st.lists(totals, min_size=9, max_size=9), min_size=1, max_size=9))
def test_the_best_is_that_of_all_rows_after_many_have_changed(columns):
    found = BestRows()
    for column in (np.array(some, dtype=np.int64) for some in columns):
        found.forget()
        for _ in range(3):
            if column.max() >= 0:
                best = found.best(column)
                assert best == int(column.argmax())
                column[best] = NEVER
                found.changed(best, NEVER)


def test_rows_that_are_taken_one_by_one_come_in_order():
    column, found, taken = np.array([7, 3, 7, 9, 0, 5, 9]), BestRows(), []
    for _ in range(len(column)):
        best = found.best(column)
        taken.append(best)
        column[best] = NEVER
        found.changed(best, NEVER)
    assert taken == [3, 6, 0, 2, 5, 1, 4]
