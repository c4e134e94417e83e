"""Configuration, on a snapshot."""

from __future__ import annotations

import pytest

from tests.web.browser import clusters

pytestmark = [pytest.mark.ui, pytest.mark.slow]

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    return serve("--snapshot", clusters.write(tmp_path_factory.mktemp("config"), "story", clusters.story()))


def check(page, text: str) -> None:
    page.get_by_label("A KubeSchedulerConfiguration").fill(text)
    page.get_by_role("button", name="Check").click()


def test_profiles_are_shown_as_they_run(served, look):
    looking = look(served)
    page = looking.open("/configuration")
    page.wait_for_selector("text=Profile default-scheduler")
    assert "TaintToleration (3)" in page.locator("tr", has_text="TaintToleration (").inner_text()
    looking.shot("configuration")


def test_every_mistake_of_another_one_is_named_with_its_place(served, look):
    page = look(served).open("/configuration")
    check(page, f"{HEAD}parallelism: -1\npercentageOfNodesToScore: 200\n")
    page.wait_for_selector(".m-answer >> text=parallelism")
    page.wait_for_selector(".m-answer >> text=percentageOfNodesToScore")


def test_another_one_is_compared_with_the_present_one(served, look):
    page = look(served).open("/configuration")
    check(page, f"{HEAD}profiles: [{{schedulerName: other}}]\n")
    page.wait_for_selector("text=Valid")
    assert "schedulerName: other" in page.locator(".m-answer .m-mono").first.inner_text()
    page.wait_for_selector("text=Profile other")


def test_a_pasted_text_imports_nothing(served, look):
    page = look(served).open("/configuration")
    check(page, f"{HEAD}profiles: [{{plugins: {{score: {{enabled: [{{name: 'os:path'}}]}}}}}}]\n")
    page.wait_for_selector("text=use the plugin's name here")
