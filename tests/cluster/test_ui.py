"""`moorage ui --server` on `moorage run` at the real API server: RBAC says what the token of a user shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.controlplane import ControlPlane
from tests.cluster.test_api_v1 import reader
from tests.cluster.worlds import World
from tests.web.browser.conftest import Looking, Served, browsing, missing, start

pytestmark = [pytest.mark.ui, pytest.mark.skipif(bool(missing()), reason=missing())]

ALL = ("/moorage/v1/*", "/configz")


@pytest.fixture
def flags(world: World, tmp_path: Path) -> list[str]:
    """How to reach a scheduler that has bound one pod and refused another."""
    world.nodes("n", cpu="2")
    process = world.moorage()
    world.pod("small", cpu="1")
    world.pod("big", cpu="64")
    world.wait_bound("small")
    world.wait_refused("big")
    server = f"https://127.0.0.1:{process.port}"
    return ["--server", server, "--token-file", str(tmp_path / "token"), "--insecure-skip-tls-verify"]


def test_the_pages_show_a_live_scheduler_to_whom_rbac_allows_it(
    flags: list[str], plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(reader(plane, "ui-reader", *ALL))
    served = Served(*flags)
    try:
        with browsing() as chromium:
            looking = Looking(chromium, served)
            page = looking.open("/")
            page.wait_for_selector("text=default/big")
            looking.shot("cluster-queue")
            page.locator("a", has_text="default/big").click()
            page.wait_for_selector("text=Attempt 1: unschedulable")
            assert "Insufficient cpu" in page.locator(".m-refusals").inner_text()
            page.wait_for_selector(".ag-cell >> text=Insufficient cpu")
            looking.shot("cluster-pod")
            page = looking.open("/cluster")
            page.get_by_label("Attempts per second, the last minutes").locator("canvas").wait_for()
            looking.shot("cluster-nodes")
            page = looking.open("/node/n")
            page.wait_for_selector("text=default/small")
            looking.shot("cluster-node")
            page = looking.open("/configuration")
            page.wait_for_selector("text=NodeResourcesFit")
            looking.shot("cluster-configuration")
            looking.close()
    finally:
        assert "Traceback" not in served.stop()


def test_a_page_that_rbac_does_not_allow_says_which_right_is_missing(
    flags: list[str], plane: ControlPlane, tmp_path: Path
) -> None:
    allowed = ("/moorage/v1/summary", "/moorage/v1/queue")
    (tmp_path / "token").write_text(reader(plane, "ui-queue-reader", *allowed))
    served = Served(*flags)
    try:
        with browsing() as chromium:
            looking = Looking(chromium, served)
            looking.open("/").wait_for_selector("text=default/big")
            page = looking.open("/cluster")
            page.wait_for_selector("text=a ClusterRole with the nonResourceURL /moorage/v1/nodes")
            looking.shot("cluster-forbidden")
            looking.close()
    finally:
        assert "Traceback" not in served.stop()


def test_a_token_without_rights_gets_a_sentence_and_no_pages(
    flags: list[str], plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(reader(plane, "ui-stranger"))
    process = start("ui", *flags, "--no-browser")
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert "403" in said
    assert "a ClusterRole with the nonResourceURL /moorage/v1/summary and the verb get allows it" in said
