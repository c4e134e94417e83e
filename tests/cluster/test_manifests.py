"""`moorage manifests` on the real API server: accepted, admitted under the restricted standard, enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api.resources import DEPLOYMENTS, PODS
from tests.cluster.api import Json, eventually
from tests.cluster.conftest import grant
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import NAMESPACE

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "moorage"


def printed(*arguments: str) -> list[Json]:
    command = [sys.executable, "-m", "moorage", "manifests", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


def test_applied_twice_is_applied_once(plane: ControlPlane) -> None:
    """Server-side dry run, then for real, then again without a change."""
    objects = printed("--image", "registry.example/moorage:test")
    for obj in objects:
        if obj["kind"] != "Namespace":
            assert plane.api.apply(obj, dry_run=True)["metadata"]["name"] == obj["metadata"]["name"]
    first = [plane.api.apply(obj) for obj in objects]
    again = [plane.api.apply(obj) for obj in objects]
    for before, after in zip(first, again, strict=True):
        # The controllers write status and annotations of the Deployment meanwhile; what we wrote stays.
        assert before.get("spec") == after.get("spec"), before["kind"]
        assert before.get("rules") == after.get("rules"), before["kind"]


def test_pods_are_admitted_under_the_restricted_standard(plane: ControlPlane) -> None:
    """The namespace enforces it: the ReplicaSet gets its pods only if they keep it."""
    for obj in printed("--image", "registry.example/moorage:test"):
        plane.api.apply(obj)
    pods = eventually(lambda: two_pods(plane), 30, "the Deployment has its two pods")
    conditions = plane.api.get(DEPLOYMENTS, "moorage", NAMESPACE)["status"].get("conditions", [])
    assert not [c for c in conditions if c["type"] == "ReplicaFailure"]
    for pod in pods:
        assert pod["spec"]["priority"] == 2000000000
    bad = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bad", "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    with pytest.raises(Exception, match="violates PodSecurity"):
        plane.api.create(bad)


def two_pods(plane: ControlPlane) -> list[Json]:
    found = plane.api.list(PODS, NAMESPACE)
    return found if len(found) == 2 else []


def test_kubectl_takes_the_kustomize_base(plane: ControlPlane, programs: dict[str, str], tmp_path: Path) -> None:
    base = tmp_path / "base"
    command = [sys.executable, "-m", "moorage", "manifests", "--name", "kust", "--kustomize", str(base)]
    subprocess.run(command, check=True, capture_output=True)
    kubectl = [programs["kubectl"], f"--kubeconfig={plane.admin_config}"]
    done = subprocess.run([*kubectl, "apply", "-k", str(base)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "deployment.apps/kust" in done.stdout
    done = subprocess.run([*kubectl, "diff", "-k", str(base)], capture_output=True, text=True)
    assert done.returncode == 0, f"a second apply would change something:\n{done.stdout}{done.stderr}"
    subprocess.run([*kubectl, "delete", "-k", str(base), "--wait=false"], capture_output=True, check=True)
    # The base has the namespace that the other tests' account lives in.
    eventually(lambda: restored(plane), 60, "the namespace is back")


def restored(plane: ControlPlane) -> bool:
    try:
        grant(plane)
    except Exception:
        return False
    found = plane.api.request("GET", f"/api/v1/namespaces/{NAMESPACE}")
    return bool(found["status"]["phase"] == "Active")


@pytest.mark.parametrize(
    ("ours", "charts"),
    [
        ((), ()),
        (("--service-monitor",), ("serviceMonitor.enabled=true",)),
        (("--replicas", "1"), ("replicas=1",)),
        (("--image", "registry.example/m:2"), ("image.reference=registry.example/m:2",)),
        (("--name", "blue"), ("nameOverride=blue",)),
    ],
    ids=["default", "service monitor", "one replica", "image", "name"],
)
def test_the_chart_renders_the_same(programs: dict[str, str], ours: tuple[str, ...], charts: tuple[str, ...]) -> None:
    values = [option for value in charts for option in ("--set", value)]
    command = [
        programs["helm"], "template", "moorage", str(CHART), "--namespace=moorage", "--kube-version=1.37.1",
    ]  # fmt: skip
    done = subprocess.run([*command, *values], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rendered = [obj for obj in yaml.safe_load_all(done.stdout) if obj]
    expected = [obj for obj in printed(*ours) if obj["kind"] != "Namespace"]  # helm makes that one itself
    assert by_name(rendered) == by_name(expected)


def by_name(objects: list[Json]) -> dict[tuple[str, str], Any]:
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}
    assert len(found) == len(objects)
    return found


def test_the_chart_has_no_fault(programs: dict[str, str]) -> None:
    command = [programs["helm"], "lint", str(CHART), "--strict", "--kube-version=1.37.1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
