"""An overlay equals a table in which the change was really made, and the table underneath stays as it was."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.framework.nodes import Columns
from moorage.state.columns import CacheError
from moorage.state.node_table import NodeTable
from moorage.state.overlay import Overlay, OverlayRows
from moorage.state.pod_entry import PodEntries, PodEntry
from moorage.state.ranking import VictimColumns
from tests.state.objects import ZONE, make_node, make_pod

GPU = "nvidia.com/gpu"
RESOURCES = ("cpu", "memory", "pods", GPU, "example.com/none")
NODES = [
    make_node("a", zone="x", gpu=1),
    make_node("b", zone="y", labels={"size": "4"}, unschedulable=True),
    make_node("c", zone="x"),
]


class Step(NamedTuple):
    """A pod that comes to, or goes from, a node; by index."""

    add: bool
    pod: int
    node: int


PODS = [PodEntry(make_pod(f"p{index}", cpu=f"{index}00m", gpu=index % 2)) for index in range(6)]
steps = st.lists(st.builds(Step, st.booleans(), st.integers(0, 5), st.integers(0, 2)), max_size=12)


def tables(running: dict[int, int]) -> tuple[NodeTable, NodeTable]:
    """Two equal tables with these pods (index → node index)."""
    made = []
    for _ in range(2):
        table = NodeTable()
        for node in NODES:
            table.set_node(node)
        for pod, node_index in running.items():
            table.add_pod(NODES[node_index].name, PODS[pod])
        made.append(table)
    return made[0], made[1]


def apply_to_table(table: NodeTable, step: Step) -> None:
    name = NODES[step.node].name
    present = PODS[step.pod].uid in {pod.uid for pod in table.pods_of(name)}
    if step.add and not present:
        table.add_pod(name, PODS[step.pod])
    elif not step.add and present:
        table.remove_pod(name, PODS[step.pod])


def seen(columns: Columns, rows: list[int]) -> dict[str, Any]:
    """All that views can read of these rows."""
    values = {code: value for value, code in columns.labels.values(ZONE).items()} | {-1: None}
    views = [columns.view(row) for row in rows]
    return {
        "columns": {
            resource: [
                column[rows].tolist()
                for column in (
                    columns.amounts.allocatable(resource),
                    columns.amounts.requested(resource),
                    columns.amounts.nonzero_requested(resource),
                )
            ]
            for resource in RESOURCES
        },
        "zones": [values[code] for code in columns.labels.codes(ZONE)[rows].tolist()],
        "numbers": [str(number) for number in columns.labels.numbers("size")[rows].tolist()],
        "taints": [columns.taints.classes[code] for code in columns.taints.ids[rows].tolist()],
        "names": [columns.node_names()[row] for row in rows],
        "places": [columns.row_of(view.name) == row for view, row in zip(views, rows, strict=True)],
        "pods": [sorted(pod.uid for pod in view.pods) for view in views],
        "requested": [{k: v for k, v in view.requested.items() if v} for view in views],
        "nonzero": [{k: v for k, v in view.nonzero_requested.items() if v} for view in views],
        "nodes": [view.node for view in views],
        "free": [view.free("cpu") for view in views],
    }


@settings(max_examples=60, deadline=None)
@given(
    running=st.dictionaries(st.integers(0, 5), st.integers(0, 2)),
    rows=st.permutations([0, 1, 2]),
    before=steps,
    after=steps,
)
def test_an_overlay_equals_a_table_in_which_the_change_was_made(running, rows, before, after):
    table, changed = tables(running)
    untouched = copy.deepcopy(seen(table, [0, 1, 2]))
    version = table.version
    overlay = Overlay(table, rows)
    for part in (before, after):
        for step in part:
            (overlay.add_pod if step.add else overlay.remove_pod)(rows.index(step.node), PODS[step.pod])
            apply_to_table(changed, step)
        # Read in between too: columns gathered early have to follow later changes.
        assert seen(overlay, [0, 1, 2]) == seen(changed, rows)

    assert seen(table, [0, 1, 2]) == untouched
    assert table.version == version


@pytest.fixture
def table() -> NodeTable:
    return tables({0: 0, 1: 0, 2: 1})[0]


def test_an_overlay_holds_only_its_rows(table):
    overlay = Overlay(table, [2, 0])

    assert overlay.width == 2
    assert overlay.nodes().names == ["c", "a"]
    assert overlay.row_of("a") == 1
    assert overlay.row_of("b") == overlay.row_of("never") == -1
    assert len(overlay.labels.codes(ZONE)) == 2
    assert overlay.view(1).alone().names == ["a"]


def test_a_pod_comes_and_goes_once(table):
    overlay = Overlay(table, [0])

    assert not overlay.add_pod(0, PODS[1])
    assert overlay.remove_pod(0, PODS[1])
    assert not overlay.remove_pod(0, PODS[1])
    assert overlay.view(0).requested["pods"] == 1


def test_overlays_can_be_stacked(table):
    lower = Overlay(table, [1, 0])
    lower.remove_pod(1, PODS[0])
    upper = Overlay(lower, [1])
    upper.add_pod(0, PODS[3])

    assert [pod.uid for pod in upper.view(0).pods] == ["p1", "p3"]
    assert [pod.uid for pod in lower.view(1).pods] == ["p1"]
    assert upper.amounts.requested("cpu").tolist() == [400]


def test_columns_of_an_overlay_cannot_be_written(table):
    with pytest.raises(ValueError, match="read-only"):
        Overlay(table, [0]).amounts.requested("cpu")[0] = 1


def test_rows_of_a_dry_run_take_pods(table):
    rows = OverlayRows(table, PodEntries().entry, ["a"])
    rows.remove_pod(0, PODS[1].pod)
    rows.add_pod(0, PODS[5].pod)

    assert [pod.uid for pod in rows.view(0).pods] == ["p0", "p5"]
    assert [pod.uid for pod in table.pods_of("a")] == ["p0", "p1"]
    with pytest.raises(CacheError, match="does not exist"):
        OverlayRows(table, PodEntries().entry, ["never"])


@given(running=st.dictionaries(st.integers(0, 5), st.integers(0, 2)), priority=st.integers(0, 1), later=steps)
@settings(max_examples=60, deadline=None)
def test_hiding_the_lower_pods_of_a_row_equals_taking_its_pods_one_by_one(running, priority, later):
    table, second_table = tables(running)
    overlay, one_by_one = Overlay(table, (0, 1, 2)), Overlay(second_table, (0, 1, 2))
    victims = table.lower_pods_on(range(3), priority)
    overlay.amounts.hide(VictimColumns(victims))
    for row, pods in enumerate(victims):
        for pod in pods:
            one_by_one.remove_pod(row, PodEntries().entry(pod))
    for step in later:
        for world in (overlay, one_by_one):
            (world.add_pod if step.add else world.remove_pod)(step.node, PODS[step.pod])
    for resource in RESOURCES:
        have, want = overlay.amounts, one_by_one.amounts
        assert have.requested(resource).tolist() == want.requested(resource).tolist()
        assert have.nonzero_requested(resource).tolist() == want.nonzero_requested(resource).tolist()
    for row in range(3):
        assert overlay.load_on(row).pods() == one_by_one.load_on(row).pods()
        assert overlay.load_on(row).requested == one_by_one.load_on(row).requested
