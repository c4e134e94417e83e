"""The life of a pod, step by step, without a cluster."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from moorage.api.resources import Unstructured
from moorage.embedded.kubelet import lives, pod_status
from moorage.embedded.kubelet.decisions import KubeletSettings, Script, script_of
from moorage.embedded.kubelet.lives import Life, SimulatedNode

NOW = 1_767_225_600.0
HERE = SimulatedNode("10.0.0.1")
BACKOFF = (10.0, 300.0)
Raw = dict[str, Any]


def pod(status: Raw | None = None, notes: dict[str, str] | None = None, **spec: Any) -> Unstructured:
    meta = {"name": "p", "namespace": "d", "uid": "u", "annotations": notes or {}}
    given = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    return Unstructured({"metadata": meta, "spec": given, "status": status or {}})


def script(**changes: Any) -> Script:
    usual = {"start": 1.0, "init": 2.0, "ready": 0.0, "run": math.inf, "exit_code": 0, "stop": 0.5}
    return Script(**{**usual, **changes})


def begin() -> Life:
    return lives.begin(NOW, "10.64.0.1", BACKOFF)


def status_at(life: Life, of: Unstructured, at: float) -> Raw:
    return pod_status.status_of(of, life.picture(HERE), NOW + at)


def walk(life: Life, of: Unstructured, how: Script, until: float) -> list[tuple[float, str]]:
    """(second, what the container does) at each step of its own choosing."""
    steps, at = [], 0.0
    while at <= until:
        due = life.advance(of, how, HERE, NOW + at)
        state = status_at(life, of, at)["containerStatuses"][0]["state"]
        kind, detail = next(iter(state.items()))
        steps.append((at, detail.get("reason", kind)))
        if math.isinf(due):
            break
        at = max(due - NOW, at + 0.001)
    return steps


def test_a_pod_starts_after_its_time_and_runs_for_ever():
    life = begin()
    assert walk(life, pod(), script(), 100) == [(0.0, "ContainerCreating"), (1.0, "running")]
    found = status_at(life, pod(), 1.0)
    assert (found["phase"], found["podIP"], found["hostIP"]) == ("Running", "10.64.0.1", "10.0.0.1")
    assert {c["type"]: c["status"] for c in found["conditions"]} == {
        "PodReadyToStartContainers": "True", "Initialized": "True",
        "Ready": "True", "ContainersReady": "True",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "code", "phase", "reason"),
    [
        ("Never", 0, "Succeeded", "Completed"),
        ("Never", 2, "Failed", "Error"),
        ("OnFailure", 0, "Succeeded", "Completed"),
    ],
)
def test_a_pod_ends(policy: str, code: int, phase: str, reason: str):
    life, of = begin(), pod(restartPolicy=policy)
    assert walk(life, of, script(run=5.0, exit_code=code), 100)[-1] == (6.0, reason)
    found = status_at(life, of, 6.0)
    assert found["phase"] == phase
    assert found["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code


def test_a_crashing_container_is_restarted_at_once_and_then_less_and_less_often():
    life, of = begin(), pod(restartPolicy="Always")
    steps = walk(life, of, script(run=1.0, exit_code=1), 2000)
    starts = [at for at, what in steps if what == "running"]
    gaps = [round(b - a) for a, b in itertools.pairwise(starts)]
    assert gaps[:7] == [1, 11, 21, 41, 81, 161, 301]
    assert gaps[7] == 301
    found = status_at(life, of, 1500.0)["containerStatuses"][0]
    assert found["restartCount"] >= 7
    assert found["lastState"]["terminated"]["exitCode"] == 1


def test_crash_loops_are_reported_as_upstream_does():
    life, of = begin(), pod(restartPolicy="Always")
    walk(life, of, script(run=1.0, exit_code=1), 4)
    found = status_at(life, of, 4.0)["containerStatuses"][0]
    waiting = found["state"]["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert waiting["message"] == "back-off 10s restarting failed container=main pod=p_d(u)"
    assert found["ready"] is False
    assert status_at(life, of, 4.0)["phase"] == "Running"


def test_init_containers_run_one_after_the_other_and_sidecars_stay():
    inits = [{"name": "a"}, {"name": "side", "restartPolicy": "Always"}, {"name": "b"}]
    life, of = begin(), pod(initContainers=inits)
    seen = {}
    for at in (0.0, 1.0, 3.0, 5.0):
        life.advance(of, script(), HERE, NOW + at)
        found = status_at(life, of, at)
        seen[at] = [next(iter(s["state"])) for s in found["initContainerStatuses"]]
        assert found["phase"] == ("Running" if at == 5.0 else "Pending")
    assert seen == {
        0.0: ["waiting", "waiting", "waiting"],
        1.0: ["running", "waiting", "waiting"],
        3.0: ["terminated", "running", "running"],
        5.0: ["terminated", "running", "terminated"],
    }
    waiting = status_at(begin(), of, 0.0)
    assert waiting["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    condition = next(c for c in waiting["conditions"] if c["type"] == "Initialized")
    assert condition["message"] == "containers with incomplete status: [a side b]"


def test_volumes_hold_the_start_back():
    life, of = begin(), pod()
    assert math.isinf(life.advance(of, script(), SimulatedNode("10.0.0.1", volumes_ready=False), NOW + 50))
    assert status_at(life, of, 50.0)["phase"] == "Pending"
    life.advance(of, script(), HERE, NOW + 51)
    assert status_at(life, of, 51.0)["phase"] == "Running"


def test_the_active_deadline_ends_a_pod():
    life, of = begin(), pod(activeDeadlineSeconds=20)
    assert walk(life, of, script(), 100)[-1][0] == 20.0
    found = status_at(life, of, 20.0)
    assert (found["phase"], found["reason"]) == ("Failed", "DeadlineExceeded")


def test_readiness_comes_later_and_waits_for_gates():
    gate = "example.com/ready"
    of = pod(readinessGates=[{"conditionType": gate}])
    life = begin()
    life.advance(of, script(ready=5.0), HERE, NOW + 1.0)
    assert _ready(status_at(life, of, 1.0)) == ("False", "False")
    life.advance(of, script(ready=5.0), HERE, NOW + 6.0)
    assert _ready(status_at(life, of, 6.0)) == ("True", "False")
    of = pod({"conditions": [{"type": gate, "status": "True"}]}, readinessGates=[{"conditionType": gate}])
    assert _ready(status_at(life, of, 6.0)) == ("True", "True")


def _ready(status: Raw) -> tuple[str, str]:
    found = {c["type"]: c["status"] for c in status["conditions"]}
    return found["ContainersReady"], found["Ready"]


@pytest.mark.parametrize("at", [0.5, 2.0, 3.5, 8.0])
def test_a_life_is_taken_up_again_from_its_status(at: float):
    of, how = pod(restartPolicy="Always"), script(run=2.0, exit_code=1)
    life = begin()
    walk(life, of, how, at)
    status = status_at(life, of, at)
    again = lives.resume(pod(status, restartPolicy="Always"), "10.64.9.9", NOW + at, BACKOFF)
    resumed = status_at(again, pod(status, restartPolicy="Always"), at)
    assert resumed["containerStatuses"] == status["containerStatuses"]
    assert resumed["phase"] == status["phase"]


BAD = [
    ("moorage.dev/start-seconds", "soon"),
    ("moorage.dev/run-seconds", "-1"),
    ("moorage.dev/run-seconds", "nan"),
    ("moorage.dev/exit-code", "256"),
    ("moorage.dev/exit-code", "x"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_annotation_counts_as_not_given_and_is_reported(name: str, value: str):
    settings = KubeletSettings()
    found = script_of(pod(notes={name: value}), settings)
    usual = script_of(pod(), settings)
    assert (found.start, found.run, found.exit_code) == (usual.start, usual.run, usual.exit_code)
    (problem,) = found.problems
    assert name in problem
    assert value in problem


QOS = [
    ({}, "BestEffort"),
    ({"requests": {"cpu": "1"}}, "Burstable"),
    ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
]


@pytest.mark.parametrize(("resources", "expected"), QOS)
def test_qos(resources: Raw, expected: str):
    assert pod_status.qos_class({"containers": [{"name": "a", "resources": resources}]}) == expected
