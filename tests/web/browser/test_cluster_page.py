"""Cluster and Node, on a snapshot."""

from __future__ import annotations

import pytest

from tests.web.browser import clusters


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
    assert "Insufficient cpu" in page.locator("section", has_text="Pending pods that this node rejects").inner_text()
    assert page.locator("section", has_text="Pods (2)").locator("tbody tr").count() == 2
    looking.shot("node")


@pytest.mark.ui
@pytest.mark.slow
def test_a_node_that_is_not_there_is_an_answer_with_a_way_out(served, look):
    page = look(served).open("/node/absent")
    page.wait_for_selector("text=node 'absent' does not exist")
