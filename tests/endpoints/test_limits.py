"""`moorage run` at its limits: no file descriptors, a large cluster, a loop that never comes back."""

from __future__ import annotations

import resource
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing, suppress
from pathlib import Path

import pytest

from moorage.api import decoding
from moorage.api.resources import NODES, PODS
from moorage.testing import make_node, make_pod
from tests.run.api_thread import ROOT, ApiThread, Running

pytestmark = pytest.mark.slow

STARVED = 6.0
"""Seconds without descriptors; the pauses between tries grow from 0.8 s."""


@pytest.fixture
def api(tmp_path: Path):
    with ApiThread(tmp_path) as started:
        yield started


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return int(listening.getsockname()[1])


def ask(port: int, path: str) -> tuple[int, str]:
    """Return (status, text), or the status 0 if no server answers."""
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", timeout=5, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="another process's limits are set on Linux only")
def test_c14_without_file_descriptors_it_waits_and_goes_on_when_there_are_some(api):
    """Connections are cut and no socket can be opened, neither to the server nor for those who ask."""
    api.add_node()
    port = free_port()
    flags = ("--leader-elect=false", f"--secure-port={port}", "--bind-address=127.0.0.1")
    with Running(api, *flags) as run:
        api.add_pod("before")
        run.until(lambda: api.node_of("before") == "n")
        limits = resource.prlimit(run.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(run.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        api.cut()
        api.add_pod("during")
        said, used = len(run.text()), run.cpu_seconds()
        for _ in range(20):
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
        time.sleep(STARVED)
        spent, lines = run.cpu_seconds() - used, run.text()[said:].splitlines()
        assert run.process.poll() is None
        assert api.node_of("during") == ""
        assert any("cannot connect" in line and "Too many open files" in line for line in lines), lines
        assert any("No connection can be accepted" in line for line in lines), lines
        print(f"{spent:.2f} s of a processor and {len(lines)} lines in {STARVED:g} s")
        assert spent < STARVED / 4, "it must not spin"
        assert len(lines) < 200
        resource.prlimit(run.process.pid, resource.RLIMIT_NOFILE, limits)
        run.until(lambda: api.node_of("during") == "n", 60)
        run.until(lambda: ask(port, "/livez")[0] == 200, 20)


def test_c15_it_is_ready_when_a_large_cluster_has_been_read_and_binds_nothing_before(api):
    """2,000 nodes, all but one full, and 6,000 pods."""
    count, port = 2000, free_port()

    def fill() -> None:
        for i in range(count):
            node = f"n-{i:04}"
            api.store.load(NODES, decoding.to_builtins(make_node(node, cpu="1")))
            for part in range(3 if i != 1234 else 0):
                old = make_pod(f"old-{i}-{part}", cpu="300m", node=node, phase="Running")
                api.store.load(PODS, decoding.to_builtins(old))
        api.store.load(PODS, decoding.to_builtins(make_pod("new", cpu="800m")))

    api.do(fill)
    answers: list[tuple[int, str]] = []
    with Running(api, "--leader-elect=false", f"--secure-port={port}", "--bind-address=127.0.0.1") as run:
        while not answers or answers[-1][0] != 200:
            bound = api.node_of("new")
            assert not bound or "Caches are synced" in run.text(), "bound before everything was read"
            answers.append(ask(port, "/readyz"))
            assert run.process.poll() is None, run.text()[-2000:]
            assert len(answers) < 10_000
        assert "Caches are synced" in run.text()
        refused = [text for status, text in answers if status == 500]
        assert refused, "it was asked before it was ready"
        assert all("sched-handler-sync" in text for text in refused)
        run.until(lambda: api.node_of("new") == "n-1234")


BLOCKED = """
import asyncio, random, time
from moorage.app.clock import LeaseClock
from moorage.run.election import ElectionThread, make_candidate
from moorage.client.lease import Fence, Terms
from moorage.store.local import LocalClient
from moorage.store.store import Store

class Client(LocalClient):
    async def close(self):
        pass

class Watcher:
    def on_leading(self, lease):
        print("leads", flush=True)
        time.sleep(60)  # a hook that never comes back holds the loop
        print("came back", flush=True)

    def on_lost(self, reason):
        print("told", flush=True)

async def main():
    began = time.monotonic()
    terms = Terms(1.2, 0.8, 0.2)
    fence = Fence(LeaseClock().now, terms)
    store = Store(time.time, random.Random(0))
    election = ElectionThread(
        connect=lambda clock: Client(store, clock),
        candidate=make_candidate("me", "lease", "default", terms),
        fence=fence,
        beats=lambda: time.monotonic() - began < 1.0,
        loop=asyncio.get_running_loop(),
        watcher=Watcher(),
        last_resort=0.5,
    )
    election.start()
    await asyncio.sleep(3600)

asyncio.run(main())
"""


def test_a_process_whose_loop_never_comes_back_is_ended_after_the_lease_is_lost():
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.split() == ["leads"], "the loop was held up until the end"
    assert "The lease is lost and the scheduler does not exit; exiting now" in done.stderr
    assert time.monotonic() - began < 20
