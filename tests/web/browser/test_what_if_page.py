"""What if, on a snapshot."""

from __future__ import annotations

import json

import pytest

from tests.web.browser import clusters

pytestmark = [pytest.mark.ui, pytest.mark.slow]


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    return serve("--snapshot", clusters.write(tmp_path_factory.mktemp("if"), "story", clusters.story()))


def try_it(page) -> None:
    page.get_by_role("button", name="Try").click()


def test_a_pasted_manifest_shows_where_its_pods_would_go_and_why_others_would_wait(served, look):
    looking = look(served)
    page = looking.open("/what-if")
    manifest = {"apiVersion": "v1", "kind": "Pod", **clusters.pod("new", "500m")}
    huge = {"apiVersion": "v1", "kind": "Pod", **clusters.pod("huge", "64")}
    page.get_by_label("Objects to apply").fill(f"{json.dumps(manifest)}\n---\n{json.dumps(huge)}")
    try_it(page)
    page.wait_for_selector("text=default/new")
    assert "cpu-" in page.locator("tr", has_text="default/new").inner_text()
    page.wait_for_selector("text=Why default/huge would stay pending")
    looking.shot("what-if")


def test_a_node_leads_to_what_its_drain_would_do(served, look):
    page = look(served).open("/node/cpu-1")
    page.get_by_role("link", name="What if this node is drained?").click()
    page.wait_for_selector("text=Objects to apply")
    assert page.get_by_label("Nodes to drain").input_value() == "cpu-1"
    page.wait_for_selector("text=default/web-0")
    assert "cpu-1" in page.locator("tr", has_text="default/web-0").inner_text()


def test_more_nodes_take_pods_that_wait(served, look):
    page = look(served).open("/what-if?like=cpu-1")
    page.wait_for_selector("text=cpu-1-copy-0")


@pytest.mark.parametrize(
    ("manifest", "says"),
    [("{", "the manifest is not YAML"), ("a: b", "apiVersion and kind are missing"), ("", "There is nothing to try")],
    ids=["no YAML", "no object", "nothing"],
)
def test_what_cannot_be_tried_is_said(served, look, manifest, says):
    page = look(served).open("/what-if")
    page.get_by_label("Objects to apply").fill(manifest)
    try_it(page)
    page.wait_for_selector(f"text={says}")


def test_an_upgrade_shows_the_pods_that_differ_and_why(served, look):
    looking = look(served)
    page = looking.open("/what-if")
    page.get_by_label("Upgrade to").click()
    page.get_by_role("option", name="kube-scheduler 1.37").click()
    try_it(page)
    page.wait_for_selector("text=would be decided differently by kube-scheduler 1.37 than by 1.36")
    assert "message" in page.locator("tr", has_text="default/train").inner_text()
    page.wait_for_selector("text=NodeName runs before NodeUnschedulable at filter.")
    looking.shot("what-if-upgrade")
    page.get_by_label("Nodes to drain").fill("cpu-1")
    try_it(page)
    page.wait_for_selector("text=An upgrade is previewed on the cluster as it is")


def test_the_address_can_name_the_upgrade(served, look):
    page = look(served).open("/what-if?upgrade=1.37")
    page.wait_for_selector("text=would be decided differently by kube-scheduler 1.37 than by 1.36")
