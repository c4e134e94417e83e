"""/mooring/v1 of `mooring run` on the real API server: RBAC says who may read which path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cluster.api import eventually
from tests.cluster.controlplane import ControlPlane
from tests.cluster.mooring_process import NAMESPACE
from tests.cluster.worlds import World

PATHS = ("/mooring/v1/queue", "/mooring/v1/records")


def reader(plane: ControlPlane, name: str, *paths: str) -> str:
    """A token whose owner may read these paths, as docs/api-v1.md grants them."""
    rule = {"nonResourceURLs": list(paths), "verbs": ["get"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    owner = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    rbac = "rbac.authorization.k8s.io/v1"
    plane.api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, namespace=NAMESPACE
    )
    if paths:
        meta: Any = {"name": name}
        plane.api.apply({"apiVersion": rbac, "kind": "ClusterRole", "metadata": meta, "rules": [rule]})
        binding = {"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": meta}
        plane.api.apply({**binding, "roleRef": role, "subjects": [owner]})
    return plane.token(name, NAMESPACE)


def test_the_queue_is_shown_to_whom_rbac_allows_it_and_to_no_one_else(
    world: World, plane: ControlPlane, tmp_path: Path
) -> None:
    allowed, stranger = reader(plane, "queue-reader", *PATHS), reader(plane, "stranger")
    world.nodes("n", cpu="2")
    process = world.mooring()
    world.pod("big", cpu="64")
    world.wait_refused("big")

    status, text = process.get("/mooring/v1/queue?place=parked", allowed)
    assert status == 200, text
    [pod] = json.loads(text)["pods"]
    assert (pod["pod"], pod["plugins"]) == ("default/big", ["NodeResourcesFit"])
    assert process.get("/mooring/v1/nodes", allowed)[0] == 403, "a path that the role does not name"
    assert process.get("/mooring/v1/queue", stranger)[0] == 403
    assert process.get("/mooring/v1/queue")[0] == 401

    (tmp_path / "token").write_text(allowed)
    mooring = [
        sys.executable,
        "-m",
        "mooring",
        "explain",
        "pod/big",
        "--server",
        f"https://127.0.0.1:{process.port}",
    ]
    more = ["--token-file", str(tmp_path / "token"), "--insecure-skip-tls-verify", "-o", "json"]

    def explained() -> Any:
        return subprocess.run([*mooring, *more], capture_output=True, text=True, timeout=60)

    done = eventually(lambda: (found := explained()).returncode == 3 and found, 30, "the pod is explained")
    answer = json.loads(done.stdout)
    assert answer["waiting"]["place"] == "parked"
    assert answer["records"][-1]["refusals"][0]["nodeNames"] == ["n"]
