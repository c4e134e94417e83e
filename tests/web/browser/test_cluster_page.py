"""Cluster and Node, on a snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.web.pages.heat_map import CORDONED, heat_map
from tests.web.browser import clusters

ZONES: dict[str, Any] = {
    "names": ["full", "empty", "over", "bare"],
    "unschedulable": [False, True, False, False],
    "labels": {"zone": ["b", "a", "b", ""]},
    "amounts": {"cpu": {"allocatable": [4000, 4000, 2000, 0], "requested": [4000, 0, 3000, 0]}},
}


def test_squares_are_grouped_by_the_label_and_the_fullest_come_first():
    made = heat_map(ZONES, "cpu", "zone")
    assert made.nodes == ["bare", "empty", "over", "full"]
    assert made.options["visualMap"]["dimension"] == 2, "the share, not the text behind it"
    bare, empty, over, full = made.options["series"][0]["data"]
    assert bare == [0, 0, "-", "bare", "no cpu"]
    assert empty["value"] == [0, 2, 0.0, "empty", "0 of 4 cpu requested\ncordoned"]
    assert empty["itemStyle"]["borderColor"] == CORDONED
    assert [over[:3], full[:3]] == [[0, 4, 150.0], [1, 4, 100.0]]
    assert made.options["yAxis"]["data"] == ["no label (1)", "", "a (1)", "", "b (2)"]


def test_an_unknown_label_or_resource_leaves_one_group_without_figures():
    made = heat_map(ZONES, "gpu", "rack")
    assert made.options["yAxis"]["data"] == ["all nodes (4)"]
    assert {heat_map_share(square) for square in made.options["series"][0]["data"]} == {"-"}


def test_what_is_measured_takes_the_place_of_what_is_requested_and_its_absence_is_said():
    cpu = {**ZONES["amounts"]["cpu"], "measured": [1000, 2000, 0, 0]}
    memory = {"allocatable": [1, 1, 1, 1], "requested": [1, 1, 1, 1]}
    nodes = {**ZONES, "amounts": {"cpu": cpu, "memory": memory}}
    made = heat_map(nodes, "cpu", "", "measured")
    assert made.nodes == ["empty", "full", "over", "bare"]
    assert made.options["series"][0]["data"][1][2:] == [25.0, "full", "1 of 4 cpu measured"]
    made = heat_map(nodes, "memory", "", "measured")
    assert {heat_map_share(square) for square in made.options["series"][0]["data"]} == {"-"}
    assert made.options["series"][0]["data"][0][4] == "memory: not measured"


def heat_map_share(square):
    return (square["value"] if isinstance(square, dict) else square)[2]


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
    assert page.title() == "gpu-1 · Moorage"


@pytest.mark.ui
@pytest.mark.slow
def test_a_node_shows_its_pods_and_the_pending_ones_it_does_not_take(served, look):
    looking = look(served)
    page = looking.open("/node/cpu-1")
    page.wait_for_selector("text=default/web-0")
    assert (
        "Insufficient cpu"
        in page.locator("section", has_text="Pending pods that this node rejects").inner_text()
    )
    assert page.locator("section", has_text="Pods (2)").locator("tbody tr").count() == 2
    looking.shot("node")


@pytest.mark.ui
@pytest.mark.slow
def test_a_node_that_is_not_there_is_an_answer_with_a_way_out(served, look):
    page = look(served).open("/node/absent")
    page.wait_for_selector("text=there is no node 'absent'")
