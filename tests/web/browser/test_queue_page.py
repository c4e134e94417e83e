"""Queue, on a snapshot."""

from __future__ import annotations

import pytest

from tests.web.browser import clusters

pytestmark = [pytest.mark.ui, pytest.mark.slow]


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    return serve("--snapshot", clusters.write(tmp_path_factory.mktemp("queue"), "story", clusters.story()))


def pods_of(page) -> list[str]:
    return list(page.locator(".m-table tbody a").all_inner_texts())


def test_pending_pods_are_listed_with_who_refuses_them(served, look):
    page = look(served).open("/")
    page.wait_for_selector("text=default/train")
    assert pods_of(page) == [f"default/{name}" for name in ("batch-0", "batch-1", "gated", "small", "train")]
    row = page.locator("tr", has_text="default/train")
    assert "Insufficient cpu" in row.inner_text()
    assert page.title() == "Queue · Moorage"


def test_a_group_shows_its_pods_only_and_the_address_can_be_shared(served, look):
    looking = look(served)
    page = looking.open("/")
    page.locator("button.m-group", has_text="SchedulingGates").click()
    page.wait_for_function("document.querySelectorAll('.m-table tbody a').length == 1")
    assert pods_of(page) == ["default/gated"]
    looking.shot("queue-group")
    shared = page.url.removeprefix(served.root)
    page = look(served).open(shared)
    page.wait_for_selector("text=default/gated")
    assert pods_of(page) == ["default/gated"]
    assert page.locator("button.m-chosen").inner_text().startswith("SchedulingGates")


def test_search_narrows_and_says_when_nothing_matches(served, look):
    page = look(served).open("/")
    page.wait_for_selector("text=default/train")
    page.keyboard.press("/")
    page.wait_for_selector("input[type=search]:focus")
    page.keyboard.type("batch")
    page.wait_for_function("document.querySelectorAll('.m-table tbody a').length == 2")
    page.keyboard.type("-none")
    page.wait_for_selector("text=No pods match.")


def test_a_cluster_without_pending_pods_says_so(serve, look, tmp_path_factory):
    empty = clusters.write(tmp_path_factory.mktemp("empty"), "empty", {"nodes": [clusters.node("one")]})
    page = look(serve("--snapshot", empty)).open("/")
    page.wait_for_selector("text=No pods are pending.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_and_can_be_switched(served, look, scheme):
    looking = look(served, scheme)
    page = looking.open("/")
    page.wait_for_selector("text=default/train")
    other = "light" if scheme == "dark" else "dark"
    page.wait_for_selector(f"body.body--{scheme}")
    looking.shot(f"queue-{scheme}")
    page.get_by_label("Light or dark").click()
    page.wait_for_selector(f"body.body--{other}")
    page.reload()
    page.wait_for_selector(f"body.body--{other}")
