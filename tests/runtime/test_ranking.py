"""The best nodes: highest total first, among equals the first in snapshot order, against a plain model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moorage.framework.nodes import EveryRow, Nodes
from moorage.runtime.score_board import Ranker, rank_by_ties
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
    masked, order = np.array(totals, dtype=np.int64), np.argsort(np.array(positions, dtype=np.int64))
    if ties is None:
        in_order = positions == list(range(len(positions)))
        found = Ranker().rank(masked, dataclasses.replace(every_row(order), in_order=in_order), count)
    else:
        found = rank_by_ties(masked, order, count, np.array(ties, dtype=np.int64))
    assert found.tolist() == plain_rank(totals, positions, ties, count)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("at", [0, 50, 1499])
def test_a_single_best_node_wins_over_thousands_of_equals(at, in_order):
    every = dataclasses.replace(every_row(np.arange(1500)), in_order=in_order)
    for rest in (300, 299):
        totals = np.full(1500, rest, dtype=np.int64)
        totals[at] = 301
        found = Ranker().rank(totals, every, 10).tolist()
        assert found == [at, *(row for row in range(11) if row != at)][:10]


def test_large_totals_cost_no_memory():
    totals = np.array([2**50, 2**51, -1, 2**50 + 1], dtype=np.int64)
    for in_order in (True, False):
        every = dataclasses.replace(every_row(np.arange(4)), in_order=in_order)
        assert Ranker().rank(totals, every, 10).tolist() == [1, 3, 0]


@given(st.lists(boards(), min_size=1, max_size=6), st.integers(1, 12))
def test_guessing_from_the_last_time_changes_nothing(several, count):
    """One ranker for boards that have nothing to do with each other."""
    ranker = Ranker()
    for totals, positions, _ in several:
        order = np.argsort(np.array(positions, dtype=np.int64))
        every = every_row(order)
        found = ranker.rank(np.array(totals, dtype=np.int64), every, count)
        assert found.tolist() == plain_rank(totals, positions, None, count)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_nodes_with_nearly_the_same_total(seed, in_order):
    """The best level has few rows or many, near each other or not, from one attempt to the next."""
    draw = np.random.default_rng(seed)
    size = 1500
    order = np.arange(size) if in_order else draw.permutation(size)
    every = dataclasses.replace(every_row(order), in_order=in_order)
    positions, ranker = every.positions.tolist(), Ranker()
    for best in (0, 1, 3, 9, 10, 200, 1499, 5, 0, 40):
        totals = draw.integers(90, 92, size)
        totals[draw.permutation(size)[:best]] = 95
        totals[draw.permutation(size)[:7]] = -1
        for _ in range(3):
            first = plain_rank(totals.tolist(), positions, None, 10)
            assert ranker.rank(totals, every, 10).tolist() == first
            totals[first[0]] -= 3  # as if a pod had been placed


def every_row(order):
    """All rows of a table of nodes without anything, in this snapshot order."""
    table = NodeTable()
    for number in range(len(order)):
        table.set_node(make_node(f"n{number}"))
    nodes = Nodes(table, order)
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order))
    return EveryRow(nodes, nodes, np.ones(len(order), dtype=np.bool_), positions)
