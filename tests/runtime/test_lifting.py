"""A rule written for one node and for all nodes gives the same answers, whichever form is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework import (
    Code,
    CycleState,
    FilterPlugin,
    Nodes,
    ScorePlugin,
    Status,
    VectorFilterPlugin,
    VectorScorePlugin,
)
from moorage.framework._contract import writes
from moorage.framework.hot import WholeTableScorePlugin
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.filtering import filter_dense
from moorage.runtime.lifting import NodeFailure
from moorage.runtime.registry import unwritten
from moorage.runtime.score_board import ScoreStep
from moorage.state.node_table import NodeTable
from moorage.testing import make_node, make_pod

STATE, POD = CycleState(), make_pod("p")
HANDLE: Any = None
CODES = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


def table_of(sizes: list[int]) -> NodeTable:
    table = NodeTable()
    for i, size in enumerate(sizes):
        table.set_node(make_node(f"n{i}", cpu=size))
    return table


class ScalarFilter(FilterPlugin):
    """Refuses small nodes, with a second reason for tiny ones."""

    name = "scalar"

    def filter(self, state, pod, node):
        size = node.allocatable["cpu"] // 1000
        if size >= 6:
            return None
        reasons = ("small", f"only {size}") if size < 3 else ("small",)
        return Status(CODES[size % 3], reasons)


class VectorFilter(VectorFilterPlugin):
    name = "vector"

    def filter_nodes(self, state, pod, nodes):
        sizes = nodes.allocatable("cpu") // 1000
        answer = nodes.refusals()
        for remainder, code in enumerate(CODES):
            hit = (sizes < 6) & (sizes % 3 == remainder)
            answer.add(hit, "small", code)
            answer.add(hit & (sizes < 3), lambda i: f"only {sizes[i]}", code)
        return answer


def answers_of_vector_form(plugin: FilterPlugin, nodes: Nodes) -> list[Status | None]:
    statuses = NodeStatuses(nodes)
    _, error = filter_dense(plugin, STATE, POD, nodes, statuses)
    assert error.is_success, error
    found = [statuses.get(name) for name in nodes.names]
    return [None if status.is_success else Status(status.code, status.reasons) for status in found]


@given(st.lists(st.integers(1, 9), max_size=12))
def test_filters_agree_in_all_four_ways(sizes):
    nodes = table_of(sizes).nodes()
    scalar: FilterPlugin = ScalarFilter({}, HANDLE)
    vector: FilterPlugin = VectorFilter({}, HANDLE)
    written = [scalar.filter(STATE, POD, node) for node in nodes]
    assert [vector.filter(STATE, POD, node) for node in nodes] == written, "vector lowered to one node"
    assert answers_of_vector_form(vector, nodes) == written, "vector as written"
    assert answers_of_vector_form(scalar, nodes) == written, "scalar lifted to all nodes"


def score_of(size: int) -> float:
    return size * 7.9 - 20


class ScalarScore(ScorePlugin):
    name = "scalar"

    def score(self, state, pod, node):
        return score_of(node.allocatable["cpu"] // 1000)


class VectorScore(VectorScorePlugin):
    name = "vector"

    def score_nodes(self, state, pod, nodes):
        return (nodes.allocatable("cpu") // 1000) * 7.9 - 20


class IntoScore(WholeTableScorePlugin):
    name = "into"

    def score_into(self, state, pod, nodes, out):
        out[:] = (nodes.allocatable("cpu") // 1000) * 7.9 - 20


def scores(plugin: ScorePlugin, nodes: Nodes) -> list[int]:
    out = np.zeros(len(nodes), dtype=np.int64)
    assert ScoreStep(plugin, 1).score_into(STATE, POD, nodes, out) is None
    return [int(score) for score in out]


@given(st.lists(st.integers(1, 9), max_size=12))
def test_scores_agree_in_all_forms_and_fractions_are_cut_towards_zero(sizes):
    nodes = table_of(sizes).nodes()
    expected = [int(score_of(size)) for size in sizes]
    plugins = ScalarScore({}, HANDLE), VectorScore({}, HANDLE), IntoScore({}, HANDLE)
    assert [scores(plugin, nodes) for plugin in plugins] == [expected] * 3
    for plugin in plugins:
        assert [int(plugin.score(STATE, POD, node)) for node in nodes] == expected  # type: ignore[arg-type]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_whole_scores_are_exact_over_all_of_int64(values):
    nodes = table_of([1] * len(values)).nodes()

    class Given(ScorePlugin):
        name = "given"

        def score(self, state, pod, node):
            return values[int(node.name[1:])]

    class GivenAll(VectorScorePlugin):
        name = "given-all"

        def score_nodes(self, state, pod, nodes):
            return np.array(values, dtype=np.int64)

    assert scores(Given({}, HANDLE), nodes) == values
    assert scores(GivenAll({}, HANDLE), nodes) == values


class Normalizing(ScorePlugin):
    name = "normalizing"

    def score(self, state, pod, node):
        return 0

    def normalize_scores(self, state, pod, scores):
        return {name: 100 - score for name, score in scores.items()}


def test_a_normalisation_by_name_is_lifted():
    nodes = table_of([1, 2, 3]).nodes()
    lifted = ScoreStep(Normalizing({}, HANDLE), 1).normalize_nodes(STATE, POD, np.array([1, 20, 100]), nodes)
    assert lifted.tolist() == [99, 80, 0]


BAD_SCORES = [
    pytest.param(None, TypeError, "got None", id="None"),
    pytest.param("5", TypeError, "got '5'", id="text"),
    pytest.param(True, TypeError, "got True", id="bool"),
    pytest.param(float("nan"), ValueError, "finite", id="NaN"),
    pytest.param(float("inf"), ValueError, "finite", id="infinity"),
    pytest.param(1e300, ValueError, "64 bits", id="a float beyond int64"),
    pytest.param(10**400, ValueError, "64 bits", id="an int beyond every float"),
    pytest.param(2**63, ValueError, "64 bits", id="one more than int64 holds"),
    pytest.param(Status.success(), TypeError, "Success status instead of a number", id="Success for a number"),
    pytest.param([5], TypeError, r"got \[5\]", id="a list"),
]


@pytest.mark.parametrize(("value", "kind", "message"), BAD_SCORES)
def test_a_scalar_score_that_is_none_names_its_node(value, kind, message):
    class Bad(ScorePlugin):
        name = "bad"

        def score(self, state, pod, node):
            return value if node.name == "n1" else 1

    with pytest.raises(NodeFailure, match=message) as caught:
        scores(Bad({}, HANDLE), table_of([1, 1, 1]).nodes())
    assert caught.value.node == "n1"
    assert isinstance(caught.value.__cause__, kind)


BAD_ARRAYS = [
    pytest.param(None, TypeError, "expected an array", id="None"),
    pytest.param([1, 2, 3], TypeError, "expected an array", id="a list"),
    pytest.param(np.array([True, False, True]), TypeError, "expected an array", id="bools"),
    pytest.param(np.array(["1", "2", "3"]), TypeError, "expected an array", id="texts"),
    pytest.param(np.array([1, 2]), ValueError, "expected 3 scores", id="too short"),
    pytest.param(np.ones(64), ValueError, "expected 3 scores", id="the table's width"),
    pytest.param(np.ones((3, 1)), ValueError, "expected 3 scores", id="two dimensions"),
    pytest.param(np.array([1.0, np.nan, 1.0]), NodeFailure, "finite", id="NaN"),
    pytest.param(np.array([1.0, -np.inf, 1.0]), NodeFailure, "finite", id="infinity"),
    pytest.param(np.array([1.0, 1e300, 1.0]), NodeFailure, "64 bits", id="beyond int64"),
    pytest.param(np.array([1, 2**63, 1], dtype=np.uint64), NodeFailure, "64 bits", id="unsigned beyond int64"),
]


@pytest.mark.parametrize(("array", "kind", "message"), BAD_ARRAYS)
def test_a_bad_array_of_scores_is_refused(array, kind, message):
    class Bad(VectorScorePlugin):
        name = "bad"

        def score_nodes(self, state, pod, nodes):
            return array

    with pytest.raises(kind, match=message) as caught:
        scores(Bad({}, HANDLE), table_of([1, 1, 1]).nodes())
    if isinstance(caught.value, NodeFailure):
        assert caught.value.node == "n1"


BAD_NORMALIZED = [
    pytest.param(None, TypeError, "must return a mapping", id="None"),
    pytest.param([1], TypeError, "must return a mapping", id="a list"),
    pytest.param({"n0": 1, "n1": 1, "zz": 1}, ValueError, "'zz', which is not among the nodes", id="unknown node"),
    pytest.param({"n0": 1}, NodeFailure, "no score for this node", id="a node left out"),
    pytest.param({"n0": 1, "n1": "x"}, NodeFailure, "expected a number", id="text"),
    pytest.param({"n0": 1, "n1": float("nan")}, NodeFailure, "finite", id="NaN"),
]


@pytest.mark.parametrize(("answer", "kind", "message"), BAD_NORMALIZED)
def test_a_bad_normalisation_is_refused(answer, kind, message):
    class Bad(Normalizing):
        def normalize_scores(self, state, pod, scores):
            return answer

    with pytest.raises(kind, match=message) as caught:
        ScoreStep(Bad({}, HANDLE), 1).normalize_nodes(STATE, POD, np.array([1, 2]), table_of([1, 1]).nodes())
    if isinstance(caught.value, NodeFailure):
        assert caught.value.node == "n1"


def test_a_filter_that_raises_names_its_node():
    class Bad(FilterPlugin):
        name = "bad"

        def filter(self, state, pod, node):
            return 1 // (node.name != "n1") and None

    nodes = table_of([1, 1, 1]).nodes()
    _, status = filter_dense(Bad({}, HANDLE), STATE, POD, nodes, NodeStatuses(nodes))
    assert status.code is Code.ERROR
    assert 'node "n1": ZeroDivisionError' in status.message


def test_a_refusal_without_a_reason_stays_a_refusal():
    class Silent(FilterPlugin):
        name = "silent"

        def filter(self, state, pod, node):
            return Status(Code.UNSCHEDULABLE)

    nodes = table_of([1]).nodes()
    assert answers_of_vector_form(Silent({}, HANDLE), nodes) == [Status(Code.UNSCHEDULABLE)]


def test_an_optional_method_is_found_where_it_is_written():
    assert writes(Normalizing, "normalize_scores")
    assert not writes(ScalarScore({}, HANDLE), "normalize_scores")


def test_methods_that_a_base_class_requires_are_found_missing():
    class Empty(VectorFilterPlugin, WholeTableScorePlugin):
        name = "empty"

    assert unwritten(ScalarFilter) == unwritten(VectorFilter) == unwritten(IntoScore) == []
    assert unwritten(Empty) == [
        "inherits VectorFilterPlugin but defines no filter_nodes()",
        "inherits WholeTableScorePlugin but defines no score_into()",
    ]
