"""Cluster and Node, on a snapshot."""

from __future__ import annotations

import pytest

from mooring.web.heat_map import CORDONED, heat_map
from tests.ui import clusters

ZONES = {
    "names": ["full", "empty", "over", "bare"],
    "unschedulable": [False, True, False, False],
    "labels": {"zone": ["b", "a", "b", ""]},
    "amounts": {"cpu": {"allocatable": [4000, 4000, 2000, 0], "requested": [4000, 0, 3000, 0]}},
}


def test_squares_are_grouped_by_the_label_and_the_fullest_come_first():
    made = heat_map(ZONES, "cpu", "zone")
    assert made.nodes == ["bare", "empty", "over", "full"]
    squares = made.options["series"][0]["data"]
    assert [square["value"] for square in squares] == [[0, 0, "-"], [0, 2, 0.0], [0, 4, 150.0], [1, 4, 100.0]]
    assert squares[1]["itemStyle"]["borderColor"] == CORDONED
    assert made.options["yAxis"]["data"] == ["without the label (1)", "", "a (1)", "", "b (2)"]


def test_an_unknown_label_or_resource_leaves_one_group_without_figures():
    made = heat_map(ZONES, "gpu", "rack")
    assert made.options["yAxis"]["data"] == ["all nodes (4)"]
    assert {square["value"][2] for square in made.options["series"][0]["data"]} == {"-"}


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    return serve("--snapshot", clusters.write(tmp_path_factory.mktemp("nodes"), "story", clusters.story()))


@pytest.mark.ui
@pytest.mark.slow
def test_a_click_on_a_square_opens_its_node(served, look):
    looking = look(served)
    page = looking.open("/cluster")
    page.wait_for_selector("canvas")
    page.wait_for_timeout(500)
    looking.shot("cluster")
    box = page.locator("canvas").first.bounding_box()
    page.mouse.click(box["x"] + 200, box["y"] + 55)
    page.wait_for_url("**/node/*")


@pytest.mark.ui
@pytest.mark.slow
def test_resource_and_group_are_in_the_address(served, look):
    page = look(served).open("/cluster")
    page.get_by_label("Resource").click()
    page.get_by_role("option", name="memory").click()
    page.wait_for_url("**/cluster?resource=memory*")
    page = look(served).open("/cluster?resource=pods&group=kubernetes.io/hostname")
    page.wait_for_selector("canvas")
    assert page.get_by_label("Resource").input_value() == "pods"


@pytest.mark.ui
@pytest.mark.slow
def test_a_node_is_found_by_keyboard(served, look):
    page = look(served).open("/cluster")
    page.wait_for_selector("canvas")
    page.keyboard.press("/")
    page.keyboard.type("gpu")
    page.wait_for_selector("a.m-chip >> text=gpu-1")
    page.keyboard.press("Tab")
    page.locator("a.m-chip").press("Enter")
    page.wait_for_selector("text=gpu=true:NoSchedule")
    assert page.title() == "gpu-1 · Mooring"


@pytest.mark.ui
@pytest.mark.slow
def test_a_node_shows_its_pods_and_the_pending_ones_it_does_not_take(served, look):
    looking = look(served)
    page = looking.open("/node/cpu-1")
    page.wait_for_selector("text=default/web-0")
    assert "Insufficient cpu" in page.locator("section", has_text="does not take").inner_text()
    assert page.locator("section", has_text="Pods (2)").locator("tbody tr").count() == 2
    looking.shot("node")


@pytest.mark.ui
@pytest.mark.slow
def test_a_node_that_is_not_there_is_an_answer_with_a_way_out(served, look):
    page = look(served).open("/node/absent")
    page.wait_for_selector("text=there is no node 'absent'")
