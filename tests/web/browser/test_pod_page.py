"""Pod, on a snapshot."""

from __future__ import annotations

import pytest

from tests.web.browser import clusters

pytestmark = [pytest.mark.ui, pytest.mark.slow]


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    return serve("--snapshot", clusters.write(tmp_path_factory.mktemp("pod"), "story", clusters.story()))


def test_a_pending_pod_shows_refusals_remedies_and_every_node(served, look):
    looking = look(served)
    page = looking.open("/")
    page.locator("a", has_text="default/train").click()
    page.wait_for_selector("text=Pending: 0 of 4 nodes are feasible")
    assert page.title() == "default/train · Moorage"
    assert "taint gpu=true:NoSchedule" in page.locator(".m-refusals").inner_text()
    remedies = page.locator("ol li").all_inner_texts()
    [uncordon] = [text for text in remedies if text.startswith("Uncordon node cpu-3")]
    assert "kubectl uncordon cpu-3" in uncordon
    assert "cpu requested; most free: " in page.locator("section, .m-card").first.inner_text()
    page.wait_for_selector(".ag-cell >> text=cpu-3")
    assert page.locator(".ag-center-cols-container .ag-row").count() == 4
    looking.shot("pod-pending")


def test_a_node_of_the_table_shows_what_is_in_its_way(served, look):
    page = look(served).open("/pod/default/train")
    page.locator(".ag-cell", has_text="cpu-1").click()
    page.wait_for_selector("text=cpu: 2 requested, 1 free (1 short)")
    assert page.locator("a", has_text="cpu-1").get_attribute("href") == "/node/cpu-1"


def test_the_table_can_be_filtered(served, look):
    page = look(served).open("/pod/default/train")
    page.wait_for_selector(".ag-cell >> text=gpu-1")
    page.get_by_label("Filter nodes").fill("taint")
    page.wait_for_function("document.querySelectorAll('.ag-center-cols-container .ag-row').length == 1")
    assert page.locator(".ag-pinned-left-cols-container .ag-row").inner_text() == "gpu-1"


def test_a_pod_that_fits_shows_the_scores_of_the_best_nodes(served, look):
    looking = look(served)
    page = looking.open("/pod/default/small")
    page.wait_for_selector("text=Schedulable: 2 of 4 nodes are feasible")
    page.wait_for_selector("canvas")
    assert "points" in page.locator("section", has_text="Best nodes").inner_text()
    page.wait_for_timeout(300)
    looking.shot("pod-scores")


def test_a_running_pod_says_where_it_runs(served, look):
    page = look(served).open("/pod/default/web-0")
    page.wait_for_selector("text=Scheduled on")


def test_a_pod_that_is_not_there_is_an_answer_with_a_way_out(served, look):
    page = look(served).open("/pod/default/absent")
    page.wait_for_selector("text=pod 'absent' does not exist in namespace 'default'")
    assert page.get_by_role("button", name="Try again").is_visible()


def test_preemption_shows_its_victims_and_the_nodes_it_could_choose_from(serve, look, tmp_path_factory):
    pods = [clusters.pod(f"low-{name}", "4", name, priority=number) for number, name in enumerate("ab")]
    cluster = {"nodes": [clusters.node("a"), clusters.node("b")]}
    cluster["pods"] = [*pods, clusters.pod("high", "4", priority=100)]
    served = serve("--snapshot", clusters.write(tmp_path_factory.mktemp("high"), "high", cluster))
    page = look(served).open("/pod/default/high")
    page.wait_for_selector("text=Preemption would delete these pods on")
    card = page.locator("section", has_text="Candidate nodes")
    assert card.locator("li").all_inner_texts() == ["default/low-a"]
    assert [row.split()[0] for row in card.locator("tbody tr").all_inner_texts()] == ["a", "b"]


@pytest.mark.parametrize(("cpu", "says"), [("1", "Schedulable: 1 of 1 nodes"), ("8", "Pending: 0 of 1 nodes")])
def test_a_cluster_of_one_node_has_its_tables_too(serve, look, tmp_path_factory, cpu, says):
    cluster = {"nodes": [clusters.node("only")], "pods": [clusters.pod("one", cpu)]}
    served = serve("--snapshot", clusters.write(tmp_path_factory.mktemp("only"), cpu, cluster))
    page = look(served).open("/pod/default/one")
    page.wait_for_selector(f"text={says}")
    page.wait_for_selector(".ag-cell >> text=only")
    if cpu == "1":
        page.wait_for_selector("canvas")
