"""The stuck pods of tests/explain/stuck_pods.py on a real control plane with kube-scheduler in charge. `moorage
explain` reads the API server only, and says the same as on a snapshot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from moorage.api import resources as kinds
from moorage.api.resources import NODES, PODS
from tests.cluster import objects
from tests.cluster.api import Api, ApiProblem, Json, eventually, path
from tests.cluster.conftest import clean
from tests.cluster.controlplane import ControlPlane
from tests.cluster.test_explain import USER, reader
from tests.explain import stuck_pods
from tests.explain.judging_answers import Answer, check
from tests.explain.stuck_pods import FULL, NAMESPACE, QUOTA_COMMAND, QUOTA_FACT, Stuck

RUNTIME_CLASSES = kinds.custom("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False)
TABLE = stuck_pods.table()


@pytest.fixture(scope="module")
def stuck(shared_plane: ControlPlane) -> Iterator[Path]:
    """Build the cluster, let kube-scheduler look at every pod, and return a kubeconfig that may only list and get."""
    try:
        _build(shared_plane.api)
        with _kube_scheduler(shared_plane):
            yield reader(shared_plane, "get")
    finally:
        _release(shared_plane.api)


def _build(api: Api) -> None:
    """Create everything but the stuck pods."""
    for obj in (*stuck_pods.nodes(), *stuck_pods.others()):
        eventually(partial(_created, api, obj), 60, f"{obj['kind']} of an earlier test is gone")
    api.delete(NODES, "dying", "")
    for obj in (*stuck_pods.running(), stuck_pods.OCCUPANT):
        eventually(partial(_created, api, obj), 60, "the quota is known")
        _ready(api, obj)
    eventually(partial(_settled, api), 60, "the claim is bound, and the budget allows nothing")


@contextmanager
def _kube_scheduler(plane: ControlPlane) -> Iterator[None]:
    """Run kube-scheduler, which has decided about every stuck pod when the block begins."""
    api = plane.api
    kube = plane.start_kube_scheduler(objects.scheduler_config(percentageOfNodesToScore=100))
    try:
        for row in TABLE:
            eventually(partial(_created, api, row.pod), 60, row.name)
        api.create(stuck_pods.DEPLOYMENT)
        for row in TABLE:
            eventually(partial(_decided, api, row), 90, f"kube-scheduler has decided about {row.name}")
            if "containerStatuses" in row.status:
                _patch_status(api, row.pod, row.status)
        eventually(partial(_refused, api), 60, "the quota refuses the pods of the deployment")
        yield
    finally:
        kube.stop()


def _created(api: Api, obj: Json) -> bool:
    """False: one of this name is still on its way out, or the quota is not known yet."""
    try:
        if obj["kind"] == "RuntimeClass":
            api.request("POST", path(RUNTIME_CLASSES), obj)
        else:
            api.create(obj)
    except ApiProblem as problem:
        if problem.status not in (403, 409):
            raise
        return False
    if obj["kind"] == "ResourceQuota":
        made = api.get(kinds.RESOURCE_QUOTAS, obj["metadata"]["name"], obj["metadata"]["namespace"])
        open_to_one = {"hard": {"pods": "1"}, "used": {"pods": "0"}}
        api.replace({**made, "status": open_to_one}, subresource="status")
    return True


def _ready(api: Api, pod: Json) -> None:
    """Report a running pod. Preemption prefers the victim that has started last, which is always the one on w1."""
    started = "2026-01-02T00:00:00Z" if pod["spec"]["nodeName"] == "w1" else "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True"}]
    _patch_status(api, pod, {"phase": "Running", "conditions": conditions, "startTime": started})


def _patch_status(api: Api, pod: Json, status: Json) -> None:
    meta = pod["metadata"]
    api.patch(PODS, meta["name"], {"status": status}, meta["namespace"], subresource="status")


def _settled(api: Api) -> bool:
    claim = api.get(kinds.PERSISTENT_VOLUME_CLAIMS, "away", NAMESPACE)
    budget = api.get(kinds.POD_DISRUPTION_BUDGETS, "guarded", NAMESPACE)
    bound = claim["status"].get("phase") == "Bound"
    return bool(bound and budget.get("status", {}).get("currentHealthy") == 3)


def _decided(api: Api, row: Stuck) -> bool:
    pod = api.get(PODS, row.name, NAMESPACE)
    if pod["spec"].get("schedulingGates") or pod["spec"]["schedulerName"] == "volcano":
        return True
    if row.status.get("nominatedNodeName"):
        return bool(pod["status"].get("nominatedNodeName"))
    refused = any(c["type"] == "PodScheduled" and c["status"] == "False" for c in pod["status"].get("conditions", ()))
    return refused or bool(pod["spec"].get("nodeName"))


def _refused(api: Api) -> bool:
    found = api.get(kinds.DEPLOYMENTS, "qd", FULL).get("status", {}).get("conditions", ())
    return any(condition["type"] == "ReplicaFailure" for condition in found)


def _release(api: Api) -> None:
    """Remove everything, also what a finalizer holds."""
    if api.find(NODES, "dying", "") is not None:
        api.patch(NODES, "dying", {"metadata": {"finalizers": None}}, "")
    for resource, name in ((RUNTIME_CLASSES, "kata"), (kinds.DEVICE_CLASSES, "accelerator.example.com")):
        api.delete(resource, name, "")
    clean(api)


def _explained(kubeconfig: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moorage", "explain", *args, "--kubeconfig", str(kubeconfig)]
    wide = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=wide)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_stuck_pod_is_explained_on_a_real_cluster(row: Stuck, stuck: Path) -> None:
    shown = _explained(stuck, f"pod/{row.name}", "-n", NAMESPACE)
    data = _explained(stuck, f"pod/{row.name}", "-n", NAMESPACE, "-o", "json")
    assert data.returncode == shown.returncode, data.stderr
    check(row, Answer(shown.stdout, shown.returncode, json.loads(data.stdout)))


def test_a_deployment_whose_pods_a_quota_refuses_is_explained(stuck: Path) -> None:
    shown = _explained(stuck, "deployment/qd", "-n", FULL)
    assert shown.returncode == 3, shown.stderr
    assert shown.stdout.startswith("Deployment q/qd: 0 of 2 pods exist.\n")
    assert QUOTA_FACT in shown.stdout
    assert QUOTA_COMMAND in shown.stdout


def test_a_user_of_one_namespace_is_shown_what_the_rights_allow(stuck: Path, shared_plane: ControlPlane) -> None:
    kubeconfig = _of_one_namespace(shared_plane)
    shown = _explained(kubeconfig, "deployment/qd", "-n", FULL)
    assert shown.returncode == 3, shown.stderr
    assert shown.stdout.startswith("Deployment q/qd: 0 of 2 pods exist.\n")
    assert QUOTA_FACT in shown.stdout
    pod = _explained(kubeconfig, "pod/occupant", "-n", FULL)
    assert pod.returncode == 0, pod.stderr
    assert "You may not list nodes in this cluster" in pod.stdout
    other = _explained(kubeconfig, "pod/selector", "-n", NAMESPACE)
    assert other.returncode == 1
    assert "ask for get and list on nodes" in other.stderr


def _of_one_namespace(plane: ControlPlane) -> Path:
    plane.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant", "namespace": FULL}})
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": "tenant", "namespace": FULL}}
    plane.api.apply({**role, "rules": rules})
    plane.api.apply(
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "tenant", "namespace": FULL},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "tenant"},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": FULL}],
        }
    )
    return plane.kubeconfig("tenant", token=plane.token("tenant", FULL))


def test_nothing_was_written(stuck: Path, shared_plane: ControlPlane) -> None:
    calls = shared_plane.calls(USER)
    assert {call.verb for call in calls} <= {"list", "get"}
