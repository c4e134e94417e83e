"""Configuration, on a `moorage up`: another one is applied, and the history leads back."""

from __future__ import annotations

import pytest

from tests.web.browser.test_configuration_page import HEAD, check

pytestmark = [pytest.mark.ui, pytest.mark.slow]

TWO = f"{HEAD}profiles: [{{schedulerName: default-scheduler}}, {{schedulerName: other}}]\n"


def test_another_configuration_is_applied_and_the_history_leads_back(cluster, live, look):
    looking = look(live)
    page = looking.open("/configuration")
    page.wait_for_selector("text=Generation 1")
    cluster.create_pod("waits", schedulerName="other")
    check(page, TWO)
    page.wait_for_selector(".m-answer >> text=+- schedulerName: other")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_selector("text=Applied: generation 2")
    page.wait_for_selector("text=Profile other")
    looking.shot("configuration-applied")
    pods = looking.open("/objects")
    pods.wait_for_selector("tr:has-text('waits') >> text=Running")
    page = looking.open("/configuration")
    page.get_by_role("button", name="Roll back to generation 1").click()
    page.wait_for_selector("text=-- schedulerName: other")
    looking.shot("configuration-back")
    page.get_by_role("button", name="Apply").press("Enter")
    page.wait_for_selector("text=Applied: generation 3")
    page.wait_for_selector("text=Profile other", state="detached")


def test_what_is_refused_changes_nothing_says_why_and_is_not_offered(cluster, live, look):
    page = look(live, "dark").open("/configuration")
    page.wait_for_selector("text=History")
    before = page.locator(".m-soft", has_text="Generation").inner_text()
    check(page, f"{HEAD}profiles: [{{plugins: {{score: {{enabled: [{{name: Nowhere}}]}}}}}}]\n")
    page.wait_for_selector(".m-answer >> text=Nowhere")
    assert page.get_by_role("button", name="Apply").count() == 0
    page.reload()
    page.wait_for_selector("text=History")
    assert page.locator(".m-soft", has_text="Generation").inner_text() == before


def test_the_present_one_can_be_edited(live, look):
    page = look(live).open("/configuration")
    page.get_by_role("button", name="Copy the current configuration").click()
    page.wait_for_function("document.querySelector('textarea').value.includes('kind: KubeScheduler')")
    page.get_by_role("button", name="Check").click()
    page.wait_for_selector("text=No difference from the current configuration.")


def test_read_only_pages_apply_nothing(cluster, serve, look):
    live = serve("--server", cluster.scheduler, "--kubeconfig", cluster.kubeconfig, "--read-only")
    page = look(live).open("/configuration")
    page.wait_for_selector("text=History")
    assert page.get_by_role("button", name="Roll back").count() == 0
    check(page, TWO)
    page.wait_for_selector("text=Valid")
    assert page.get_by_role("button", name="Apply").count() == 0
