"""The best nodes: highest total first, among equals the first in snapshot order, against a plain model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moorage.framework.nodes import EveryRow, Nodes
from moorage.runtime.score_board import Ranker, rank
from moorage.state.node_table import NodeTable
from moorage.testing import make_node

SIZES = st.integers(1, 200)


@st.composite
def boards(draw):
    """Few distinct totals, so that there are many ties, and rows that are not feasible (-1)."""
    size = draw(SIZES)
    scale = draw(st.sampled_from((1, 7, 10**9)))
    totals = draw(st.lists(st.integers(0, 4).map(lambda t: t * scale) | st.just(-1), min_size=size, max_size=size))
    totals[draw(st.integers(0, size - 1))] = draw(st.integers(0, 5)) * scale
    positions = draw(st.permutations(range(size)))
    ties = draw(st.none() | st.lists(st.integers(0, 2**32), min_size=size, max_size=size, unique=True))
    return totals, list(positions), ties


def plain_rank(totals: list[int], positions: list[int], ties: list[int] | None, count: int) -> list[int]:
    feasible = [row for row, total in enumerate(totals) if total >= 0]
    return sorted(feasible, key=lambda r: (-totals[r], positions[r] if ties is None else -ties[r]))[:count]


@given(boards(), st.integers(1, 12))
@example(([90] * 150 + [100] + [90] * 49, list(range(200)), None), 10)
def test_the_ranking_equals_sorting(board, count):
    totals, positions, ties = board
    drawn = None if ties is None else np.array(ties, dtype=np.int64)
    order = np.argsort(np.array(positions, dtype=np.int64))
    found = rank(np.array(totals, dtype=np.int64), order, count, drawn)
    assert found.tolist() == plain_rank(totals, positions, ties, count)


@pytest.mark.parametrize("at", [0, 50, 4999])
def test_a_single_best_node_wins_over_thousands_of_equals(at):
    totals = np.full(5000, 300, dtype=np.int64)
    totals[at] = 301
    assert rank(totals, np.arange(5000), 10)[0] == at


def test_large_totals_cost_no_memory():
    totals = np.array([2**50, 2**51, -1, 2**50 + 1], dtype=np.int64)
    assert rank(totals, np.arange(4), 10).tolist() == [1, 3, 0]


@given(st.lists(boards(), min_size=1, max_size=6), st.integers(1, 12))
def test_guessing_from_the_last_time_changes_nothing(several, count):
    """One ranker for boards that have nothing to do with each other."""
    ranker = Ranker()
    for totals, positions, _ in several:
        order = np.argsort(np.array(positions, dtype=np.int64))
        every = every_row(order)
        found = ranker.rank(np.array(totals, dtype=np.int64), every, count)
        assert found.tolist() == plain_rank(totals, positions, None, count)


def every_row(order):
    """All rows of a table of nodes without anything, in this snapshot order."""
    table = NodeTable()
    for number in range(len(order)):
        table.set_node(make_node(f"n{number}"))
    nodes = Nodes(table, order)
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order))
    return EveryRow(nodes, nodes, np.ones(len(order), dtype=np.bool_), positions)
