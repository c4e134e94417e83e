"""The best rows are what a look at all rows finds, whatever has changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework.nodes import IntArray
from moorage.runtime.reuse import best_rows
from moorage.runtime.reuse.best_rows import BestRows
from moorage.runtime.score_board import NEVER
from moorage.runtime.top_scores import RANKED_ROW_BYTES, ScoreLayout

totals = st.one_of(st.integers(0, 5), st.integers(0, 900), st.just(NEVER))
LAYOUT = ScoreLayout((), (("half", 1),), (), 0, 0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few rows at a time, so that the list becomes too short and too long."""
    monkeypatch.setattr(best_rows, "_ROWS", 14)
    monkeypatch.setattr(best_rows, "_LONGEST", 19)


class Rows:
    """Totals in snapshot order, a plugin that scores half of the total, and the best rows of both. Rows are in the
    reverse of snapshot order if `turned`."""

    def __init__(self, start: list[int], turned: bool = False) -> None:
        self.totals: IntArray = np.array(start, dtype=np.int64)
        self.order: IntArray | None = np.arange(len(start))[::-1].copy() if turned else None
        self.found = BestRows()

    def row(self, position: int) -> int:
        return position if self.order is None else int(self.order[position])

    def halves(self) -> IntArray:
        """The scores of the plugin, by row."""
        halves: IntArray = self.totals // 2
        return halves if self.order is None else halves[self.order]

    def best(self) -> int:
        return self.found.best(self.totals, self.order, [self.halves()])

    def change(self, position: int, total: int) -> None:
        self.found.changed(position, self.row(position), total, [total // 2], self.totals)
        self.totals[position] = total

    def check(self) -> None:
        if self.totals.max() < 0:
            return
        assert self.best() == int(self.totals.argmax())
        ten = self.found.best_ten(LAYOUT)
        if ten is None:
            return
        expected = sorted((-total, position) for position, total in enumerate(self.totals.tolist()) if total >= 0)[:10]
        assert list(ten.rows) == [self.row(position) for _, position in expected]
        assert ten.totals == [-negated for negated, _ in expected]
        assert [ten.columns[0].at(i).raw for i in range(len(expected))] == [-negated // 2 for negated, _ in expected]


@given(
    st.lists(totals, min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(0, 59), totals), max_size=80),
    st.booleans(),
)
def test_the_best_are_those_of_all_rows(start, changes, turned):
    rows = Rows(start, turned)
    for position, total in [(0, start[0]), *changes]:
        rows.change(position % len(start), total)
        rows.check()


@given(st.lists(st.lists(totals, min_size=30, max_size=30), min_size=1, max_size=9))
def test_the_best_are_those_of_all_rows_after_many_have_changed(columns):
    rows = Rows(columns[0])
    for column in columns:
        rows.totals[:] = column
        rows.found.forget()
        for _ in range(3):
            rows.check()
            if rows.totals.max() >= 0:
                rows.change(rows.best(), NEVER)


def test_rows_that_are_taken_one_by_one_come_in_order():
    rows, taken = Rows([7, 3, 7, 9, 0, 5, 9]), []
    for _ in range(7):
        best = rows.best()
        taken.append(best)
        rows.change(best, NEVER)
    assert taken == [3, 6, 0, 2, 5, 1, 4]


def test_a_row_that_changed_unnoticed_does_not_win():
    rows = Rows(list(range(40)))
    rows.check()
    rows.totals[39] = 0
    assert rows.best() == 38
    rows.totals[20] = 3
    rows.change(20, 50)
    assert rows.best() == 20


def test_only_rows_that_may_be_new_are_charged():
    """Records of a template share the entries of rows that stay among the best ten."""
    rows = Rows(list(range(40)))
    rows.best()
    first = rows.found.best_ten(LAYOUT)
    rows.change(39, 0)
    rows.best()
    second = rows.found.best_ten(LAYOUT)
    assert first is not None
    assert second is not None
    assert isinstance(first.ranked, tuple)
    assert isinstance(second.ranked, tuple)
    assert first.ranked[1] is second.ranked[0]
    assert first.nbytes - second.nbytes == 9 * RANKED_ROW_BYTES
