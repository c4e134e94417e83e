"""`moorage bench cluster` on a real API server, with both schedulers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from moorage.api.resources import NODES, PODS, PRIORITY_CLASSES
from tests.cluster import objects
from tests.cluster.api import Api, eventually
from tests.cluster.controlplane import ControlPlane

LABEL = {"labelSelector": "moorage.dev/bench"}
SIZE = ("--nodes=20", "--pods=60", "--rounds=1", "--timeout=60")


def command(plane: ControlPlane, folder: Path, *arguments: str) -> list[str]:
    options = (f"--kubeconfig={plane.admin_config}", f"--output-dir={folder}", "--output=json", *SIZE)
    return [sys.executable, "-m", "moorage", "bench", "cluster", *options, *arguments]


def beside(programs: dict[str, str]) -> str:
    """The command line of docs/benchmarks.md."""
    return (
        f"--beside=kube-scheduler={programs['kube-scheduler']} --config={{config}} --secure-port={{port}} "
        "--bind-address=127.0.0.1 --authentication-kubeconfig={kubeconfig} --authorization-kubeconfig={kubeconfig}"
    )


def remains(api: Api) -> list[str]:
    return [obj["metadata"]["name"] for kind in (NODES, PODS, PRIORITY_CLASSES) for obj in api.list(kind, **LABEL)]


def test_both_schedulers_are_measured_and_nothing_stays_behind(
    plane: ControlPlane, programs: dict[str, str], tmp_path: Path
) -> None:
    given = command(plane, tmp_path / "out", "plain", "preemption", "many-pending", beside(programs))
    done = subprocess.run(given, capture_output=True, text=True, timeout=85)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["workload"], row["scheduler"]) for row in rows] == [
        (workload, scheduler)
        for workload in ("plain", "preemption", "many-pending")
        for scheduler in ("ceiling", "moorage", "kube-scheduler")
    ]
    assert all(row["figures"]["pods_per_second"]["median"] > 1 for row in rows)
    assert all(row["figures"]["peak_mb"]["median"] > 10 for row in rows)
    assert all(bool(row["moorage_times"]) == (row["scheduler"] == "kube-scheduler") for row in rows)
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 9
    assert not remains(plane.api)


def test_ctrl_c_deletes_everything_and_ends_the_scheduler(plane: ControlPlane, tmp_path: Path) -> None:
    process = subprocess.Popen(command(plane, tmp_path / "out", "many-pending"), stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: (tmp_path / "out" / "results.jsonl").exists(), 40, "the ceiling is measured")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        [child] = eventually(lambda: children.read_text().split(), 20, "a scheduler runs")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    finally:
        process.kill()
        assert process.stderr is not None
        errors = process.stderr.read()
        process.stderr.close()
    assert "Interrupted. A run with --output-dir" in errors
    assert not remains(plane.api)
    assert not os.path.exists(f"/proc/{child}")


def test_a_cluster_in_use_is_refused(plane: ControlPlane, tmp_path: Path) -> None:
    plane.api.create(objects.node("production"))
    done = subprocess.run(command(plane, tmp_path / "out", "plain"), capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "1 nodes that this command did not create (production)" in done.stderr
    assert not remains(plane.api)
