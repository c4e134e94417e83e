"""`moorage up --snapshot`: a cluster goes on where the snapshot was taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import run_in
from tests.cli.test_up import until, up
from tests.kubectl.runner import Kubectl, find_all

NODE = {
    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"},
    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "20"},
}
RUNNING = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
SET = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u-web", "controller": True}]
JOB = [{"apiVersion": "batch/v1", "kind": "Job", "name": "night", "uid": "u-gone", "controller": True}]
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def pod(name: str, node: str = "", cpu: str = "1", **meta: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
        "volumes": [{"name": "settings"}],
        **meta.pop("spec", {}),
    }
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": "shop", "uid": f"u-{name}", **meta}
    return {"metadata": metadata, "spec": spec, "status": RUNNING if node else {}}


SNAPSHOT: dict[str, Any] = {
    "nodes": [
        {"metadata": {"name": "oak", "labels": {"disk": "ssd"}}, "status": NODE},
        {"metadata": {"name": "elm"}, "spec": {"unschedulable": True}, "status": NODE},
    ],
    "replicaSets": [
        {
            "metadata": {"name": "web-1", "namespace": "shop", "uid": "u-web"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}},
        }
    ],
    "storageClasses": [{"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"}],
    "pvs": [
        {
            "metadata": {"name": "disk"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data", "uid": "u-old"},
                "hostPath": {"path": "/data"},
            },
            "status": {"phase": "Bound"},
        }
    ],
    "pvcs": [
        {
            "metadata": {
                "name": "data",
                "namespace": "shop",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "volumeName": "disk",
                "storageClassName": "local",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Bound"},
        }
    ],
    "pods": [
        pod("web-1-a", "oak", labels={"app": "web"}, ownerReferences=SET),
        pod("web-1-b", "elm", labels={"app": "web"}, ownerReferences=SET),
        pod("web-1-c", labels={"app": "web"}, ownerReferences=SET),
        pod("night-x", "elm", ownerReferences=JOB, spec={"priority": 50, "priorityClassName": "batch"}),
        pod("plain", "elm", spec={"priority": 7}),
        pod("with-disk", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}),
        pod("huge", cpu="64"),
        {"metadata": {"name": "broken", "namespace": "shop"}, "spec": {"containers": []}},
    ],
    "custom": {
        "widgets.v1.example.com": [
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"}}
        ]
    },
}


@pytest.fixture
def program() -> Path:
    if not (programs := find_all()):
        pytest.skip("there is no kubectl to ask with")
    return programs[0]


def pods(kubectl: Kubectl) -> dict[str, tuple[str, str]]:
    """Name → node and phase."""
    items = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    return {each["metadata"]["name"]: (each["spec"].get("nodeName", ""), each["status"]["phase"]) for each in items}


def test_bound_pods_stay_where_they_are_pending_ones_are_scheduled_and_unknown_kinds_are_named(tmp_path, program):
    (tmp_path / "cluster.json").write_text(json.dumps(SNAPSHOT))
    with up(tmp_path, "--snapshot", "cluster.json") as cluster:
        assert "cluster.json: 1 namespaces, " in cluster.said
        assert "2 nodes" in cluster.said
        assert "Warning: cluster.json: 1 pods were not loaded, for example shop/broken: " in cluster.said
        unknown = "not loaded, because the cluster does not serve this kind: 1 Widget (example.com/v1); to load"
        assert unknown in cluster.said
        kubectl = Kubectl(program, cluster.kubeconfig, tmp_path, "shop")
        expected = {
            "web-1-a": ("oak", "Running"),
            "web-1-b": ("elm", "Running"),
            "web-1-c": ("oak", "Running"),
            "night-x": ("elm", "Running"),
            "plain": ("elm", "Running"),
            "with-disk": ("oak", "Running"),
            "huge": ("", "Pending"),
        }
        until(lambda: pods(kubectl) == expected, f"{expected}; there is {pods(kubectl)}")
        web = until(
            lambda: json.loads(kubectl("get", "rs", "web-1", "-o", "json"))["status"].get("readyReplicas") == 3,
            "its set",
        )
        assert web
        assert kubectl("get", "pod", "web-1-a", "-o", "jsonpath={.metadata.uid}") == "u-web-1-a"
        assert kubectl("get", "pod", "night-x", "-o", "jsonpath={.spec.priority}") == "50"
        assert kubectl("get", "pod", "plain", "-o", "jsonpath={.spec.priority}") == "7"
        assert kubectl("get", "pvc", "data", "-o", "jsonpath={.status.phase}") == "Bound"
        kubectl("uncordon", "elm")
        kubectl("delete", "pod", "web-1-a", "--wait=false")
        until(lambda: len([name for name in pods(kubectl) if name.startswith("web-1-")]) >= 3, "another of the set")
        taken = run_in(tmp_path, "snapshot", "--kubeconfig", str(cluster.kubeconfig), "again.json")
        assert taken.returncode == 0, taken.stderr
    names = {each["metadata"]["name"] for each in json.loads((tmp_path / "again.json").read_text())["pods"]}
    assert names >= expected.keys() - {"web-1-a"}


def test_a_kind_whose_definition_is_applied_is_taken_too(tmp_path, program):
    (tmp_path / "cluster.json").write_text(json.dumps(SNAPSHOT))
    (tmp_path / "widgets.yaml").write_text(WIDGETS)
    with up(tmp_path, "--snapshot", "cluster.json", "--apply", "widgets.yaml", "--no-scheduler") as cluster:
        assert "no such kind" not in cluster.said
        kubectl = Kubectl(program, cluster.kubeconfig, tmp_path, "shop")
        assert kubectl("get", "widgets", "-o", "name") == "widget.example.com/w\n"


def test_an_export_of_the_simulator_starts_a_cluster(tmp_path, program):
    export: dict[str, Any] = {
        "nodes": [{"metadata": {"name": "n"}, "status": NODE}],
        "namespaces": [{"metadata": {"name": "shop"}}],
        "pods": [pod("a", "n"), pod("b")],
        "schedulerConfig": {"kind": "KubeSchedulerConfiguration"},
    }
    for each in export["pods"]:
        del each["metadata"]["uid"]
    (tmp_path / "export.yml").write_text(yaml.safe_dump(export))
    with up(tmp_path, "--snapshot", "export.yml") as cluster:
        kubectl = Kubectl(program, cluster.kubeconfig, tmp_path, "shop")
        expected = {"a": ("n", "Running"), "b": ("n", "Running")}
        until(lambda: pods(kubectl) == expected, "both pods to run")


def test_a_file_that_is_no_snapshot_is_named_and_nothing_is_started(tmp_path):
    (tmp_path / "x.yaml").write_text("a: 1")
    ended = run_in(tmp_path, "up", "--snapshot", "x.yaml", "--kubeconfig", "kubeconfig")
    assert ended.returncode == 1
    assert "x.yaml has none of the keys" in " ".join(ended.stderr.split())
    assert not (tmp_path / "kubeconfig").exists()
