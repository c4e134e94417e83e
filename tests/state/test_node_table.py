"""The NodeTable: rows, ghosts, columns, views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.api.errors import QuantityError
from moorage.api.taints import Taint
from moorage.framework.nodes import Columns, TaintClass
from moorage.state.columns import LIMIT, CacheError
from moorage.state.node_table import NodeTable
from moorage.state.pod_entry import PodEntry
from tests.state.objects import ZONE, make_node, make_pod

GPU = "nvidia.com/gpu"
TAINT = Taint(key="dedicated", value="ml", effect="NoSchedule")


def entry(name: str = "p", **requests: Any) -> PodEntry:
    return PodEntry(make_pod(name, **requests))


@pytest.fixture
def table() -> NodeTable:
    """Two nodes; a small table, so that it has to grow."""
    table = NodeTable(width=2)
    table.set_node(make_node("a", zone="x"))
    table.set_node(make_node("b", zone="y", gpu=2))
    return table


def test_a_table_is_what_views_read(table):
    columns: Columns = table
    assert columns.width == 2


def test_columns_hold_what_nodes_offer_and_pods_request(table):
    table.add_pod("b", entry("p", cpu="500m", gpu="1"))

    assert table.amounts.allocatable("cpu").tolist() == [4000, 4000]
    assert table.amounts.allocatable(GPU).tolist() == [0, 2]
    assert table.amounts.requested("cpu").tolist() == [0, 500]
    assert table.amounts.requested(GPU).tolist() == [0, 1]
    assert table.amounts.requested("pods").tolist() == [0, 1]
    assert table.amounts.nonzero_requested("memory").tolist() == [0, 200 << 20]
    assert table.amounts.nonzero_requested(GPU).tolist() == [0, 1]


def test_a_resource_that_no_node_has_is_zero_everywhere(table):
    assert table.amounts.allocatable("example.com/none").tolist() == [0, 0]
    assert table.amounts.requested("example.com/none").dtype == np.int64


def test_a_view_follows_the_pods_and_its_node(table):
    view = table.view(table.row_of("b"))
    pod = entry("p", cpu="1")
    table.add_pod("b", pod)

    assert view.pods == (pod.pod,)
    assert view.free("cpu") == 3000
    assert view.requested["pods"] == 1
    assert view.nonzero_requested["cpu"] == 1000
    assert table.view(table.row_of("b")) is view
    table.set_node(make_node("b", cpu="8"))
    assert table.view(table.row_of("b")).free("cpu") == 7000


def test_columns_cannot_be_written(table):
    with pytest.raises(ValueError, match="read-only"):
        table.nodes().requested("cpu")[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        table.amounts.allocatable("example.com/none")[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        table.labels.codes(ZONE)[0] = 1


def test_rows_are_stable_while_the_table_grows(table):
    table.add_pod("b", entry("p", cpu="1"))
    table.labels.codes(ZONE)
    table.labels.numbers(ZONE)
    for index in range(20):
        table.set_node(make_node(f"more-{index}", zone="x", cpu="1"))

    assert table.row_of("b") == 1
    assert len(table) == 22
    assert table.width == 32
    assert table.amounts.requested("cpu")[:3].tolist() == [0, 1000, 0]
    assert table.nodes().label_equals(ZONE, "x").sum() == 21
    assert np.isnan(table.labels.numbers(ZONE)).all()
    assert len(table.taints.ids) == len(table.versions) == table.width


def test_freed_rows_are_reused_and_start_empty(table):
    table.remove_node("a")
    table.set_node(make_node("c", pods=3))
    row = table.row_of("c")

    assert row == 0
    assert table.row_of("a") == -1
    assert table.node_names() == ["c", "b"]
    assert table.amounts.requested("pods")[row] == 0
    assert table.nodes().names == ["b", "c"]


def test_a_resource_that_a_node_loses_is_zero(table):
    table.set_node(make_node("b", zone="y"))

    assert table.amounts.allocatable(GPU).tolist() == [0, 0]
    assert GPU not in table.view(1).allocatable


class TestGhosts:
    """A ghost is accounted, never shown."""

    def test_a_pod_on_an_unknown_node_makes_a_ghost(self, table):
        table.add_pod("c", entry("p", cpu="1"))

        assert table.ghosts() == ["c"]
        assert table.row_of("c") == -1
        assert "c" not in table
        assert "c" not in table.node_names()
        assert table.nodes().names == ["a", "b"]
        assert [pod.name for pod in table.pods_of("c")] == ["p"]

    def test_it_is_revived_with_its_pods_when_the_node_comes(self, table):
        row = table.add_pod("c", entry("p", cpu="1"))

        assert table.set_node(make_node("c")) == row
        assert table.ghosts() == []
        assert table.view(row).free("cpu") == 3000

    def test_a_node_removed_before_its_pods_becomes_one(self, table):
        pod = entry("p", cpu="1")
        row = table.add_pod("b", pod)
        assert table.remove_node("b")

        assert table.ghosts() == ["b"]
        assert table.labels.codes(ZONE)[row] == -1
        assert table.amounts.allocatable("cpu")[row] == 0
        assert table.nodes().names == ["a"]
        with pytest.raises(CacheError, match="no node"):
            table.view(row)

    def test_it_goes_with_its_last_pod(self, table):
        pod = entry("p", cpu="1")
        row = table.add_pod("c", pod)
        table.remove_pod("c", pod)

        assert table.ghosts() == []
        assert table.amounts.requested("cpu")[row] == 0
        assert table.set_node(make_node("d")) == row


def test_labels_become_codes_that_follow_the_nodes(table):
    assert table.nodes().label_equals(ZONE, "x", "never").tolist() == [True, False]
    table.set_node(make_node("a", zone="y"))
    table.set_node(make_node("b"))

    assert table.nodes().label_equals(ZONE, "y").tolist() == [True, False]
    assert table.nodes().has_label(ZONE).tolist() == [True, False]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("12", 12.0, id="an integer"),
        pytest.param("-3", -3.0, id="a negative one"),
        pytest.param("1.5", None, id="a fraction is none"),
        pytest.param("9223372036854775808", None, id="beyond int64"),
        pytest.param(None, None, id="absent"),
    ],
)
def test_labels_as_numbers(table, value, expected):
    table.labels.numbers("size")
    table.set_node(make_node("a", labels={} if value is None else {"size": value}))
    followed = table.labels.numbers("size")[0]
    fresh = NodeTable()
    fresh.set_node(make_node("a", labels={} if value is None else {"size": value}))
    built = fresh.labels.numbers("size")[0]

    assert [None if np.isnan(number) else number for number in (followed, built)] == [expected, expected]


def test_taints_and_cordons_become_classes(table):
    old, new = (Taint(key="dedicated", value="ml", effect="NoSchedule", time_added=t) for t in ("1", "2"))
    table.set_node(make_node("a", taints=(old,)))
    table.set_node(make_node("b", taints=(new,)))
    table.set_node(make_node("c", taints=(TAINT,), unschedulable=True))
    ids = table.taints.ids

    assert ids[0] == ids[1] != ids[2]
    assert table.taints.classes[ids[0]] == TaintClass((TAINT,), False)
    assert table.taints.classes[0] == TaintClass((), False)
    assert table.nodes().by_taints(lambda found: found.unschedulable).tolist() == [False, False, True]


def test_order_and_epoch_are_kept_until_the_set_of_nodes_or_a_zone_changes(table):
    nodes, epoch = table.nodes(), table.listing.epoch()
    table.set_node(make_node("a", zone="x", labels={"other": "label"}))
    table.add_pod("a", entry())
    assert table.nodes() is nodes
    assert table.listing.epoch() is epoch

    table.set_node(make_node("a", zone="z"))
    assert table.nodes() is not nodes
    assert table.nodes().rows.tolist() == [1, 0]
    assert table.listing.epoch().number > epoch.number
    assert tuple(epoch.names) == ("a", "b")


def test_changed_since_names_the_rows_that_changed(table):
    start = table.version
    assert table.changed_since(start) == []
    pod = entry()
    table.add_pod("b", pod)
    middle = table.version
    table.set_node(make_node("a"))
    table.remove_pod("b", pod)
    table.set_node(make_node("a"))

    assert sorted(table.changed_since(start)) == [0, 1]
    assert sorted(table.changed_since(middle)) == [0, 1]
    assert table.changed_since(table.version - 1) == [0]
    assert table.versions[1] > middle


def test_news_are_the_live_nodes_that_changed(table):
    start = table.version
    assert table.changes_since(start) == (start, table.node_version, [])
    table.add_pod("b", entry("p"))
    table.add_pod("b", entry("q"))
    version, _, changed = table.changes_since(start)
    assert version == table.version == start + 2
    assert [node.name for node in changed] == ["b"], "once"
    table.add_pod("nowhere", entry("r"))
    assert table.changes_since(version)[2] == [], "a ghost is not shown"
    table.set_node(make_node("a", zone="x"))
    _, nodes, changed = table.changes_since(start)
    assert sorted(node.name for node in changed) == ["a", "b"]
    assert nodes == table.node_version


class TestOverflow:
    """No sum wraps around, and what is added can be taken away again."""

    def test_sums_are_clamped_in_columns_and_exact_underneath(self, table):
        huge = [entry(f"p{index}", memory=str(2**63 - 1)) for index in range(4)]
        for one in huge:
            table.add_pod("a", one)
        assert table.amounts.requested("memory")[0] == LIMIT
        assert table.nodes().free("memory")[0] < 0

        for one in huge:
            table.remove_pod("a", one)
        assert table.amounts.requested("memory")[0] == 0

    def test_two_clamped_amounts_can_be_added_and_subtracted(self):
        assert np.int64(LIMIT) + np.int64(LIMIT) > 0
        assert np.int64(-LIMIT) - np.int64(LIMIT) < 0

    def test_allocatable_is_clamped_in_columns_and_views(self, table):
        table.set_node(make_node("a", memory="9223372036854775807"))

        assert table.amounts.allocatable("memory")[0] == LIMIT
        assert table.view(0).allocatable["memory"] == LIMIT


class TestRefusals:
    """Contradictions raise and leave the table as it was."""

    def test_a_pod_cannot_be_added_twice(self, table):
        table.add_pod("a", entry())
        with pytest.raises(CacheError, match="already"):
            table.add_pod("a", entry())
        assert table.amounts.requested("pods")[0] == 1

    def test_an_unknown_pod_cannot_be_removed_or_replaced(self, table):
        with pytest.raises(CacheError, match="not on the node"):
            table.remove_pod("a", entry())
        with pytest.raises(CacheError, match="no row"):
            table.remove_pod("never", entry())
        pod = entry()
        with pytest.raises(CacheError, match="not on the node"):
            table.replace_pod("a", pod, pod)

    def test_a_node_needs_a_name(self, table):
        with pytest.raises(CacheError, match="without a name"):
            table.set_node(make_node(""))

    def test_a_node_with_a_bad_quantity_changes_nothing(self, table):
        version = table.version
        with pytest.raises(QuantityError):
            table.set_node(make_node("c", cpu="lots"))

        assert table.version == version
        assert "c" not in table

    def test_removing_an_unknown_node_is_false(self, table):
        assert not table.remove_node("never")
