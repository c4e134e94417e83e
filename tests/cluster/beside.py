"""Moorage and kube-scheduler on the same real API server, one after the other, on this machine.

    python -m tests.cluster.beside churn       [--nodes N] [--rate N] [--minutes N] [--scheduler NAME]
    python -m tests.cluster.beside terms       [--nodes N] [--rounds N]

`churn`: memory while pods come and go without pause, and its slope after the first twenty minutes. `terms`: how
long pods wait beside 150 pods of another tenant with 500 terms each, and what those cost. Both schedulers hold a
lease of their own and run their default profile; etcd does not wait for the disk. `moorage bench cluster` measures
throughput and starts.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moorage.api.resources import PODS
from tests.cluster import greedy, objects
from tests.cluster.api import Json
from tests.cluster.controlplane import ControlPlane, find_programs, running
from tests.cluster.processes import Daemon, free_port

MOORAGE, KUBE = "moorage", "kube-scheduler"
NAMESPACE = "moorage"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PATIENCE = 600.0
SETTLED = 1200.0
"""Seconds after which memory should no longer grow."""


def fill(plane: ControlPlane, nodes: int) -> None:
    plane.api.create(objects.namespace(NAMESPACE))
    print(f"making {nodes} nodes", flush=True)
    plane.api.create_all(
        (objects.node(f"node-{i}", cpu="32", memory="128Gi", labels={ZONE: f"zone-{i % 3}"}) for i in range(nodes)),
        workers=16,
    )


class Contender(Daemon):
    """One of the two schedulers, as a process with a lease of its own."""

    def __init__(self, which: str, plane: ControlPlane, run: str) -> None:
        folder = plane.folder / run
        folder.mkdir()
        kubeconfig, self._port = plane.admin_config, free_port()
        config = objects.scheduler_config(
            {"schedulerName": run},
            clientConnection={"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
            leaderElection={"leaderElect": True, "resourceName": run, "resourceNamespace": NAMESPACE},
        )
        file = folder / "config.yaml"
        file.write_text(json.dumps(config))
        serving = [f"--secure-port={self._port}", "--bind-address=127.0.0.1", f"--cert-dir={folder}"]
        if which == MOORAGE:
            command = [sys.executable, "-m", "moorage", "run", f"--kubeconfig={kubeconfig}"]
        else:
            command = [
                find_programs()[KUBE],
                f"--authentication-kubeconfig={kubeconfig}",
                f"--authorization-kubeconfig={kubeconfig}",
            ]
        super().__init__(which, [*command, f"--config={file}", *serving], folder)

    def is_ready(self) -> bool:
        context = ssl._create_unverified_context()  # its certificate is its own
        try:
            url = f"https://127.0.0.1:{self._port}/readyz"
            with urllib.request.urlopen(url, timeout=5, context=context) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def memory(self, field: str = "VmRSS") -> float:
        """In MB; `VmHWM` is the peak."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
        raise AssertionError(f"/proc has no {field} of {self.name}")

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def terms(plane: ControlPlane, rounds: int) -> None:
    for number in range(rounds):
        for kind, affinity in (("required", greedy.away), ("preferred", greedy.near)):
            for which in (MOORAGE, KUBE):
                _terms(plane, which, f"{kind}-{which}-{number}", affinity)


def _terms(plane: ControlPlane, which: str, run: str, affinity: greedy.Affinity) -> None:
    scheduler = Contender(which, plane, run)
    scheduler.start()
    try:
        scheduler.wait_until(scheduler.is_ready, PATIENCE)
        before = scheduler.processor_seconds(), scheduler.memory()
        waits = greedy.waits(plane.api, run, affinity, run)
        seconds, more = scheduler.processor_seconds() - before[0], scheduler.memory("VmHWM") - before[1]
    finally:
        scheduler.stop()
    print(f"{run}: waits {max(waits):.2f} s at most, {seconds:.1f} s CPU, {more:.0f} MB more", flush=True)
    plane.api.delete_all(PODS)


def churn(plane: ControlPlane, which: str, rate: float, minutes: float) -> None:
    scheduler = Contender(which, plane, "churn")
    scheduler.start()
    try:
        scheduler.wait_until(scheduler.is_ready, PATIENCE)
        began, turnover = time.monotonic(), Turnover(plane, rate)
        samples = []
        while (passed := time.monotonic() - began) < minutes * 60:
            time.sleep(30)
            samples.append((passed, scheduler.memory()))
            print(f"{passed / 60:6.1f} min {turnover.made:8} pods {samples[-1][1]:7.1f} MB", flush=True)
        turnover.end()
    finally:
        scheduler.stop()
    late = [(at, memory) for at, memory in samples if at >= SETTLED]
    if len(late) > 2:
        slope = statistics.linear_regression(*zip(*late, strict=True)).slope
        print(f"{which}: {slope * 3600:+.1f} MB an hour after {SETTLED / 60:.0f} minutes")


class Turnover:
    """A thousand pods of several kinds at any time: the oldest goes when a new one comes."""

    LIVING, WORKERS = 1000, 4

    def __init__(self, plane: ControlPlane, rate: float) -> None:
        self._api, self._pause = plane.api, self.WORKERS / rate
        self._lock, self._living, self._ended = threading.Lock(), deque[int](), False
        self.made = 0
        self._threads = [threading.Thread(target=self._work) for _ in range(self.WORKERS)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended = True
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while not self._ended:
            began = time.monotonic()
            with self._lock:
                self.made += 1
                number = self.made
            self._api.create(self._pod(number))
            with self._lock:
                self._living.append(number)
                oldest = self._living.popleft() if len(self._living) > self.LIVING else 0
            if oldest:
                self._api.delete(PODS, f"pod-{oldest}", now=True)
            time.sleep(max(0.0, self._pause - (time.monotonic() - began)))

    def _pod(self, number: int) -> Json:
        app = f"app-{number % 50}"
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        kinds: list[Json] = [
            {},
            {"nodeSelector": {ZONE: f"zone-{number % 3}"}},
            {"topologySpreadConstraints": [{**term, "maxSkew": 5, "whenUnsatisfiable": "ScheduleAnyway"}]},
            {"affinity": {"podAntiAffinity": {preferred: [{"weight": 1, "podAffinityTerm": term}]}}},
        ]
        labels = {"app": app, "number": str(number)}
        return objects.pod(f"pod-{number}", scheduler="churn", labels=labels, **kinds[number % len(kinds)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measured = parser.add_subparsers(dest="what", required=True)
    defaults: dict[str, dict[str, Any]] = {
        "terms": {"nodes": 10, "rounds": 3},
        "churn": {"nodes": 500, "rate": 100.0, "minutes": 120.0, "scheduler": MOORAGE},
    }
    for name, options in defaults.items():
        command = measured.add_parser(name)
        for option, value in options.items():
            command.add_argument(f"--{option}", type=type(value), default=value)
    given = parser.parse_args()
    calls: dict[str, Callable[[ControlPlane], None]] = {
        "terms": lambda plane: terms(plane, given.rounds),
        "churn": lambda plane: churn(plane, given.scheduler, given.rate, given.minutes),
    }
    with (
        tempfile.TemporaryDirectory(prefix="moorage-") as folder,
        running(Path(folder), find_programs(), audit=False) as plane,
    ):
        fill(plane, given.nodes)
        calls[given.what](plane)


if __name__ == "__main__":
    main()
