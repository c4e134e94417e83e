"""Nodes, NodeView and Refusals on a real NodeTable: dense, in snapshot order, and strict about masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework import Code, Nodes
from moorage.framework.optional import first_refusal
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntry
from moorage.testing import make_node, make_pod

POD = make_pod("p", cpu="500m", memory="1Gi")


@pytest.fixture
def table():
    """Rows a, b, c, d in two zones, of which b is gone again: rows 0, 2, 3, listed as a, c, d."""
    table = NodeTable()
    for name, zone in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "x")):
        table.set_node(make_node(name, zone=zone, labels={"size": {"a": "1", "c": "3"}.get(name, "big")}))
    table.remove_node("b")
    table.add_pod("c", PodEntry(POD))
    return table


def test_nodes_are_dense_and_hold_no_free_rows(table):
    nodes = table.nodes()
    assert nodes.names == ["a", "c", "d"]
    assert nodes.rows.tolist() == [0, 2, 3]
    assert [view.name for view in nodes] == nodes.names
    assert [nodes[i].name for i in range(len(nodes))] == nodes.names


def test_ghosts_are_never_shown(table):
    table.remove_node("c")
    assert table.nodes().names == ["a", "d"]
    assert table.ghosts() == ["c"]


def test_columns_follow_the_order_of_the_names(table):
    nodes = table.nodes()
    assert nodes.allocatable("cpu").tolist() == [4000, 4000, 4000]
    assert nodes.requested("cpu").tolist() == [0, 500, 0]
    assert nodes.free("cpu").tolist() == [4000, 3500, 4000]
    assert nodes.requested("pods").tolist() == [0, 1, 0]
    assert nodes.nonzero_requested("memory").tolist() == [0, 2**30, 0]
    assert nodes.allocatable("example.com/none").tolist() == [0, 0, 0]


def test_a_view_tells_what_the_columns_tell(table):
    nodes = table.nodes()
    for index, view in enumerate(nodes):
        assert view.free("cpu") == nodes.free("cpu")[index]
        assert view.requested.get("pods", 0) == nodes.requested("pods")[index]
        assert view.alone().names == [view.name]
        assert view.alone().free("memory").tolist() == [view.free("memory")]
    assert [pod.name for pod in nodes[1].pods] == ["p"]
    assert repr(nodes[1]) == "NodeView(c)"


LABELS = [
    pytest.param(lambda n: n.has_label("size"), [True, True, True], id="has the label"),
    pytest.param(lambda n: n.has_label("no/such"), [False] * 3, id="a label that nobody has"),
    pytest.param(lambda n: n.label_equals("size", "big"), [False, False, True], id="one value"),
    pytest.param(lambda n: n.label_equals("size", "1", "3", "none"), [True, True, False], id="several values"),
    pytest.param(lambda n: n.label_equals("size"), [False] * 3, id="no value"),
    pytest.param(lambda n: n.label_equals("size", "none"), [False] * 3, id="a value that nobody has"),
    pytest.param(lambda n: n.label_numbers("size") > 2, [False, True, False], id="as numbers, NaN for text"),
    pytest.param(lambda n: n.named("d", "a", "b", "zz"), [True, False, True], id="by name, unknown ones ignored"),
    pytest.param(lambda n: n.named(), [False] * 3, id="by no name"),
]


@pytest.mark.parametrize(("ask", "expected"), LABELS)
def test_questions_give_one_answer_per_node(table, ask, expected):
    assert ask(table.nodes()).tolist() == expected


def test_taints_are_judged_once_per_class():
    table = NodeTable()
    for i in range(20):
        table.set_node(make_node(f"n{i}", taints=["k=v:NoSchedule"] if i % 2 else [], unschedulable=i == 4))
    asked: list[Any] = []

    def judge(cls: Any) -> bool:
        asked.append(cls)
        return cls.unschedulable or bool(cls.taints)

    verdicts = table.nodes().by_taints(judge)
    assert [n for n, hit in zip(table.nodes().names, verdicts, strict=True) if hit] == [
        f"n{i}" for i in range(20) if i % 2 or i == 4
    ]
    assert len(asked) == 3


@given(st.lists(st.booleans(), min_size=6, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_where_equals_picking_by_hand(first, second):
    table = NodeTable()
    for i in range(6):
        table.set_node(make_node(f"n{i}", cpu=str(i + 1), labels={"i": str(i)}))
    nodes = table.nodes().where(np.array(first))
    kept = [i for i in range(6) if first[i]]
    nodes = nodes.where(np.array([second[i] for i in kept], dtype=np.bool_))
    kept = [i for i in kept if second[i]]
    assert nodes.names == [f"n{i}" for i in kept]
    assert nodes.allocatable("cpu").tolist() == [1000 * (i + 1) for i in kept]
    assert nodes.label_numbers("i").tolist() == kept


BAD_MASKS = [
    pytest.param([True, False, False], "got [True, False, False]", id="a list"),
    pytest.param(np.array([1, 0, 0]), "int64 array of shape (3,)", id="numbers"),
    pytest.param(np.array([True]), "bool array of shape (1,)", id="too short"),
    pytest.param(np.ones(64, dtype=np.bool_), "bool array of shape (64,)", id="the table's width"),
    pytest.param(np.ones((3, 1), dtype=np.bool_), "bool array of shape (3, 1)", id="two dimensions"),
    pytest.param(True, "got True", id="a single bool"),
    pytest.param(None, "got None", id="None"),
]


@pytest.mark.parametrize(("mask", "message"), BAD_MASKS)
def test_a_bad_mask_is_refused_with_what_was_expected(table, mask, message):
    with pytest.raises(TypeError) as caught:
        table.nodes().refuse(mask, "no")
    assert "a bool array with one entry per node (3)" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("code", [pytest.param(2, id="a number"), pytest.param("Unschedulable", id="a text")])
def test_a_code_that_is_none_is_refused(table, code):
    nodes = table.nodes()
    with pytest.raises(TypeError, match="Code"):
        nodes.refuse(nodes.named("a"), "no", code)


def test_reasons_by_text_list_or_function():
    table = NodeTable()
    for name in "ab":
        table.set_node(make_node(name))
    nodes: Nodes = table.nodes()
    every_node = np.ones(2, dtype=np.bool_)
    refusals = nodes.refusals().add(every_node, "same")
    refusals.add(every_node, ["for a", "for b"]).add(every_node, lambda i: nodes.names[i])
    assert [entry.text(1) for entry in refusals.entries] == ["same", "for b", "b"]


GRAVITY = [
    ((Code.UNSCHEDULABLE, Code.PENDING), Code.UNSCHEDULABLE),
    ((Code.PENDING, Code.UNSCHEDULABLE_AND_UNRESOLVABLE), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    ((Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.ERROR, Code.UNSCHEDULABLE), Code.ERROR),
]


@pytest.mark.parametrize(("codes", "expected"), GRAVITY)
def test_all_reasons_are_kept_and_the_gravest_code_wins(codes, expected):
    table = NodeTable()
    table.set_node(make_node("a"))
    nodes = table.nodes()
    refusals = nodes.refusals()
    for code in codes:
        refusals.add(nodes.named("a"), code.label, code)
    status = first_refusal(refusals)
    assert status is not None
    assert status.code is expected
    assert status.reasons == tuple(code.label for code in codes)
