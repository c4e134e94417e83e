"""`moorage explain` says what an operator needs to know about 25 stuck pods, on a snapshot of their cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.cli.root import app
from tests.cli.running import runner
from tests.cluster.objects import Json
from tests.explain import stuck_pods
from tests.explain.judging_answers import Answer, check
from tests.explain.stuck_pods import Stuck

SINCE = "2026-01-01T00:00:00Z"
PLACED = {"unpullable": "dying", "old": "dying"}
"""Pods that kube-scheduler binds."""
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
KEYS = {
    "Namespace": "namespaces",
    "PodDisruptionBudget": "pdbs",
    "PriorityClass": "priorityClasses",
    "StorageClass": "storageClasses",
    "PersistentVolume": "pvs",
    "PersistentVolumeClaim": "pvcs",
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the cluster as its API server would have it once every controller is done."""
    lists: dict[str, list[Json]] = {"nodes": [*map(_node, stuck_pods.nodes())], "pods": [*_pods()]}
    for obj in stuck_pods.others():
        if obj["kind"] in KEYS:
            lists.setdefault(KEYS[obj["kind"]], []).append(_settled(obj))
    path = tmp_path_factory.mktemp("stuck") / "cluster.json"
    path.write_text(json.dumps(lists))
    return path


def _node(node: Json) -> Json:
    if node["metadata"].get("finalizers"):
        node["metadata"]["deletionTimestamp"] = SINCE
    return node


def _settled(obj: Json) -> Json:
    """Bind the claim that names its volume, and compute what the budget allows."""
    if obj["kind"] == "PodDisruptionBudget":
        return {**obj, "status": {"disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 3}}
    if obj["metadata"]["name"] == "away":
        obj["metadata"]["annotations"] = {BIND_COMPLETED: "yes"}
        return {**obj, "status": {"phase": "Bound"}}
    if obj["metadata"]["name"] == "pv-b":
        obj["spec"]["claimRef"] = {"namespace": stuck_pods.NAMESPACE, "name": "away"}
        return {**obj, "status": {"phase": "Bound"}}
    return {**obj, "status": {"phase": "Available"}} if obj["kind"] == "PersistentVolume" else obj


def _pods() -> Iterator[Json]:
    for pod in stuck_pods.running():
        if pod["metadata"]["name"] == "guarded1":
            pod["metadata"]["deletionTimestamp"] = SINCE
            pod["status"] = {"conditions": [PREEMPTED]}
        yield _admitted(pod)
    for row in stuck_pods.table():
        pod = _admitted(row.pod)
        pod["spec"]["nodeName"] = PLACED.get(row.name, "")
        yield {**pod, "status": {"phase": "Pending", **row.status}}


def _admitted(pod: Json) -> Json:
    """Do what admission does: priorities, policies and overheads."""
    spec, meta = {**pod["spec"]}, {**pod["metadata"], "uid": pod["metadata"]["name"]}
    name = spec.get("priorityClassName", "")
    spec["priority"] = 1000 if name else 0
    spec["preemptionPolicy"] = "Never" if name == "high-never" else "PreemptLowerPriority"
    if "runtimeClassName" in spec:
        spec["overhead"] = {"cpu": "4"}
    return {**pod, "metadata": meta, "spec": spec}


@pytest.mark.parametrize("row", stuck_pods.table(), ids=lambda row: row.name)
def test_a_stuck_pod_is_explained(row: Stuck, snapshot: Path):
    command = ["explain", f"pod/{row.name}", "-n", stuck_pods.NAMESPACE, "--snapshot", str(snapshot)]
    shown = runner.invoke(app, command, env={"COLUMNS": "200"})
    data = runner.invoke(app, [*command, "-o", "json"])
    assert data.exit_code == shown.exit_code
    check(row, Answer(shown.stdout, shown.exit_code, json.loads(data.stdout)))
