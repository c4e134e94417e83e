"""/moorage/v1 of `moorage run` on the real API server: RBAC says who may read which path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.worlds import World

PATHS = ("/moorage/v1/queue", "/moorage/v1/records")


def reader(plane: ControlPlane, name: str, *paths: str, verbs: tuple[str, ...] = ("get",)) -> str:
    """A token whose owner may read these paths, as docs/api-v1.md grants them."""
    rule = {"nonResourceURLs": list(paths), "verbs": list(verbs)}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    owner = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    rbac = "rbac.authorization.k8s.io/v1"
    plane.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, namespace=NAMESPACE)
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
    process = world.moorage()
    world.pod("big", cpu="64")
    world.wait_refused("big")

    status, text = process.get("/moorage/v1/queue?place=unschedulable", allowed)
    assert status == 200, text
    [pod] = json.loads(text)["pods"]
    assert (pod["pod"], pod["plugins"]) == ("default/big", ["NodeResourcesFit"])
    assert process.get("/moorage/v1/nodes", allowed)[0] == 403, "a path that the role does not name"
    assert process.get("/moorage/v1/queue", stranger)[0] == 403
    assert process.get("/moorage/v1/queue")[0] == 401

    (tmp_path / "token").write_text(allowed)
    moorage = [sys.executable, "-m", "moorage", "explain", "pod/big", "--server", f"https://127.0.0.1:{process.port}"]
    more = ["--token-file", str(tmp_path / "token"), "--insecure-skip-tls-verify", "-o", "json"]

    def explained() -> Any:
        return subprocess.run([*moorage, *more], capture_output=True, text=True, timeout=60)

    done = eventually(lambda: (found := explained()).returncode == 3 and found, 30, "the pod is explained")
    answer = json.loads(done.stdout)
    assert answer["waiting"]["place"] == "unschedulable"
    assert answer["records"][-1]["refusals"][0]["nodeNames"] == ["n"]


def test_a_configuration_is_taken_from_whom_rbac_allows_to_post_it_and_only_with_the_flag(
    world: World, plane: ControlPlane
) -> None:
    path = "/moorage/v1/configuration"
    may_read = reader(plane, "configuration-reader", path)
    may_send = reader(plane, "configurer", path, f"{path}/*", verbs=("get", "post"))
    two = json.dumps(objects.scheduler_config({"schedulerName": "moorage"}, {"schedulerName": "second"}))
    world.nodes("n")
    process = world.moorage(arguments=("--allow-configuration-changes",))
    world.pod("waits", scheduler="second")

    assert process.get(path, may_read, two)[0] == 403
    assert process.get(path, "", two)[0] == 401
    status, text = process.get(path, may_send, two.replace("second", "moorage"))
    assert status == 422, text
    assert json.loads(text)["generation"] == 1
    status, text = process.get(path, may_send, two)
    assert (status, json.loads(text)["generation"]) == (200, 2), text
    assert world.wait_bound("waits") == "n"
    found = json.loads(process.get(path, may_read)[1])
    assert [bool(entry["error"]) for entry in found["history"]] == [False, True, False]
    start = json.loads(process.get(f"{path}/1", may_send)[1])["text"]
    assert json.loads(process.get(path, may_send, start)[1])["generation"] == 3
    assert [p["schedulerName"] for p in json.loads(process.get(path, may_read)[1])["profiles"]] == ["moorage"]

    process.stop()
    process = world.moorage()
    assert process.get(path, may_send, two)[0] == 405
