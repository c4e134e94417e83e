"""A cluster in which pods come and go, recorded while its API server fails, and replayed.

MOORAGE_RECORD_SECONDS says for how long; a minute unless it is set.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.api.resources import NODES, PODS
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.controlplane import ControlPlane, running
from tests.cluster.processes import Daemon
from tests.cluster.test_explain import CONFIG, USER, reader

SECONDS = float(os.environ.get("MOORAGE_RECORD_SECONDS", "60"))
NODE_COUNT = 5
BACK_SECONDS = 15.0
"""Until informers have found out that the API server is there again."""
MOORAGE = [sys.executable, "-m", "moorage"]


@pytest.fixture
def own_plane(programs: dict[str, str], tmp_path: Path) -> Iterator[ControlPlane]:
    """The shared one has companions that would not survive a restart."""
    with running(tmp_path / "plane", programs) as plane:
        yield plane


class Churn:
    """Pods come and go, and now and then a node; `placed` is what the API server said of each pod last."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane, self._api = plane, plane.api
        self.scheduler = plane.start_kube_scheduler(CONFIG)
        self._random = random.Random(7)
        self._number = 0
        self._sparing_until = 0.0
        self.placed: dict[str, str] = {}
        for number in range(NODE_COUNT):
            self._node(number)

    def run(self, seconds: float) -> None:
        """Restarts the API server in the middle, without its history."""
        end = time.monotonic() + seconds
        self._until(end - seconds * 0.3)
        lost = self._random.randrange(NODE_COUNT)
        self._api.delete(NODES, f"n-{lost}", "")
        self._until(end - seconds * 0.2)
        self._node(lost)
        self._until(end - seconds * 0.15)
        self._plane.stop_apiserver()
        self._plane.compact_etcd()
        self._plane.start_apiserver()
        # What comes and goes before a watcher is back is seen by none: the server has no history any more.
        self._sparing_until = time.monotonic() + BACK_SECONDS
        self._until(max(end, self._sparing_until + seconds * 0.1))

    def settle(self) -> None:
        """Until each pod is on a node, but for those that fit on none."""

        def settled() -> bool:
            self._keep_scheduling()
            found = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self._api.list(PODS)}
            self.placed.update({f"default/{name}": node for name, node in found.items()})
            return all(node or name.startswith("large") for name, node in found.items())

        eventually(settled, 60, "all pods are bound")

    def _keep_scheduling(self) -> None:
        """kube-scheduler ends itself when it finds, after the restart, a pod on another node than the one
        that had the name before; it is started again, as a kubelet would."""
        if not self.scheduler.running:
            self.scheduler.start()

    def _until(self, end: float) -> None:
        while time.monotonic() < end:
            self._keep_scheduling()
            self._step()
            time.sleep(0.2)

    def _step(self) -> None:
        self._number += 1
        if self._number % 20 == 1:
            self._api.create(objects.pod(f"large-{self._number}", cpu="64"))
        self._api.create(objects.pod(f"p-{self._number}", cpu="100m"))
        there = [pod for pod in self._api.list(PODS) if pod["spec"].get("nodeName")]
        if len(there) > 30 and time.monotonic() > self._sparing_until:
            for pod in self._random.sample(there, 3):
                name = pod["metadata"]["name"]
                self.placed[f"default/{name}"] = pod["spec"]["nodeName"]
                self._api.delete(PODS, name, now=True)
        if self._number % 15 == 0:
            self._come_again()

    def _come_again(self) -> None:
        """One that is deleted is there again under its name, and not on a node yet."""
        if self._api.find(PODS, "again"):
            self._api.delete(PODS, "again", now=True)
        self._api.create(objects.pod("again", cpu="100m"))

    def _node(self, number: int) -> None:
        self._api.create(objects.node(f"n-{number}", labels={"topology.kubernetes.io/zone": f"z-{number % 2}"}))


def simulate(record: Path, folder: Path, *options: str, hash_seed: str = "0") -> dict[str, str]:
    """`moorage simulate`: pod → node in the end."""
    done = subprocess.run(
        [*MOORAGE, "simulate", str(record), "--output-dir", str(folder), *options],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    with (folder / "placements.csv").open() as file:
        return {row["pod"]: row["node"] for row in csv.DictReader(file)}


def seen_bound(record: bytes) -> dict[str, str]:
    """Pods that were on a node when the recorder saw them first: they came while the API server had just come
    back. They keep their node in any replay."""
    found, seen = {}, set()
    for line in map(json.loads, record.splitlines()):
        name = f"default/{line['resource']['metadata']['name']}"
        if line["resource"]["kind"] != "Pod":
            continue
        if line["event"] == "Add" and name not in seen and line["resource"]["spec"].get("nodeName"):
            found[name] = line["resource"]["spec"]["nodeName"]
        seen.add(name)
    return found


def problems(folder: Path) -> list[str]:
    found: list[str] = json.loads((folder / "summary.json").read_text())["problems"]
    return found


def test_a_record_of_a_churning_cluster_replays_as_it_was_and_twice_alike(
    own_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig, day = reader(own_plane, "watch"), tmp_path / "day.jsonl.gz"
    churn = Churn(own_plane)
    command = [*MOORAGE, "record", str(day), "--kubeconfig", str(kubeconfig), "--snapshots", "10s"]
    recorder = Daemon("record", command, tmp_path)
    recorder.start()
    try:
        recorder.wait_until(lambda: day.exists() and day.stat().st_size > 0, 30)
        churn.run(SECONDS)
        churn.settle()
        time.sleep(3)  # what the API server has said arrives, and is flushed
        killed = day.read_bytes()
        assert recorder.stop() == 0, recorder.last_lines()
    finally:
        recorder.kill()
        churn.scheduler.stop()
    calls = own_plane.calls(USER)
    assert calls
    assert {call.verb for call in calls} == {"list", "watch"}, "recording has written"

    kept = simulate(day, tmp_path / "kept", "--as-scheduled")
    assert problems(tmp_path / "kept") == []
    text = gzip.decompress(day.read_bytes())
    found = seen_bound(text)
    assert len(found) < len(churn.placed) / 4
    assert {**kept, **found} == churn.placed
    assert not kept.keys() & found.keys()
    pending = [pod for pod, node in kept.items() if not node]

    first = simulate(day, tmp_path / "first", hash_seed="1")
    second = simulate(day, tmp_path / "second", hash_seed="2")
    assert first.keys() == second.keys() == kept.keys()
    placements = [(tmp_path / run / "placements.csv").read_text() for run in ("first", "second")]
    assert placements[0] == placements[1]
    assert problems(tmp_path / "first") == []

    (torn := tmp_path / "torn.jsonl.gz").write_bytes(killed[: len(killed) * 2 // 3])
    half = simulate(torn, tmp_path / "half", "--as-scheduled")
    assert any("truncated" in problem for problem in problems(tmp_path / "half"))
    (tmp_path / "torn.jsonl").write_bytes(text[: len(text) // 2])
    simulate(tmp_path / "torn.jsonl", tmp_path / "half-text")
    assert any("truncated" in problem for problem in problems(tmp_path / "half-text"))
    same = sum(first[pod] == node for pod, node in kept.items())
    taken = list((tmp_path / "day.snapshots").iterdir())
    with capsys.disabled():
        print(
            f"\n  {len(text.splitlines())} lines, {day.stat().st_size} bytes, {len(taken)} snapshots, "
            f"{len(churn.placed)} pods, {len(found)} seen bound, {len(pending)} pending; "
            f"{len(half)} in the torn record; {same} decided as kube-scheduler did"
        )
