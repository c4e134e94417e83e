"""Objects, on a `moorage up`: made, edited, deleted, exported, imported, reset."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.web.browser.conftest import start
from tests.web.browser.live_cluster import Cluster

pytestmark = [pytest.mark.ui, pytest.mark.slow]


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def create(page, text: str) -> None:
    page.get_by_label("YAML").fill(text)
    button(page, "Create").click()


POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  %s
  containers: [{name: main, image: app}]
"""


def test_seed_001_by_clicking_pending_its_reason_the_label_and_then_its_node(live, look):
    looking = look(live)
    page = looking.open("/objects")
    page.get_by_role("link", name="New Pod").click()
    page.wait_for_selector("text=New object")
    create(page, POD % ("picky", "nodeSelector: {cpu: 'true'}"))
    page.get_by_role("link", name="Scheduling of this pod").click()
    page.wait_for_selector("text=Attempt 1: unschedulable")
    assert "NodeAffinity" in page.locator(".m-refusals").inner_text()
    page.get_by_role("link", name="Objects").click()
    page.get_by_role("link", name="Node", exact=True).click()
    page.get_by_role("link", name="node-1").click()
    text = page.get_by_label("YAML")
    text.wait_for()
    node = yaml.safe_load(text.input_value())
    node["metadata"]["labels"]["cpu"] = "true"
    text.fill(yaml.safe_dump(node))
    button(page, "Save").click()
    page.wait_for_selector("text=Saved.")
    looking.shot("object-node")
    page = looking.open("/pod/default/picky")
    page.wait_for_selector("text=Attempt 2: scheduled")
    page.wait_for_selector("text=node-1 was the only feasible node of 2.")


def test_kinds_and_objects_are_listed_and_searched(cluster, live, look):
    looking = look(live)
    cluster.create_pod("listed-one")
    cluster.create_pod("listed-two")
    page = looking.open("/objects")
    page.wait_for_selector("text=listed-two")
    looking.shot("objects")
    page.get_by_label("Search objects").fill("listed-o")
    page.wait_for_function("!document.body.innerText.includes('listed-two')")
    assert "search=listed-o" in page.url
    page.get_by_label("Search objects").fill("nothing-like-it")
    page.wait_for_selector("text=No objects match.")
    page = looking.open("/objects?kind=sofas")
    page.wait_for_selector("text=The cluster has no kind 'sofas'")


def test_an_empty_kind_says_how_to_make_one(live, look):
    looking = look(live, "dark")
    page = looking.open("/objects?kind=persistentvolumes")
    page.wait_for_selector("text=There are no objects of this kind.")
    looking.shot("objects-dark")
    page.get_by_role("link", name="New PersistentVolume").click()
    page.wait_for_selector("text=New object")


@pytest.mark.parametrize(
    "kind",
    [
        "Node",
        "Pod",
        "Deployment",
        "PriorityClass",
        "Namespace",
        "StorageClass",
        "PersistentVolumeClaim",
        "PersistentVolume",
    ],
)
def test_every_template_makes_an_object(live, look, kind):
    page = look(live).open("/new")
    page.get_by_role("navigation", name="Templates").get_by_role("link", name=kind, exact=True).click()
    page.wait_for_function(f"document.querySelector('textarea')?.value.includes('kind: {kind}\\n')")
    button(page, "Create").click()
    page.wait_for_url("**/object/**")
    page.wait_for_function(f"document.querySelector('textarea')?.value.includes('kind: {kind}\\n')")
    page.get_by_role("button", name="Delete").click()
    button(page, "Delete object").click()
    page.wait_for_url("**/objects?kind=**")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "the text is not YAML"),
        ("apiVersion: v1\nkind: Sofa\nmetadata: {name: a}", "the cluster has no kind Sofa in v1"),
        (POD % ("NOT_A_NAME", ""), "NOT_A_NAME"),
        ("", "The text contains no object"),
    ],
    ids=["no YAML", "no such kind", "what the server refuses", "nothing"],
)
def test_what_cannot_be_made_is_said_beside_the_text(live, look, text, says):
    page = look(live).open("/new")
    create(page, text)
    page.locator("[role=status]", has_text=says).wait_for()
    assert page.get_by_label("YAML").input_value() == text


def test_a_change_of_another_user_is_said_and_not_overwritten(cluster, live, look):
    page = look(live).open("/object/nodes/-/node-0")
    text = page.get_by_label("YAML")
    text.wait_for()
    cluster.label("node-0", theirs="1")
    node = yaml.safe_load(text.input_value())
    node["metadata"]["labels"]["mine"] = "1"
    text.fill(yaml.safe_dump(node))
    button(page, "Save").click()
    page.wait_for_selector("text=was changed since it was opened here")
    assert "mine" in text.input_value()
    button(page, "Reload").click()
    page.wait_for_function("document.querySelector('textarea').value.includes('theirs')")
    assert "mine" not in text.input_value()


def test_an_object_that_is_gone_is_said(live, look):
    page = look(live).open("/object/pods/default/never-was")
    page.wait_for_selector("text=Cannot show this page")
    page.wait_for_selector("text=never-was")


def test_deleting_is_confirmed_with_the_keyboard_too(cluster, live, look):
    cluster.create_pod("goes")
    page = look(live).open("/object/pods/default/goes")
    page.get_by_label("YAML").wait_for()
    page.get_by_role("button", name="Delete").press("Enter")
    button(page, "Cancel").click()
    page.wait_for_selector("text=Delete goes?", state="hidden")
    page.get_by_role("button", name="Delete").press("Enter")
    button(page, "Delete object").press("Enter")
    page.wait_for_url("**/objects?kind=pods")
    page.wait_for_function("!document.body.innerText.includes('goes')")


def test_the_dialog_of_a_reset_shows_all_of_it_however_many_objects_there_are(cluster, live, look):
    for number in range(45):
        cluster.create_pod(f"one-of-many-{number}", schedulingGates=[{"name": "example.com/wait"}])
    looking = look(live)
    page = looking.open("/objects")
    button(page, "Reset").click()
    page.wait_for_selector("text=one-of-many-44")
    page.wait_for_timeout(400)
    looking.shot("reset-many")
    dialog = page.locator(".m-dialog").bounding_box()
    for part in (page.get_by_text("Changes to older objects are not undone."), button(page, "Delete objects")):
        box = part.bounding_box()
        assert box["y"] >= dialog["y"]
        assert box["y"] + box["height"] <= dialog["y"] + dialog["height"] <= 800
    rows = page.locator(".m-names li").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
    assert min(rows) >= 14, "no name is cut"
    button(page, "Close").click()
    for number in range(45):
        path = f"/api/v1/namespaces/default/pods/one-of-many-{number}"
        cluster.send("DELETE", path, {"gracePeriodSeconds": 0})


def exported(page, name: str) -> Any:
    with page.expect_download() as download:
        button(page, name).click()
    return json.loads(download.value.path().read_text())


def test_what_is_exported_in_either_form_can_be_imported_after_a_reset_which_leaves_nothing(tmp_path, serve, look):
    (tmp_path / "own").mkdir()
    cluster = Cluster(tmp_path / "own", start)
    try:
        looking = look(serve("--server", cluster.scheduler, "--kubeconfig", cluster.kubeconfig))
        page = looking.open("/new?kind=deployments.v1.apps")
        page.get_by_label("YAML").wait_for()
        button(page, "Create").click()
        page.wait_for_url("**/object/**")
        cluster.create_pod("waits", nodeSelector={"zone": "none"})
        page = looking.open("/objects")
        page.wait_for_function("document.body.innerText.split('Running').length == 4")
        snapshot = exported(page, "Export as a snapshot")
        simulator = exported(page, "Export for kube-scheduler-simulator")
        assert len(snapshot["pods"]) == len(simulator["pods"]) == 4
        assert simulator["schedulerConfig"]["kind"] == "KubeSchedulerConfiguration"
        assert "kind" not in simulator["pods"][0]

        def reset() -> None:
            button(page, "Reset").click()
            page.wait_for_selector("text=Changes to older objects are not undone.")
            looking.shot("reset")
            button(page, "Delete objects").click()
            page.wait_for_selector("text=, 0 failed")
            page.wait_for_selector("text=There are no objects of this kind.")

        def bring_in(content: Any, choice: str = "Keep existing objects") -> None:
            button(page, "Import").click()
            page.get_by_label(choice).click()
            looking.shot("import")
            body = json.dumps(content).encode()
            page.set_input_files("input[type=file]", {"name": "f.json", "mimeType": "application/json", "buffer": body})
            page.wait_for_selector("text=Import: ")

        reset()
        page = looking.open("/")
        page.wait_for_selector("text=No pods are pending.")
        page = looking.open("/objects")
        bring_in(snapshot)
        looking.shot("imported")
        assert ", 0 failed" in page.inner_text("body")
        page.wait_for_function("document.body.innerText.split('Running').length == 4")
        reset()
        bring_in(simulator)
        assert "skipped: use the page Configuration to apply it" in page.inner_text("body")
        page.wait_for_function("document.body.innerText.split('Running').length == 4")
        bring_in(simulator)
        page.wait_for_selector("text=kept: an object of this name exists")
        bring_in(simulator, "Replace existing objects")
        page.wait_for_selector("text=replaced")
    finally:
        cluster.stop()


def test_read_only_pages_have_no_buttons_that_change(cluster, serve, look):
    looking = look(serve("--server", cluster.scheduler, "--kubeconfig", cluster.kubeconfig, "--read-only"))
    page = looking.open("/objects?kind=nodes")
    page.wait_for_selector("text=node-0")
    page.wait_for_selector("text=Export as a snapshot")
    assert button(page, "Import").count() == button(page, "Reset").count() == 0
    assert page.get_by_role("link", name="New Node").count() == 0
    page = looking.open("/object/nodes/-/node-0")
    page.wait_for_selector("text=These pages are read-only.")
    assert page.locator("textarea").count() == 0
    assert button(page, "Save").count() == page.get_by_role("button", name="Delete").count() == 0
    page = looking.open("/new")
    page.wait_for_selector("text=These pages are read-only.")
    assert page.locator("textarea").count() == 0
