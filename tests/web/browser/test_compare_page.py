"""Compare, on results of simulations."""

from __future__ import annotations

import pytest

from tests.web.browser.conftest import start

pytestmark = [pytest.mark.ui, pytest.mark.slow]

SCENARIO = """
nodes:
- {name: node, count: 4, zones: 2, allocatable: {cpu: 8, memory: 32Gi}}
workloads:
- {name: web, as: deployment, count: 10, shape: {cpu: 500m, memory: 1Gi}}
- {name: batch, as: job, rate: 2/m, shape: {cpu: 1}, lifetime: {fixed: 5m}}
duration: 20m
"""
PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
PLAIN = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name, text in (("scenario", SCENARIO), ("packed", PACKED), ("plain", PLAIN)):
        (folder / f"{name}.yaml").write_text(text)
    configs = [f"--config={folder / name}.yaml" for name in ("plain", "packed")]
    done = start("simulate", str(folder / "scenario.yaml"), *configs, "--jobs=1", "--output-dir", str(folder / "out"))
    said = done.communicate(timeout=120)
    assert done.returncode == 0, said
    return serve("--results", str(folder / "out"))


def test_two_configurations_are_shown_side_by_side(served, look):
    looking = look(served)
    page = looking.open("/")
    page.wait_for_selector("text=Pods on different nodes")
    heads = page.locator("section", has_text="Measures").locator("th").all_inner_texts()
    # The icon that sorts is a ligature.
    assert [head.removesuffix("arrow_upward") for head in heads] == ["measure", "plain", "packed", "change"]
    assert page.locator("section", has_text="Pods on different nodes").locator("tbody tr").count() > 1
    page.wait_for_selector("canvas")
    page.wait_for_timeout(300)
    looking.shot("compare")


def test_the_chosen_measure_is_in_the_address(served, look):
    page = look(served).open("/compare?measure=pending")
    page.wait_for_selector("canvas")
    assert page.get_by_label("Measure").input_value() == "pending"
    assert page.title() == "Compare · Moorage"


def test_pages_of_clusters_are_neither_linked_nor_there(served, look):
    looking = look(served)
    page = looking.open("/")
    page.wait_for_selector("nav")
    assert page.locator("nav a").all_inner_texts() == ["Compare"]
