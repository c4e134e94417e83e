"""kube-scheduler's stable and beta metrics beside Moorage's, after the same scenario.

Both schedule the same pods under the same name, one after the other, on the real API server. Every metric
that kube-scheduler calls stable or beta must have the same type, labels and rows (combinations of label
values) with Moorage, and the same numbers where the scenario determines them; what may differ stands in
`ONLY_KUBE` and `ONLY_MOORAGE`, each with its reason.
"""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage.api.resources import PODS
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.conftest import clean
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.test_two_schedulers import scraper
from tests.cluster.worlds import SCHEDULER, World

Row = frozenset[tuple[str, str]]

SAMPLED = (".*", "both measure one attempt in ten, chosen by chance")
ONLY_KUBE = {
    "scheduler_goroutines": (
        "operation=(Filter|Score|DefaultPreemption|InterPodAffinity|PodTopologySpread)",
        "work that kube-scheduler spreads over goroutines, node by node, is one pass over columns here",
    ),
    "scheduler_plugin_evaluation": (
        "extension_point=PreFilter,plugin=(NodeUnschedulable|TaintToleration)",
        "their PreFilter only lets deferred resizes pass, which are alpha (kube-scheduler-1.37, section 14)",
    ),
    "scheduler_plugin_execution_duration_seconds": SAMPLED,
}
"""Metric → (pattern of rows that only kube-scheduler has, why)."""
ONLY_MOORAGE = {"scheduler_plugin_execution_duration_seconds": SAMPLED}
"""Rows that only Moorage has."""
PERMIT = "scheduler_permit_wait_duration_seconds"
"""The one stable or beta metric without samples: neither has a Permit plugin here that lets pods wait."""
FLUSH = 2.5
"""Seconds; kube-scheduler writes some of its durations once a second."""
BACKOFF: dict[str, Any] = {"podInitialBackoffSeconds": 60, "podMaxBackoffSeconds": 60}
"""So long that every wake-up meets a pod that backs off, however slow the machine; with nothing else to do
both take pods out of their backoff."""
COUNTED = (
    "scheduler_schedule_attempts", "scheduler_pending_pods", "scheduler_unschedulable_pods",
    "scheduler_queue_incoming_pods", "scheduler_preemption_attempts", "scheduler_preemption_victims",
    "scheduler_pod_scheduling_attempts",
)  # fmt: skip
"""Metrics whose numbers the scenario determines."""


@dataclass(frozen=True)
class Family:
    """What is compared of a metric."""

    type: str
    stability: str
    labels: frozenset[str]
    rows: frozenset[Row]
    edges: frozenset[str]
    """Bounds of a histogram's buckets."""


@dataclass(frozen=True)
class Scrapes:
    kube: str
    moorage: str


def read(text: str) -> dict[str, Family]:
    """The scheduler's metrics that are promised to stay, with at least one sample."""
    found = {}
    for family in text_string_to_metric_families(text):
        stability = re.match(r"\[(STABLE|BETA)\]", family.documentation)
        if stability and family.samples and family.name.startswith("scheduler_"):
            labels = [{k: v for k, v in s.labels.items() if k != "le"} for s in family.samples]
            found[family.name] = Family(
                family.type,
                stability[1],
                frozenset(key for row in labels for key in row),
                frozenset(frozenset(row.items()) for row in labels),
                frozenset(sample.labels["le"] for sample in family.samples if "le" in sample.labels),
            )
    return found


@pytest.fixture(scope="module")
def scrapes(shared_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Scrapes:
    """The scenario with one scheduler, then with the other."""
    token, folder = scraper(shared_plane), tmp_path_factory.mktemp("metrics")
    account = shared_plane.kubeconfig("moorage", token=shared_plane.token("moorage", NAMESPACE))
    world = World("real", shared_plane.api, folder, account)
    try:
        kube = shared_plane.start_kube_scheduler(objects.scheduler_config({"schedulerName": SCHEDULER}, **BACKOFF))
        try:
            play(world)
            time.sleep(FLUSH)
            port = next(word for word in kube.command if word.startswith("--secure-port=")).split("=")[1]
            of_kube = scrape(port, token)
        finally:
            kube.stop()
        clean(world.api)
        process = world.moorage(**BACKOFF)
        play(world)
        of_moorage = scrape(str(process.port), token)
    finally:
        world.stop()
        clean(world.api)
    (folder / "kube.txt").write_text(of_kube)
    (folder / "moorage.txt").write_text(of_moorage)
    return Scrapes(of_kube, of_moorage)


def scrape(port: str, token: str) -> str:
    request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics")
    request.add_header("Authorization", f"Bearer {token}")
    context = ssl._create_unverified_context()  # the certificate of either is its own
    with urllib.request.urlopen(request, timeout=10, context=context) as answer:
        return str(answer.read().decode())


def play(world: World) -> None:
    """Each step is waited for, so that the queue moves in the same way every time."""
    world.nodes("n1", "n2", cpu="2", labels={"pool": "small"})
    world.nodes("n3", cpu="1", labels={"pool": "full"})
    world.api.create(objects.priority_class("important", 1000))
    # Scheduled: with a choice of nodes, without one, with affinity, with spreading, with a port.
    for name, spec in scheduled():
        world.pod(name, **spec)
        world.wait_bound(name)
    # Never fits.
    world.pod("huge", cpu="64")
    world.wait_refused("huge")
    # Gated for good, and gated for a while.
    gates = [{"name": "example.com/wait"}]
    world.pod("gated", schedulingGates=gates)
    world.pod("released", schedulingGates=gates)
    world.api.patch(PODS, "released", {"spec": {"schedulingGates": []}})
    world.wait_bound("released")
    # Refused until a node changes.
    world.pod("choosy", nodeSelector={"disk": "ssd"})
    world.wait_refused("choosy")
    world.label("n2", disk="ssd")
    world.wait_bound("choosy")
    # Waits for a pod to go.
    world.pod("next", cpu="900m", nodeSelector={"pool": "full"})
    world.wait_refused("next")
    world.api.delete(PODS, "filler", now=True)
    world.wait_bound("next")
    # Preempts.
    world.pod("first", cpu="900m", nodeSelector={"pool": "full"}, priorityClassName="important")
    assert world.wait_bound("first") == "n3"
    world.wait_gone(PODS, "next")
    eventually(lambda: world.events_of("next", "Preempted"), 30, "the victim is told")


def scheduled() -> list[tuple[str, objects.Json]]:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    near = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    return [
        ("plain", {"nodeSelector": {"pool": "small"}}),
        ("filler", {"cpu": "800m", "nodeSelector": {"pool": "full"}}),
        ("spread", {"labels": {"app": "web"}, "topologySpreadConstraints": [spread]}),
        ("near", {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}),
        ("port", {"ports": [{"containerPort": 80, "hostPort": 8080}]}),
    ]


def test_every_stable_and_beta_metric_is_there(scrapes: Scrapes) -> None:
    kube, moorage = read(scrapes.kube), read(scrapes.moorage)
    assert len(kube) == 14, sorted(kube)
    assert PERMIT not in kube
    assert sorted(kube) == sorted(moorage)
    for name, theirs in kube.items():
        ours = moorage[name]
        assert (name, ours.type, ours.stability) == (name, theirs.type, theirs.stability)
        assert (name, ours.labels, ours.edges) == (name, theirs.labels, theirs.edges)


def test_every_row_is_there(scrapes: Scrapes) -> None:
    kube, moorage = read(scrapes.kube), read(scrapes.moorage)
    problems = []
    for name in sorted({*kube, *moorage}):
        theirs = kube[name].rows if name in kube else frozenset()
        ours = moorage[name].rows if name in moorage else frozenset()
        problems += [f"only kube-scheduler: {row}" for row in unexcused(name, theirs - ours, ONLY_KUBE)]
        problems += [f"only Moorage: {row}" for row in unexcused(name, ours - theirs, ONLY_MOORAGE)]
    assert problems == [], "\n".join(problems)


def test_what_the_scenario_determines_is_counted_alike(scrapes: Scrapes) -> None:
    assert numbers(scrapes.moorage) == numbers(scrapes.kube)


def numbers(text: str) -> dict[tuple[str, Row], float]:
    """Sample → value; of histograms their counts and buckets too, whose values are whole numbers here."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.name in COUNTED
    }


def unexcused(name: str, rows: frozenset[Row], excused: dict[str, tuple[str, str]]) -> list[str]:
    pattern = excused.get(name, ("", ""))[0]
    texts = (f"{name}{{{','.join(f'{key}={value}' for key, value in sorted(row))}}}" for row in rows)
    return sorted(text for text in texts if not pattern or not re.search(pattern, text))


def test_promtool_finds_no_fault(scrapes: Scrapes, tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed; prometheus-client's parser has read the output in the others")
    done = subprocess.run(["promtool", "check", "metrics"], input=scrapes.moorage, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
