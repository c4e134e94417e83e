"""docs/seeds.md, 15: the ClusterRole that goes with the sample of the tutorials, which was made for 1.27."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.cluster.api import Json, eventually
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import MoorageProcess
from tests.cluster.worlds import World, with_sample

NAME, SYSTEM = "sample-scheduler", "kube-system"
READ = ["get", "list", "watch"]
RULES = {
    "": {
        "namespaces": ["create", "get", "list"],
        "endpoints events": ["create", "get", "update"],
        "nodes replicationcontrollers services persistentvolumeclaims persistentvolumes configmaps": READ,
        "pods": ["delete", *READ, "update"],
        "bindings pods/binding": ["create"],
        "pods/status": ["patch", "update"],
    },
    "apps": {"replicasets statefulsets": READ},
    "policy": {"poddisruptionbudgets": READ},
    "storage.k8s.io": {"storageclasses csinodes csistoragecapacities csidrivers": READ},
    "coordination.k8s.io": {"leases": ["create", "get", "list", "update"]},
    "events.k8s.io": {"events": ["create", "patch", "update"]},
}


def rights() -> list[Json]:
    rbac = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": [group], "resources": resources.split(), "verbs": verbs}
        for group, granted in RULES.items()
        for resources, verbs in granted.items()
    ]
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": SYSTEM}
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": NAME}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": SYSTEM}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def test_the_log_names_each_right_that_is_missing(plane: ControlPlane, tmp_path: Path) -> None:
    for obj in rights():
        plane.api.apply(obj)
    config = plane.kubeconfig(NAME, token=plane.token(NAME, SYSTEM))
    world = World("real", plane.api, tmp_path, config)
    try:
        arguments = ("--leader-elect=false", "--authentication-skip-lookup")
        process = world.moorage(with_sample(), wait=False, arguments=arguments)
        for kind in ("namespaces", "volumeattachments"):
            eventually(partial(refused, process, kind), 60, f"{kind} are refused")
        assert not process.healthy("/readyz")
    finally:
        world.stop()


def refused(process: MoorageProcess, kind: str) -> bool:
    lines = process.log_text().splitlines()
    return any("List failed" in line and kind in line and "forbidden" in line for line in lines)
