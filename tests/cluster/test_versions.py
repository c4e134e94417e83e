"""One smoke run each against older API servers. They are built first: not part of `make test-cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api.resources import PODS
from tests.cluster import objects
from tests.cluster.api import eventually
from tests.cluster.conftest import grant
from tests.cluster.controlplane import Missing, find_programs, running
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.worlds import World, with_sample

SERVERS = ("kube-apiserver", "kube-controller-manager")


@pytest.mark.versions
@pytest.mark.parametrize("version", ["v1.31.0", "v1.34.4", "v1.36.4"])
def test_smoke(version: str, programs: dict[str, str], tmp_path: Path) -> None:
    """The story of the tutorial, preemption, spread and a volume, on another server with the same roles."""
    try:
        older = find_programs(version, SERVERS)
    except Missing as missing:
        pytest.skip(str(missing))
    with running(tmp_path / "plane", {**programs, **older}) as plane:
        assert plane.api.request("GET", "/version")["gitVersion"] == version
        plane.start_controllers()
        grant(plane)
        config = plane.kubeconfig("moorage", token=plane.token("moorage", NAMESPACE))
        world = World("real", plane.api, tmp_path, config)
        try:
            smoke(world)
        finally:
            world.stop()
        account = f"system:serviceaccount:{NAMESPACE}:moorage"
        forbidden = {call.right for call in plane.calls(account) if call.code == 403}
        assert not forbidden


def smoke(world: World) -> None:
    process = world.moorage(with_sample(), {"schedulerName": "moorage"})
    world.nodes("node1", "node2", cpu="2")
    world.api.create(objects.deployment("test-scheduler", 1, scheduler="sample-scheduler"))
    name = eventually(lambda: _first(world), 30, "the Deployment has a pod")
    assert "1 Node: node1, 1 Node: node2" in world.wait_refused(name)
    world.label("node1", cpu="true")
    assert world.wait_bound(name) == "node1"
    world.api.create(objects.storage_class("local"))
    world.api.create(objects.volume("disk", "node2", "local"))
    world.api.create(objects.claim("data", "local"))
    world.pod("with-volume", volumes=objects.uses_claim("data"))
    assert world.wait_bound("with-volume", 60) == "node2"
    world.api.create(objects.priority_class("high", 1000))
    world.pod("victim", cpu="1700m", nodeSelector={"kubernetes.io/hostname": "node1"})
    world.wait_bound("victim")
    urgent = {"priorityClassName": "high", "nodeSelector": {"kubernetes.io/hostname": "node1"}}
    world.pod("urgent", cpu="1700m", **urgent)
    assert world.wait_bound("urgent", 60) == "node1"
    assert process.running
    assert "Traceback" not in process.log_text()


def _first(world: World) -> str:
    found = world.api.list(PODS, labelSelector="app=test-scheduler")
    return str(found[0]["metadata"]["name"]) if found else ""
