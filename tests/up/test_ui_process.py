"""The web UI of `moorage up`: it comes and goes with the cluster, and the cluster does not need it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from moorage.up import process
from moorage.up.cluster import EmbeddedCluster
from moorage.up.cluster_plan import ClusterPlan
from moorage.web import guard
from tests.cli.test_up import Up, until, up

installed = pytest.mark.skipif(find_spec("nicegui") is None, reason="the extra ui is not installed")


def child_of(cluster: Up) -> int:
    """The process of the pages."""
    return next(p for p in cluster.children() if "ui_child" in Path(f"/proc/{p}/cmdline").read_text())


@pytest.mark.slow
@installed
def test_the_address_that_is_printed_opens_the_pages_until_the_cluster_ends(tmp_path):
    with up(tmp_path, ui=True) as cluster:
        cluster.hear("Or open ")
        child, opened = child_of(cluster), cluster.said.split("Or open ")[1].split()[0]
        cookies = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with cookies.open(opened, timeout=60) as answer:
            assert b"Queue" in answer.read()
        code, said = cluster.end(signal.SIGINT)
        assert code == 0
        assert "Traceback" not in said
        assert not Path(f"/proc/{child}").exists()


@pytest.mark.slow
@installed
def test_a_crash_of_the_pages_is_one_log_line_and_the_cluster_goes_on(tmp_path):
    with up(tmp_path, ui=True) as cluster:
        cluster.hear("Or open ")
        os.kill(child_of(cluster), signal.SIGKILL)
        cluster.hear("The web UI ended; the cluster goes on without it")
        assert cluster.ask("GET", "/api/v1/nodes")["items"]
        code, said = cluster.end(signal.SIGINT)
        assert (code, said.count("The web UI")) == (0, 1)


@pytest.mark.slow
@installed
def test_the_pages_end_when_the_cluster_is_killed(tmp_path):
    with up(tmp_path, ui=True) as cluster:
        cluster.hear("Or open ")
        child = child_of(cluster)
        cluster.process.kill()
        cluster.process.wait()
        until(lambda: not Path(f"/proc/{child}").exists(), "the pages to end")


def test_a_taken_port_makes_the_pages_choose_another(monkeypatch):
    with socket.socket() as taken:
        taken.bind((guard.HOST, 0))
        taken.listen()
        monkeypatch.setattr(guard, "PORT", taken.getsockname()[1])
        with guard.take_port() as listening:
            assert listening.getsockname()[1] not in (0, guard.PORT)


def test_without_the_extra_there_is_a_line_that_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "find_spec", lambda name: None if name == "nicegui" else find_spec(name))
    plan = ClusterPlan.of(nodes=0, port=0, kubeconfig=tmp_path / "kubeconfig", ui=True)

    async def greeting() -> list[str]:
        async with EmbeddedCluster(plan) as cluster:
            return list(cluster.greeting())

    assert "pip install 'moorage[ui]'" in asyncio.run(greeting())[-1]
