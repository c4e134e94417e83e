"""`moorage run` as a process against an API server over HTTP: signals, exit codes, a loop that blocks."""

from __future__ import annotations

import json
import re
import signal
import ssl
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.config.builders import POLICY
from tests.endpoints.test_limits import free_port
from tests.run.api_thread import ApiThread, Running

pytestmark = pytest.mark.slow

NO_PORT = "--secure-port=0"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: true, leaseDuration: 4s, renewDeadline: 2s, retryPeriod: 500ms}}
profiles:
- schedulerName: default-scheduler
  plugins:
    {point}: {{enabled: [{{name: "plugin_under_test:UnderTest"}}]{more}}}
"""
BLOCKS = """
import time
from moorage.framework import FilterPlugin

class UnderTest(FilterPlugin):
    name = "UnderTest"

    def filter(self, state, pod, node):
        if pod.name == "blocks":
            time.sleep(5.0)
"""
SPINS = BLOCKS.replace("time.sleep(5.0)", "while True: pass")
HANGS = """
import asyncio
from moorage.framework import BindPlugin

class UnderTest(BindPlugin):
    name = "UnderTest"

    async def bind(self, state, pod, node_name):
        await asyncio.sleep(3600)
"""


@pytest.fixture
def api(tmp_path: Path):
    with ApiThread(tmp_path) as started:
        started.add_node()
        yield started


def test_c10_sigterm_releases_the_lease_and_exits_with_0(api):
    with Running(api, NO_PORT) as run:
        api.add_pod("p")
        run.until(lambda: api.node_of("p") == "n")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(30) == 0
        assert api.lease()["holderIdentity"] == ""


def test_sigusr2_writes_cache_and_queue_to_the_log_and_goes_on(api):
    with Running(api, NO_PORT) as run:
        api.add_pod("p")
        run.until(lambda: api.node_of("p") == "n")
        api.add_pod("large", cpu="900")
        run.until(lambda: "Unschedulable" in str(api.request("GET", "/api/v1/namespaces/default/pods/large")))
        run.process.send_signal(signal.SIGUSR2)
        run.until(lambda: "Dump complete; cache and queue are compared" in run.text())
        lines = run.text().splitlines()
        [node] = [line for line in lines if '"Cached node"' in line]
        assert 'node="n"' in node
        assert 'pods="1: default/p"' in node
        [queued] = [line for line in lines if '"Queued pod"' in line]
        assert 'pod="default/large" place="unschedulable" attempts=1' in queued
        api.add_pod("q")
        run.until(lambda: api.node_of("q") == "n")


def test_a_standby_dumps_its_cache_too(api):
    with Running(api, NO_PORT) as first:
        first.until(lambda: "Successfully acquired lease" in first.text())
        with Running(api, NO_PORT) as second:
            second.until(lambda: "Caches are synced" in second.text())
            second.process.send_signal(signal.SIGUSR2)
            second.until(lambda: "Dump complete; a standby does not compare" in second.text())
            assert 'node="n"' in second.text()


def test_sigint_ends_it_as_well(api):
    with Running(api, NO_PORT, "--leader-elect=false") as run:
        api.add_pod("p")
        run.until(lambda: api.node_of("p") == "n")
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(30) == 0


def test_sigterm_while_the_api_server_is_away_ends_it_too(api):
    with Running(api, NO_PORT, "--master=http://127.0.0.1:9") as run:
        run.until(lambda: "List failed" in run.text())
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(30) == 0


def test_c10_a_second_signal_ends_it_at_once(api):
    config = CONFIG.format(point="bind", more=', disabled: [{name: "*"}]')
    with Running(api, NO_PORT, plugin=HANGS, config=config) as run:
        run.until(lambda: "Successfully acquired lease" in run.text())
        api.add_pod("p")
        time.sleep(2.0)
        run.process.send_signal(signal.SIGTERM)
        run.until(lambda: "Stopping" in run.text())
        time.sleep(0.5)
        assert run.process.poll() is None, "the bind that was sent is waited for"
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(5) == 1


def test_item_2_a_hook_that_spins_is_named_at_the_first_signal_and_ended_within_a_second_by_the_next(api):
    config = CONFIG.format(point="multiPoint", more="")
    with Running(api, NO_PORT, "--leader-elect=false", plugin=SPINS, config=config) as run:
        api.add_pod("blocks")
        run.until(lambda: "The scheduling loop is held up" in run.text())
        run.process.send_signal(signal.SIGTERM)
        run.until(lambda: "Stopping waits for the scheduling loop; a second signal" in run.text(), 5)
        (line,) = [line for line in run.text().splitlines() if "Stopping waits for" in line]
        assert 'plugin="UnderTest" hook="filter"' in line
        assert run.process.poll() is None
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(1.0) == 1
        assert run.text().endswith("Second signal (SIGTERM): exiting at once\n")


FAILING_RUN = """
from moorage.framework import PostBindPlugin

class UnderTest(PostBindPlugin):
    name = "UnderTest"

    def post_bind(self, state, pod, node_name):
        return None

    async def run(self):
        raise LookupError("no metrics")
"""


CANCELS = """
import asyncio
from moorage.framework import FilterPlugin

class UnderTest(FilterPlugin):
    name = "UnderTest"

    def filter(self, state, pod, node):
        if pod.name == "cancels":
            asyncio.current_task().cancel()
"""


def test_a_scheduling_loop_that_a_plugin_cancels_fails_livez_and_ends_the_process(api):
    config, port = CONFIG.format(point="multiPoint", more=""), free_port()
    with Running(api, f"--secure-port={port}", plugin=CANCELS, config=config) as run:
        run.until(lambda: "Successfully acquired lease" in run.text())
        api.add_pod("cancels")
        assert run.process.wait(30) == 1
        assert 'reason="the task engine of the scheduler was cancelled"' in run.text()
        assert api.lease()["holderIdentity"] == "", "another replica takes over at once"


def test_item_5_readyz_names_a_plugin_whose_run_fails_and_passes(api):
    config, port = CONFIG.format(point="multiPoint", more=""), free_port()
    with Running(api, f"--secure-port={port}", plugin=FAILING_RUN, config=config) as run:
        run.until(lambda: "run() of a plugin failed" in run.text())
        anyone = ssl._create_unverified_context()
        address = f"https://127.0.0.1:{port}/readyz?verbose"
        with urllib.request.urlopen(address, context=anyone, timeout=10) as answer:
            assert re.search(r"\[!\]plugin-run: run\(\) of UnderTest failed \d+ times", answer.read().decode())


def test_c13_a_plugin_that_blocks_the_loop_loses_the_lease_and_nothing_is_bound_afterwards(api):
    config = CONFIG.format(point="multiPoint", more="")
    with Running(api, NO_PORT, plugin=BLOCKS, config=config) as run:
        api.add_pod("fine")
        run.until(lambda: api.node_of("fine") == "n")
        api.add_pod("blocks")
        assert run.process.wait(60) == 1
        assert api.node_of("blocks") == ""
        log = run.text()
        assert "Leader election lost" in log
        assert "The scheduling loop is held up" in log
        assert 'plugin="UnderTest" hook="filter"' in log
        assert "time.sleep(5.0)" in log, "the stack shows where"


def test_two_replicas_take_over_from_each_other(api, tmp_path):
    config = CONFIG.format(point="multiPoint", more="")
    plain = BLOCKS.replace("time.sleep(5.0)", "pass")
    with Running(api, NO_PORT, plugin=plain, config=config) as first:
        first.until(lambda: "Successfully acquired lease" in first.text())
        other = ApiFolder(api, tmp_path / "second")
        with Running(other, NO_PORT, plugin=plain, config=config) as second:
            second.until(lambda: "New leader elected" in second.text())
            first.process.kill()
            api.add_pod("p")
            second.until(lambda: api.node_of("p") == "n", 30)
            assert "Successfully acquired lease" in second.text()


class ApiFolder(ApiThread):
    """The server of another ApiThread, with another folder for files."""

    def __init__(self, api: ApiThread, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.kubeconfig, self.url, self.token = folder, api.kubeconfig, api.url, api.token


def test_a_wrong_kubeconfig_is_reported_in_one_line(api, tmp_path):
    with Running(api, NO_PORT, f"--kubeconfig={tmp_path}/nowhere") as run:
        assert run.process.wait(30) == 1
        assert "no such file" in run.text()
        assert "Traceback" not in run.text()


class OnlyB(BaseHTTPRequestHandler):
    """An extender that lets nodes pass whose name is b."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        items = [node for node in asked["Nodes"]["items"] if node["metadata"]["name"] == "b"]
        answer = json.dumps({"Nodes": {"items": items}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


def test_a_published_policy_starts_a_scheduler_that_asks_its_extender(api):
    with ThreadingHTTPServer(("127.0.0.1", 0), OnlyB) as extender:
        threading.Thread(target=extender.serve_forever, daemon=True).start()
        policy = api.folder / "policy.json"
        policy.write_text(POLICY.replace("10262", str(extender.server_port)))
        for name in ("a", "b", "c"):
            api.add_node(name)
        flags = (f"--policy-config-file={policy}", "--scheduler-name=default-scheduler")
        with Running(api, NO_PORT, "--leader-elect=false", *flags) as run:
            api.add_pod("p")
            run.until(lambda: api.node_of("p") == "b")
        extender.shutdown()
