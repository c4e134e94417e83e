"""Moorage against kube-scheduler itself: 300 pods with all kinds of constraints, one after the other.

Before a pod is created Moorage judges it on the state that the API server shows; then kube-scheduler places
it, and the next pod meets the cluster that kube-scheduler made. Compared are the totals of all feasible nodes
(kube-scheduler's come from its log), the choice, the message of pods that fit nowhere, and what preemption
would cost.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from moorage.api.versions import behaviour_of
from tests.cluster import objects
from tests.cluster.api import Api, Json, eventually
from tests.cluster.controlplane import ControlPlane, Missing, find_programs, running
from tests.cluster.judge import Judge, Verdict
from tests.cluster.kube_log import KubeLog, LoggedPod
from tests.cluster.pod_mix import Mix

PODS_TO_JUDGE = 300
SEED = int(os.environ.get("MOORAGE_DIFFERENTIAL_SEED", "36"))
CONFIG = objects.scheduler_config(percentageOfNodesToScore=100)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a pod under kube-scheduler."""

    node: str
    logged: LoggedPod
    nominated: str
    victims: tuple[str, ...]
    priorities: dict[str, int]
    """Of the pods that were there before."""

    def cost(self, victims: tuple[str, ...]) -> list[int]:
        """What is compared: nodes whose victims weigh the same are equally good."""
        return sorted(self.priorities.get(victim, 0) for victim in victims)


def test_every_verdict_is_kube_schedulers(plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    compare(plane, Judge(CONFIG), capsys)


@pytest.mark.versions
def test_every_verdict_is_that_of_the_emulated_version(
    programs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    behaviour = behaviour_of("1.36")
    try:
        older = find_programs(behaviour.release, ("kube-apiserver", "kube-controller-manager", "kube-scheduler"))
    except Missing as missing:
        pytest.skip(str(missing))
    with running(tmp_path / "plane", {**programs, **older}) as plane:
        assert plane.api.request("GET", "/version")["gitVersion"] == behaviour.release
        plane.start_controllers()
        compare(plane, Judge(CONFIG, behaviour.minor), capsys)


def compare(plane: ControlPlane, judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    """Let both judge the same pods, and fail with the differences."""
    mix = Mix(SEED)
    plane.api.create_all(mix.nodes())
    for obj in mix.others():
        plane.api.create(obj)
    eventually(lambda: all_bound(plane.api), 60, "static claims are bound")
    kube = plane.start_kube_scheduler(CONFIG, verbosity=10)
    log = KubeLog(kube.log)
    seen: Counter[str] = Counter()
    faults: list[str] = []
    try:
        for number in range(PODS_TO_JUDGE):
            needed, wanted = mix.pod(number)
            for obj in needed:
                plane.api.create(obj)
            judge.sync(plane.api)
            verdict = judge.decide(with_identity(plane.api.create(wanted, dry_run=True)))
            outcome = place(plane.api, log, wanted, number)
            faults += differences(wanted["metadata"]["name"], verdict, outcome, plane.api, seen)
    finally:
        kube.stop()
        log.close()
    with capsys.disabled():
        print(f"\n  seed {SEED}: {dict(sorted(seen.items()))}")
    assert not faults, f"seed {SEED}: {len(faults)} differences\n" + "\n".join(faults[:40])
    assert seen["placed"] > 150, seen
    assert seen["unschedulable"] > 20, seen
    assert seen["preempting"] > 3, seen
    assert seen["scores compared"] > 120, seen


def with_identity(pod: Json) -> Json:
    """A dry run gives the defaulted pod; each has a UID of its own."""
    assert pod["metadata"]["uid"]
    return pod


def all_bound(api: Api) -> bool:
    claims = api.list(PERSISTENT_VOLUME_CLAIMS)
    return bool(claims) and all(claim["status"].get("phase") == "Bound" for claim in claims)


def place(api: Api, log: KubeLog, wanted: Json, number: int) -> Outcome:
    """Create the pod and wait for kube-scheduler's verdict; a pod that fits nowhere is removed again."""
    before = {pod["metadata"]["uid"]: pod for pod in api.list(PODS)}
    meta = api.create(wanted)["metadata"]
    key = f"{meta['namespace']}/{meta['name']}"
    nominated = ""
    deadline = time.monotonic() + 60
    while True:
        pod = api.get(PODS, meta["name"], meta["namespace"])
        nominated = nominated or pod["status"].get("nominatedNodeName", "")
        log.read()
        logged = log.of(key)
        if pod["spec"].get("nodeName"):
            settle(log, key)
            start(api, meta["name"], meta["namespace"], number)
            break
        stuck = nominated and time.monotonic() > deadline - 40
        if logged.message and refused(pod) and (stuck or not nominated):
            # A nominated pod whose victims are gone may wait for a wake-up that kube-scheduler has missed.
            api.delete(PODS, meta["name"], meta["namespace"], now=True)
            break
        assert time.monotonic() < deadline, f"kube-scheduler said nothing about {key}: {pod['status']}"
        time.sleep(0.02)
    after = {pod["metadata"]["uid"] for pod in api.list(PODS)}
    gone = [pod["metadata"] for uid, pod in before.items() if uid not in after]
    victims = tuple(sorted(f"{meta['namespace']}/{meta['name']}" for meta in gone))
    priorities = {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["spec"].get("priority", 0)
        for pod in before.values()
    }
    return Outcome(pod["spec"].get("nodeName", ""), log.of(key), nominated, victims, priorities)


def start(api: Api, name: str, namespace: str, number: int) -> None:
    """As a kubelet would. Whose victims come first is decided by start times: without them kube-scheduler
    compares the moments of the comparison, and its choice is arbitrary."""
    when = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    patch = {"status": {"phase": "Running", "startTime": when.strftime("%Y-%m-%dT%H:%M:%SZ")}}
    api.patch(PODS, name, patch, namespace, subresource="status")


def refused(pod: Json) -> bool:
    """The status is written after the log line and after preemption; it tells that the attempt is over."""
    conditions = pod["status"].get("conditions", ())
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)


def settle(log: KubeLog, key: str) -> None:
    """The log may be a moment behind the API."""
    deadline = time.monotonic() + 5
    while log.of(key).attempts == 0 and time.monotonic() < deadline:
        log.read()
        time.sleep(0.01)


def differences(name: str, ours: Verdict, theirs: Outcome, api: Api, seen: Counter[str]) -> list[str]:
    logged = theirs.logged
    if logged.message:
        seen["preempting" if theirs.nominated or theirs.victims else "unschedulable"] += 1
        return _of_refusals(name, ours, theirs)
    seen["placed"] += 1
    if not ours.node:
        return [f"{name}: placed on {theirs.node} by kube-scheduler, refused by Moorage: {ours.message}"]
    if not logged.scores:
        seen["one node"] += 1
        return [] if ours.node == theirs.node else [f"{name}: only {theirs.node} fits, Moorage took {ours.node}"]
    found = []
    if logged.scores.get(ours.node) != max(logged.scores.values()):
        best = [node for node, score in logged.scores.items() if score == max(logged.scores.values())]
        found.append(f"{name}: Moorage took {ours.node}, kube-scheduler's best are {best}")
    if ours.scores:
        seen["scores compared"] += 1
        if ours.scores != logged.scores:
            found.append(f"{name}: totals differ: {_unequal(ours.scores, logged)}")
    return found


def _of_refusals(name: str, ours: Verdict, theirs: Outcome) -> list[str]:
    if ours.node:
        return [f"{name}: refused by kube-scheduler ({theirs.logged.message}), Moorage took {ours.node}"]
    found = []
    if ours.message != theirs.logged.message:
        found.append(f"{name}: messages differ:\n    kube:    {theirs.logged.message}\n    Moorage: {ours.message}")
    if bool(ours.nominated) != bool(theirs.nominated or theirs.victims):
        found.append(f"{name}: nominated {ours.nominated!r} against {theirs.nominated!r}")
    if theirs.cost(ours.victims) != theirs.cost(theirs.victims):
        found.append(
            f"{name}: victims {ours.victims} {theirs.cost(ours.victims)} on {ours.nominated} against "
            f"{theirs.victims} {theirs.cost(theirs.victims)} on {theirs.nominated or theirs.node}, "
            f"after {theirs.logged.attempts} attempts"
        )
    return found


def _unequal(ours: dict[str, int], logged: LoggedPod) -> str:
    nodes = sorted(node for node in {*ours, *logged.scores} if ours.get(node) != logged.scores.get(node))
    return "; ".join(
        f"{node}: {ours.get(node)} against {logged.scores.get(node)} {logged.plugins.get(node)}" for node in nodes[:3]
    )
