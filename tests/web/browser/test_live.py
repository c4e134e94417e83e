"""A running scheduler: `moorage up`, looked at while pods come and nodes change."""

from __future__ import annotations

import json

import pytest

from tests.web.browser.conftest import start
from tests.web.browser.live_cluster import Cluster

pytestmark = [pytest.mark.ui, pytest.mark.slow]


def test_a_pending_pod_its_reason_the_label_that_helps_and_then_its_node(cluster, live, look):
    looking = look(live)
    page = looking.open("/")
    page.wait_for_selector("text=No pods are pending.")
    cluster.create_pod("picky", nodeSelector={"disk": "ssd"})
    page.wait_for_selector("text=default/picky")
    looking.shot("live-queue")
    page.locator("a", has_text="default/picky").click()
    page.wait_for_selector("text=Attempt 1: unschedulable")
    assert "NodeAffinity" in page.locator(".m-refusals").inner_text()
    page.wait_for_selector(".ag-cell >> text=node-1")
    assert page.locator(".ag-center-cols-container .ag-row").count() == 2
    cluster.label("node-1", disk="ssd")
    page.wait_for_selector("text=Attempt 2: scheduled")
    page.wait_for_selector("text=node-1 was the only feasible node of 2.")
    looking.shot("live-pod")
    page.locator("a", has_text="node-1").first.click()
    page.wait_for_selector("text=disk=ssd")
    page.wait_for_selector("text=default/picky")
    cluster.label("node-1", rack="late")
    page.wait_for_selector("text=rack=late")  # the page of a node follows it


def test_a_chosen_attempt_stays_chosen_while_more_come(cluster, live, look):
    cluster.create_pod("waits", nodeSelector={"rack": "7"})
    page = look(live).open("/pod/default/waits")
    page.locator("button.m-group", has_text="Attempt 1").click()
    page.wait_for_url("**attempt=*")
    cluster.label("node-0", rack="7")
    page.wait_for_selector("button.m-group >> text=Attempt 2")
    assert page.locator("button.m-chosen").inner_text().startswith("Attempt 1")
    assert page.locator("text=Attempt 1: unschedulable").is_visible()


def test_two_attempts_are_compared_under_an_address_to_share(cluster, live, look):
    cluster.create_pod("moves", nodeSelector={"gpu": "a100"})
    looking = look(live)
    page = looking.open("/pod/default/moves")
    page.wait_for_selector("text=Attempt 1: unschedulable")
    cluster.label("node-1", gpu="a100")
    page.wait_for_selector("text=Attempt 2: scheduled")
    assert "NodeUpdateNodeLabel, hint of NodeAffinity" in page.locator(".m-move").first.inner_text()
    page.locator("a", has_text="Compare with attempt 2").click()
    page.wait_for_url("**attempt=*compare=*")
    page.wait_for_selector("text=Nodes with a different verdict")
    difference = page.locator("section", has_text="Nodes with a different verdict")
    assert "not rejected" in difference.locator("tbody").last.inner_text()
    difference.locator(".ag-cell", has_text="node-1").wait_for()
    assert difference.locator(".ag-pinned-left-cols-container .ag-row").all_inner_texts() == ["node-1"]
    looking.shot("live-difference")
    shared = look(live).open(page.url.removeprefix(live.root))
    shared.wait_for_selector("text=Nodes with a different verdict")
    shared.locator("a", has_text="Close").click()
    shared.wait_for_selector("text=Attempt 2: scheduled")
    assert shared.locator("text=Nodes with a different verdict").count() == 0


def test_a_pod_that_was_created_again_is_kept_apart_from_the_one_before(cluster, live, look):
    cluster.create_pod("again", nodeSelector={"zone": "none"})
    page = look(live).open("/pod/default/again")
    page.wait_for_selector("text=Attempt 1: unschedulable")
    cluster.send("DELETE", "/api/v1/namespaces/default/pods/again", {"gracePeriodSeconds": 0})
    page.wait_for_selector("text=Pod default/again no longer exists.")
    cluster.create_pod("again", nodeSelector={"zone": "nowhere"})
    page.wait_for_selector("text=Earlier pod of the same name")
    assert page.locator("button.m-group >> text=Attempt 1").count() == 2
    page.locator("a", has_text="Compare with attempt 1").click()
    page.wait_for_selector("text=These attempts belong to two different pods of the same name.")


def test_an_attempt_that_is_gone_is_said(cluster, live, look):
    cluster.create_pod("tried")
    page = look(live).open("/pod/default/tried")
    page.wait_for_selector("text=Attempt 1: scheduled")
    page = look(live).open("/pod/default/tried?attempt=999999&compare=888888")
    page.wait_for_selector("text=Attempt 888888 of the pod default/tried is no longer kept")


def test_what_is_typed_stays_while_the_page_refreshes(cluster, live, look):
    page = look(live).open("/")
    cluster.create_pod("first", nodeSelector={"zone": "none"})
    cluster.create_pod("second", nodeSelector={"zone": "none"})
    page.wait_for_selector("text=default/second")
    page.get_by_label("Search pods").fill("fir")
    page.wait_for_function("document.querySelectorAll('.m-table tbody a').length == 1")
    cluster.create_pod("firm", nodeSelector={"zone": "none"})
    page.wait_for_selector("text=default/firm")
    assert page.get_by_label("Search pods").input_value() == "fir"
    assert "second" not in page.locator(".m-table").inner_text()


def test_the_cluster_shows_its_last_minutes_and_what_its_nodes_use(cluster, live, look):
    cluster.create_pod("runs")
    looking = look(live)
    page = looking.open("/cluster")
    page.get_by_label("Attempts per second, the last minutes").locator("canvas").wait_for()
    page.get_by_label("Milliseconds per attempt, the last minutes").locator("canvas").wait_for()
    assert "Nodes" in page.locator(".m-tile").first.inner_text()
    page.get_by_role("combobox", name="Share").click()
    page.get_by_role("option", name="measured").click()
    page.wait_for_url("**show=measured*")
    page.wait_for_timeout(300)
    looking.shot("live-cluster")
    bound = page.locator(".m-tile", has_text="Bound").locator(".m-number")
    before = int(bound.inner_text())
    cluster.create_pod("one-more")
    page.wait_for_function(
        "before => [...document.querySelectorAll('.m-tile')].some("
        "tile => tile.innerText.includes('Bound') && parseInt(tile.innerText) > before)",
        arg=before,
    )
    cluster.send("PATCH", "/api/v1/nodes/node-0", {"spec": {"unschedulable": True}}, "application/merge-patch+json")
    page.wait_for_selector(".ag-cell >> text=cordoned")  # the list of nodes follows them
    cluster.send("PATCH", "/api/v1/nodes/node-0", {"spec": {"unschedulable": False}}, "application/merge-patch+json")


def test_a_wrong_address_is_said_before_anything_is_served(cluster):
    done = start("ui", "--server", "https://127.0.0.1:1", "--kubeconfig", cluster.kubeconfig, "--no-browser")
    _, said = done.communicate(timeout=60)
    assert done.returncode == 1
    assert "127.0.0.1:1" in said
    assert "Traceback" not in said


def test_what_if_is_tried_on_what_the_scheduler_sees_and_changes_nothing(cluster, live, look):
    looking = look(live)
    page = looking.open("/what-if")
    pod = {"metadata": {"name": "would-be"}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
    page.get_by_label("Objects to apply").fill(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}))
    page.get_by_role("button", name="Try").click()
    page.wait_for_selector("text=default/would-be")
    assert "node-" in page.locator("tr", has_text="default/would-be").inner_text()
    names = [each["metadata"]["name"] for each in cluster.get("/api/v1/namespaces/default/pods")["items"]]
    assert "would-be" not in names


def test_a_scheduler_that_goes_away_is_said_and_what_was_seen_stays(tmp_path_factory, serve, look):
    cluster = Cluster(tmp_path_factory.mktemp("gone"), start)
    cluster.create_pod("seen", nodeSelector={"zone": "none"})
    page = look(serve("--server", cluster.scheduler, "--kubeconfig", cluster.kubeconfig)).open("/")
    page.wait_for_selector("text=default/seen")
    cluster.stop()
    page.wait_for_selector("text=Connection lost. The page shows the state of")
    assert page.locator("text=default/seen").is_visible()
    assert page.locator("text=No pods are pending").count() == 0
    assert page.evaluate("getComputedStyle(document.querySelector('.m-tiles')).filter") == "grayscale(1)"
    said = page.locator("[role=alert]").inner_text()
    assert "Connection refused" in said
    assert "0x" not in said
    page.reload()
    for _ in range(2):  # also after it has tried again
        page.wait_for_selector("text=Connection lost; trying again")
        assert page.locator("text=No pods are pending").count() == 0
        page.wait_for_timeout(2500)
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector("text=Connection lost; trying again")


def test_a_pod_that_does_not_exist_is_not_called_well(cluster, live, look):
    page = look(live).open("/pod/default/never-was")
    says = page.get_by_text("Pod default/never-was does not exist.")
    says.wait_for()
    assert "m-bad" in says.get_attribute("class")
    assert page.locator(".m-good").count() == 0


def test_the_header_names_context_and_server(cluster, live, look):
    page = look(live).open("/")
    assert page.locator(".m-source").inner_text() == f"context moorage, scheduler at {cluster.scheduler}"


def test_a_pending_pod_has_figures_in_the_queue_and_remedies_and_figures_on_its_page(cluster, live, look):
    huge = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "100"}}}
    cluster.create_pod("huge", containers=[huge])
    looking = look(live)
    page = looking.open("/?search=huge")
    page.wait_for_selector("text=0/2 nodes are available: 2 Insufficient cpu.")
    page.locator("a", has_text="default/huge").click()
    page.wait_for_selector("text=Each was tested on a copy of the cluster as of")
    proposed = page.locator("ol li").all_inner_texts()
    assert any(text.startswith("Add a node with at least 100 cpu") for text in proposed), proposed
    page.wait_for_function("document.querySelector('.m-refusals')?.innerText.includes('short on 2 nodes')")
    message = "No preemption victims found for incoming pod"
    assert page.inner_text("main").count(message) <= 1, "no message twice"
    looking.shot("live-remedies")


def test_a_nominated_pod_shows_its_node_and_its_victims(cluster, live, look):
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    cluster.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {**kind, "value": 1000})
    cluster.label("node-1", stage="main")
    large = [{"name": "main", "image": "app", "resources": {"requests": {"cpu": "5"}}}]
    spec = {"containers": large, "nodeSelector": {"stage": "main"}}
    meta = {"name": "victim", "annotations": {"moorage.dev/stop-seconds": "25"}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    cluster.send("POST", "/api/v1/namespaces/default/pods", body)
    page = look(live).open("/pod/default/victim")
    page.wait_for_selector("text=Scheduled on")
    assert "node-1 was the only feasible node of 2." in page.inner_text("main")
    cluster.create_pod("urgent", priorityClassName="urgent", **spec)
    looking = look(live)
    page = looking.open("/pod/default/urgent")
    page.wait_for_selector("text=Nominated. The pod waits until these pods have left")
    state = page.locator("section", has_text="Nominated.")
    assert [link.inner_text() for link in state.get_by_role("link").all()] == ["node-1", "default/victim"]
    looking.shot("live-nominated")
    page = looking.open("/?search=urgent")
    page.wait_for_selector("text=Nominated to node-1.")
