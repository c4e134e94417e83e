"""Coscheduling on the real API server, with the kind and the rights that `moorage manifests` prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS
from moorage.app.configuration import configure
from moorage.contrib.coscheduling.groups import LABEL, PODGROUPS
from moorage.manifests import DeployOptions, manifests
from tests.cluster.api import Json, eventually
from tests.cluster.conftest import RIGHTS
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.worlds import World
from tests.contrib.configs import enabling
from tests.contrib.coscheduling.gangs import podgroup

NAME = "gangs"
PROFILE: Json = {
    "schedulerName": "moorage",
    "plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]}},
}


@pytest.fixture
def world(plane: ControlPlane, tmp_path: Path) -> Iterator[World]:
    """An account of its own: its rights are more than those of the default profile."""
    text = enabling("Coscheduling", without=("PrioritySort",))
    for obj in manifests(configure(text, discover=False), text, DeployOptions(name=NAME, image="moorage:test")):
        if obj["kind"] in (*RIGHTS, "CustomResourceDefinition"):
            plane.api.apply(obj)
    made = World("real", plane.api, tmp_path, plane.kubeconfig(NAME, token=plane.token(NAME, NAMESPACE)))
    yield made
    made.stop()
    plane.api.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{PODGROUPS.plural}.{PODGROUPS.group}", "")


def status_of(world: World) -> Json:
    found: Json = world.api.get(PODGROUPS, "train").get("status", {})
    return found


def test_a_group_waits_as_a_whole_and_starts_as_a_whole(world: World) -> None:
    lease = ("--leader-elect-resource-name=gangs", f"--leader-elect-resource-namespace={NAMESPACE}")
    world.moorage(PROFILE, arguments=lease)
    world.nodes("node1", "node2", cpu="1")
    eventually(lambda: world.api.find(CUSTOM_RESOURCE_DEFINITIONS, "podgroups.scheduling.x-k8s.io", ""))
    world.api.create({**podgroup("train", 3), "metadata": {"name": "train"}})
    for number in range(3):
        world.pod(f"train-{number}", cpu="1", labels={LABEL: "train"})
    waits = "PodGroup default/train does not fit: 2 of 3 members have a node"
    eventually(lambda: waits in status_of(world).get("message", ""), 30, "the status says why")
    eventually(lambda: waits in world.refusal_of("train-0"), 30, "so does a member")
    assert status_of(world)["phase"] == "Scheduling"
    assert world.bound() == {}
    world.nodes("node3", cpu="1")
    assert sorted(world.wait_all_bound(3, 30).values()) == ["node1", "node2", "node3"]
    eventually(lambda: status_of(world)["message"] == "", 30, "nothing is waited for any more")
