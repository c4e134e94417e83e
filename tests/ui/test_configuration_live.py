"""Configuration, on a `mooring up`: another one is applied, and the history leads back."""

from __future__ import annotations

import pytest

from tests.ui.test_configuration_page import HEAD, check
from tests.ui.test_live import Cluster

pytestmark = [pytest.mark.ui, pytest.mark.slow]

TWO = f"{HEAD}profiles: [{{schedulerName: default-scheduler}}, {{schedulerName: other}}]\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("configured"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def served(serve, cluster):
    return serve("--server", cluster.scheduler, "--kubeconfig", cluster.kubeconfig)


def test_another_configuration_is_applied_and_the_history_leads_back(cluster, served, look):
    looking = look(served)
    page = looking.open("/configuration")
    page.wait_for_selector("text=Generation 1")
    cluster.create_pod("waits", schedulerName="other")
    check(page, TWO)
    page.wait_for_selector(".m-answer >> text=+- schedulerName: other")
    page.get_by_role("button", name="Apply it").click()
    page.wait_for_selector("text=Applied: generation 2")
    page.wait_for_selector("text=Profile other")
    looking.shot("configuration-applied")
    pods = looking.open("/objects")
    pods.wait_for_selector("tr:has-text('waits') >> text=Running")
    page = looking.open("/configuration")
    page.get_by_role("button", name="Roll back to generation 1").click()
    page.wait_for_selector("text=-- schedulerName: other")
    looking.shot("configuration-back")
    page.get_by_role("button", name="Apply it").press("Enter")
    page.wait_for_selector("text=Applied: generation 3")
    page.wait_for_selector("text=Profile other", state="detached")


def test_what_is_refused_changes_nothing_says_why_and_is_not_offered(cluster, served, look):
    page = look(served, "dark").open("/configuration")
    page.wait_for_selector("text=History")
    before = page.locator(".m-soft", has_text="Generation").inner_text()
    check(page, f"{HEAD}profiles: [{{plugins: {{score: {{enabled: [{{name: Nowhere}}]}}}}}}]\n")
    page.wait_for_selector(".m-answer >> text=Nowhere")
    assert page.get_by_role("button", name="Apply it").count() == 0
    page.reload()
    page.wait_for_selector("text=History")
    assert page.locator(".m-soft", has_text="Generation").inner_text() == before


def test_the_present_one_can_be_edited(served, look):
    page = look(served).open("/configuration")
    page.get_by_role("button", name="Start from the present one").click()
    page.wait_for_function("document.querySelector('textarea').value.includes('kind: KubeScheduler')")
    page.get_by_role("button", name="Check it").click()
    page.wait_for_selector("text=It means what the present one means.")


def test_read_only_pages_apply_nothing(cluster, serve, look):
    served = serve("--server", cluster.scheduler, "--kubeconfig", cluster.kubeconfig, "--read-only")
    page = look(served).open("/configuration")
    page.wait_for_selector("text=History")
    assert page.get_by_role("button", name="Roll back").count() == 0
    check(page, TWO)
    page.wait_for_selector("text=Valid")
    assert page.get_by_role("button", name="Apply it").count() == 0
