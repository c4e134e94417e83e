"""What three open browsers cost a scheduler.

`python -m tests.web.browser.scheduler_cost [--nodes N] [--pods N]` measures it.

`moorage run` schedules pods that come and go on a large embedded cluster, in blocks that alternate between
three browsers (Queue, Cluster, Pod) and none. The main thread schedules, the others answer: processor time of
the main thread is compared per pod, that of the others per second. So little depends on what else the machine
does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.moorage_process import MoorageProcess
from tests.cluster.objects import scheduler_config
from tests.web.browser.conftest import Looking, Served, browsing, start
from tests.web.browser.live_cluster import Client

TICKS = os.sysconf("SC_CLK_TCK")
GONE_SECONDS = 8
"""Pages that were closed go on for a while, in case that they come back."""
PAGES = {"/": "text=default/stuck", "/cluster": "canvas", "/pod/default/stuck": "text=Attempt 1"}


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    main: float
    others: float


def spent(pid: int) -> Spent:
    """Of a process so far, its main thread apart."""
    times = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        times[int(task.name)] = (int(fields[11]) + int(fields[12])) / TICKS
    return Spent(time.monotonic(), times.pop(pid), sum(times.values()))


def deployment(name: str, replicas: int) -> dict[str, Any]:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "10m"}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


class Measured:
    """A scheduler of its own, on an embedded cluster that is full of pods."""

    def __init__(self, folder: Path, nodes: int, pods: int) -> None:
        kubeconfig = folder / "kubeconfig"
        manifest = folder / "pods.json"
        items = [deployment("filler", pods), deployment("churn", 0)]
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        flags = ("--nodes", str(nodes), "--port", "0", "--no-scheduler", "--apply", str(manifest))
        self.cluster = start("up", "--no-ui", *flags, "--kubeconfig", str(kubeconfig))
        assert self.cluster.stdout is not None
        while "is up" not in (line := self.cluster.stdout.readline()):
            assert line, self.cluster.communicate()
        connection = {"qps": 5000, "burst": 5000}
        config = scheduler_config({"schedulerName": "default-scheduler"}, clientConnection=connection)
        self.scheduler = MoorageProcess(folder, "scheduler", kubeconfig, config, "--leader-elect=false")
        self.scheduler.start_ready()
        server = f"https://127.0.0.1:{self.scheduler.port}"
        self.flags = ("--server", server, "--kubeconfig", str(kubeconfig))
        self.client = Client(kubeconfig)
        try:
            self.wait("filler", pods)
        except BaseException:
            self.stop()
            raise
        self.client.create_pod("stuck", nodeSelector={"none": "such"})

    def wait(self, name: str, pods: int) -> None:
        """Until the API server has so many pods of a Deployment, all running: the scheduler is not asked."""
        deadline = time.monotonic() + 1800
        while not self._has(name, pods):
            assert time.monotonic() < deadline, f"{name} has not {pods} pods that run"
            time.sleep(0.5)

    def _has(self, name: str, pods: int) -> bool:
        path = f"/apis/apps/v1/namespaces/default/deployments/{name}"
        try:
            if self.client.get(path)["status"].get("readyReplicas", 0) != pods:
                return False
            query = f"limit=1&labelSelector=app%3D{name}"
            return bool(pods) or not self.client.get(f"/api/v1/namespaces/default/pods?{query}")["items"]
        except OSError:  # a server under load refuses connections now and then
            return False

    def scale(self, replicas: int) -> None:
        body = {"spec": {"replicas": replicas}}
        path = "/apis/apps/v1/namespaces/default/deployments/churn"
        self.client.send("PATCH", path, body, "application/merge-patch+json")

    def block(self, pods: int) -> tuple[float, float]:
        """Milliseconds of the main thread per pod that comes, is bound and goes; share of the others."""
        before = spent(self.scheduler.pid)
        self.scale(pods)
        self.wait("churn", pods)
        self.scale(0)
        self.wait("churn", 0)
        after = spent(self.scheduler.pid)
        wall, main, others = (b - a for a, b in zip(before, after, strict=True))
        return 1000 * main / pods, 100 * others / wall

    def stop(self) -> None:
        self.scheduler.stop()
        self.cluster.terminate()
        self.cluster.communicate(timeout=60)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--nodes", type=int, default=5000)
    options.add_argument("--pods", type=int, default=50_000)
    options.add_argument("--churn", type=int, default=2000)
    options.add_argument("--blocks", type=int, default=6)
    given = options.parse_args()
    found: dict[int, list[tuple[float, float]]] = {0: [], len(PAGES): []}
    with tempfile.TemporaryDirectory() as folder:
        measured = Measured(Path(folder), given.nodes, given.pods)
        try:
            served = Served(*measured.flags, "--insecure-skip-tls-verify")
            with browsing() as chromium:
                measured.block(given.churn)
                for number in range(2 * given.blocks):
                    opened = [open_page(chromium, served, path) for path in (PAGES if number % 2 else ())]
                    found[len(opened)].append(measured.block(given.churn))
                    main_ms, answers = found[len(opened)][-1]
                    print(f"{len(opened)} browsers: {main_ms:.3f} ms/pod, answers {answers:.2f} %", flush=True)
                    for looking in opened:
                        looking.context.close()
                    time.sleep(GONE_SECONDS)
            served.stop()
        finally:
            measured.stop()
    report(found)


def open_page(chromium: Any, served: Served, path: str) -> Looking:
    looking = Looking(chromium, served)
    looking.open(path).wait_for_selector(PAGES[path])
    return looking


def report(found: dict[int, list[tuple[float, float]]]) -> None:
    (bare, idle), (loaded, busy) = (
        [statistics.median(each) for each in zip(*found[number], strict=True)] for number in (0, len(PAGES))
    )
    more = 100 * (loaded / bare - 1)
    print(f"main thread per pod: {bare:.3f} ms, with browsers {loaded:.3f} ms ({more:+.1f} %)")
    print(f"answers: {idle:.2f} % of a processor, with browsers {busy:.2f} %")


if __name__ == "__main__":
    main()
