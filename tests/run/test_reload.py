"""Reloading as operators meet it: `moorage run` as a process, and 200 reloads under load."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import random
import signal
import ssl
import textwrap
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from moorage.api.resources import PODS
from moorage.app.clock import SystemClock
from moorage.app.reloading import Reloader
from moorage.app.scheduler import Scheduler
from moorage.client.http_client import HttpClient
from moorage.framework import Plugin
from moorage.runtime.profile import Profile
from moorage.testing import make_pod
from moorage.up.cluster import EmbeddedCluster
from moorage.up.cluster_plan import ClusterPlan
from tests.endpoints.test_limits import free_port
from tests.run.api_thread import ApiThread, Running

pytestmark = pytest.mark.slow

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: "plugin_under_test:UnderTest"}]}}
"""
PLUGIN = """
from moorage.framework import FilterPlugin, Status

class UnderTest(FilterPlugin):
    name = "UnderTest"

    def filter(self, state, pod, node):
        return Status.unschedulable("version %d") if pod.name in %r else None
"""


@pytest.fixture
def api(tmp_path: Path):
    with ApiThread(tmp_path) as started:
        started.add_node()
        yield started


def configz(port: int) -> Any:
    anyone = ssl._create_unverified_context()
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/configz", context=anyone, timeout=10) as answer:
        return json.load(answer)


def test_run_takes_files_and_sighup_and_shows_what_is_wrong_in_configz(api):
    port = free_port()
    flags = (f"--secure-port={port}", "--insecure-skip-authentication", "--reload-plugins")
    with Running(api, *flags, plugin=PLUGIN % (1, ["p"]), config=CONFIG) as run:
        api.add_pod("p")
        run.until(lambda: "Unable to schedule pod" in run.text())
        file, code = api.folder / "config.yaml", api.folder / "plugin_under_test.py"
        file.write_text(CONFIG.replace("UnderTest", "Nobody"))
        run.until(lambda: configz(port)["reload"]["error"])
        shown = configz(port)
        assert "Nobody" in shown["reload"]["error"]
        assert shown["reload"]["generation"] == 1
        assert "UnderTest" in json.dumps(shown["componentconfig"]), "what is in use"
        file.write_text(CONFIG)
        run.until(lambda: configz(port)["reload"] == {"generation": 2, "error": "", "needsRestart": []})
        code.write_text(PLUGIN % (2, []))
        run.until(lambda: api.node_of("p") == "n")
        run.process.send_signal(signal.SIGHUP)
        run.until(lambda: configz(port)["reload"]["generation"] == 4)
        reasons = [event["reason"] for event in api.request("GET", "/api/v1/events")["items"]]
        assert {"ReloadFailed", "ConfigurationReloaded"} <= set(reasons)
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(30) == 0


RELOADS, RATE, NODES = 200, 500, 200


class CountingCluster(EmbeddedCluster):
    """A cluster whose clients count how often they bind each pod."""

    def __init__(self, plan: ClusterPlan) -> None:
        super().__init__(plan)
        self.binds: Counter[str] = Counter()

    def connect(self) -> HttpClient:
        client = super().connect()
        bind = client.bind

        async def counted(name: str, namespace: str, uid: str, node: str) -> None:
            await bind(name, namespace, uid, node)
            self.binds[name] += 1

        client.bind = counted  # type: ignore[method-assign]
        return client


class Load:
    """Pods at a steady rate, and how often each was bound."""

    def __init__(self, cluster: CountingCluster) -> None:
        self.client = cluster.connect()
        self.made = 0
        self.over = False
        self.binds = cluster.binds

    async def run(self) -> None:
        began = time.monotonic()
        while not self.over:
            due = int((time.monotonic() - began) * RATE) - self.made
            async with asyncio.TaskGroup() as group:
                for _ in range(min(due, 50)):
                    group.create_task(self._create())
            await asyncio.sleep(0.01)

    async def _create(self) -> None:
        self.made += 1
        await self.client.create(PODS, make_pod(f"p{self.made}", cpu="1m"))


def write_version(folder: Path, number: int, rng: random.Random) -> str:
    """The next configuration, with its plugin; a third of them is broken, in one of three ways."""
    (folder / "changing.py").write_text(textwrap.dedent(PLUGIN % (number, [])))
    text = CONFIG.replace("plugin_under_test", "changing")
    if rng.random() < 0.5:
        text += "- schedulerName: sometimes\n"
    broken = ["import", "plugin", "yaml"][number % 9 // 3] if number % 3 == 0 else ""
    match broken:
        case "import":
            (folder / "changing.py").write_text(f"raise LookupError({number})")
        case "plugin":
            text = text.replace("UnderTest", "Nobody")
        case "yaml":
            text += "profiles: ["
    (folder / "config.yaml").write_text(text)
    return broken


def replaced(scheduler: Scheduler, others: WeakSet[Profile]) -> list[Profile]:
    """The profiles that are alive and not in use, but for those of other tests."""
    gc.collect()
    used = {*map(id, scheduler.engine.profiles.values()), *map(id, others)}
    return [obj for obj in gc.get_objects() if isinstance(obj, Profile) and id(obj) not in used]


def test_200_reloads_under_load_lose_no_pod_bind_none_twice_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(7)
    write_version(tmp_path, 1, rng)

    async def live() -> None:
        plan = ClusterPlan.of(
            nodes=NODES,
            port=0,
            config=tmp_path / "config.yaml",
            kubeconfig=tmp_path / "kubeconfig",
            plugin_folders=(str(tmp_path),),
        )
        cluster = CountingCluster(dataclasses.replace(plan, source=None))
        async with cluster:
            scheduler, load = cluster.scheduler, Load(cluster)
            assert scheduler is not None
            others = WeakSet(replaced(scheduler, WeakSet()))
            assert plan.source is not None
            reloader = Reloader(scheduler, plan.source, SystemClock())
            pods = asyncio.ensure_future(load.run())
            slowest = 0.0
            for number in range(2, RELOADS + 2):
                broken = write_version(tmp_path, number, rng)
                before, began = reloader.outcome.generation, time.process_time()
                await reloader.reload()
                slowest = max(slowest, time.process_time() - began)
                assert reloader.outcome.generation == before + (not broken), reloader.outcome
                assert bool(reloader.outcome.error) == bool(broken), reloader.outcome
                await asyncio.sleep(0.1)
            load.over = True
            await pods
            deadline = time.monotonic() + 60
            while len(load.binds) < load.made:
                assert time.monotonic() < deadline, f"{load.made - len(load.binds)} pods are not bound"
                await asyncio.sleep(0.1)
            assert set(load.binds.values()) == {1}
            scheduler.engine.queue.pending.validate()
            scheduler.engine.cache.validate()
            await load.client.close()
            print(f"\n{load.made} pods, {RELOADS} reloads, the slowest took {slowest:.3f} s of CPU time")
            assert slowest < 2.0
            deadline = time.monotonic() + 60
            # A generation ends when the last pod that it has placed is bound, a little after the reload.
            while remaining := replaced(scheduler, others):
                assert time.monotonic() < deadline, [gc.get_referrers(profile) for profile in remaining]
                del remaining
                await asyncio.sleep(0.5)
            assert len([cls for cls in Plugin.__subclasses__() if cls.__name__ == "UnderTest"]) <= 2

    asyncio.run(live())
