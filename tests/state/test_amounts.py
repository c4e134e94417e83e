"""The amounts of resources: columns only for what nodes offer, and nothing stays of what pods have asked for."""

from __future__ import annotations

import pytest

from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntry
from tests.state.objects import make_node, make_pod

GPU = "nvidia.com/gpu"


def asking(name, node, **amounts):
    return PodEntry(make_pod(name, node=node, cpu="1", **amounts))


def table_of(*nodes):
    table = NodeTable()
    for name in nodes:
        table.set_node(make_node(name))
    return table


def test_resources_that_no_node_offers_get_no_column():
    table = table_of("a", "b")
    before = len(table.amounts)
    entries = [asking(f"p{i}", "a", **{f"example.com/r{i}-{j}": "1" for j in range(5)}) for i in range(20)]
    for entry in entries:
        for resource in entry.requests:
            assert table.amounts.free(resource).max() >= 0
    assert len(table.amounts) == before

    for entry in entries:
        table.add_pod("a", entry)
    row = table.row_of("a")
    for i in range(20):
        assert table.amounts.requested(f"example.com/r{i}-0").tolist()[row] == 1
        assert table.amounts.free(f"example.com/r{i}-0").tolist()[row] == -1
        assert table.amounts.nonzero_requested(f"example.com/r{i}-0").sum() == 1
    for entry in entries:
        table.remove_pod("a", entry)
    assert table.amounts.requested("example.com/r0-0").sum() == 0
    assert len(table.amounts) == before
    assert set(table.load_on(row).sums) == {"cpu", "memory", "ephemeral-storage", "pods"}
    assert set(table.load_on(row).nonzero_sums) == set(table.load_on(row).sums)


def test_columns_come_and_go_with_the_nodes_that_offer_the_resource():
    table = table_of("a")
    before = len(table.amounts)
    table.add_pod("a", asking("early", "a", **{GPU: "2"}))
    assert table.amounts.requested(GPU).sum() == 2

    table.set_node(make_node("b", gpu="8"))
    table.add_pod("b", asking("there", "b", **{GPU: "3"}))
    a, b = table.row_of("a"), table.row_of("b")
    assert [int(table.amounts.free(GPU)[row]) for row in (a, b)] == [-2, 5]

    table.remove_node("b")
    assert table.amounts.allocatable(GPU).sum() == 0
    assert [int(table.amounts.requested(GPU)[row]) for row in (a, b)] == [2, 3]
    assert [int(table.amounts.free(GPU)[row]) for row in (a, b)] == [-2, -3]

    table.remove_pod("a", asking("early", "a", **{GPU: "2"}))
    table.remove_pod("b", asking("there", "b", **{GPU: "3"}))
    table.settle()
    assert len(table.amounts) == before


def test_a_resource_that_is_scored_by_keeps_its_column():
    table = table_of("a")
    taken = table.amounts.floats("requested", GPU)
    table.add_pod("a", asking("p", "a", **{GPU: "2"}))
    table.settle()
    assert taken[table.row_of("a")] == 2
    assert table.amounts.floats("requested", GPU) is taken


@pytest.mark.parametrize("grown", [False, True])
def test_amounts_of_other_resources_survive_a_larger_table(grown):
    table = NodeTable(width=2)
    table.set_node(make_node("a"))
    table.add_pod("a", asking("p", "a", **{GPU: "2"}))
    for i in range(8 if grown else 1):
        table.set_node(make_node(f"n{i}"))
    assert len(table.amounts.requested(GPU)) == table.width
    assert int(table.amounts.requested(GPU)[table.row_of("a")]) == 2


def test_a_sum_that_was_zero_for_a_while_stays_exact():
    table = table_of("a")
    more, less = asking("more", "a", **{GPU: "2"}), asking("less", "a", **{GPU: "-2"})
    table.add_pod("a", more)
    table.add_pod("a", less)
    table.settle()
    table.remove_pod("a", more)
    assert int(table.amounts.requested(GPU)[table.row_of("a")]) == -2
    table.remove_pod("a", less)
    assert table.amounts.requested(GPU).sum() == 0
