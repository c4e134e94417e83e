"""NodeResourceTopologyMatch on the real API server, with the kind and the rights that `moorage manifests`
prints, and on the embedded one. The test publishes the zones of nodes, as a daemon on them would."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from moorage.api import decoding
from moorage.api.pod import Pod
from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS
from moorage.app.configuration import configure
from moorage.contrib.topology_match.topology import DEFINITION, NODE_RESOURCE_TOPOLOGIES
from moorage.manifests import DeployOptions, manifests
from tests.cluster import objects
from tests.cluster.api import Json, eventually, path
from tests.cluster.conftest import RIGHTS
from tests.cluster.controlplane import ControlPlane
from tests.cluster.kubelet import StandIn
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.worlds import SCHEDULER, World
from tests.contrib.configs import enabling
from tests.contrib.topology_match.machines import topology

NAME = "zones"
ARGS = {"cacheResyncPeriodSeconds": 1, "cache": {"foreignPodsDetect": "None"}}
CONFIG = enabling("NodeResourceTopologyMatch", ARGS)
FREE, LESS = {"cpu": "4", "memory": "8Gi"}, {"cpu": "1", "memory": "7Gi"}


@pytest.fixture
def world(any_world: World, request: pytest.FixtureRequest) -> Iterator[World]:
    definition = DEFINITION["metadata"]["name"]
    if any_world.kind == "real":
        # An account of its own: its rights are more than those of the default profile.
        plane: ControlPlane = request.getfixturevalue("shared_plane")
        options = DeployOptions(name=NAME, image="moorage:test")
        for obj in manifests(configure(CONFIG, discover=False), CONFIG, options):
            if obj["kind"] in RIGHTS:
                plane.api.apply(obj)
        any_world.kubeconfig = plane.kubeconfig(NAME, token=plane.token(NAME, NAMESPACE))
    any_world.api.create(DEFINITION)

    def is_served() -> bool:
        found = any_world.api.get(CUSTOM_RESOURCE_DEFINITIONS, definition, "")
        conditions = found.get("status", {}).get("conditions") or ()
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

    eventually(is_served, 30, "the kind is served")
    yield any_world
    any_world.stop()
    any_world.api.delete(CUSTOM_RESOURCE_DEFINITIONS, definition, "")


def guaranteed(world: World, name: str, cpu: str) -> None:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    pod = objects.pod(name, scheduler=SCHEDULER, requests=amounts)
    pod["spec"]["containers"][0]["resources"]["limits"] = amounts
    world.api.create(pod)


def running(world: World) -> list[Pod]:
    found: list[Pod] = []
    for raw in world.api.list(PODS):
        if raw["status"].get("phase") == "Running":
            pod = decoding.convert(PODS, raw)
            assert isinstance(pod, Pod)
            found.append(pod)
    return found


def publish(world: World, changed: Json) -> None:
    fields = {key: changed[key] for key in ("zones", "attributes")}
    world.api.patch(NODE_RESOURCE_TOPOLOGIES, changed["metadata"]["name"], fields, "")


def test_a_pod_waits_for_a_zone_and_gets_it_when_the_data_of_the_node_shows_one(world: World) -> None:
    world.nodes("n0", cpu="16")
    world.api.request("POST", path(NODE_RESOURCE_TOPOLOGIES), topology(pods=[]))
    lease = (f"--leader-elect-resource-name={NAME}", f"--leader-elect-resource-namespace={NAMESPACE}")
    world.moorage({**json.loads(CONFIG)["profiles"][0], "schedulerName": SCHEDULER}, arguments=lease)
    guaranteed(world, "large", "5")
    assert "1 cannot align container" in world.wait_refused("large")
    guaranteed(world, "first", "3")
    assert world.wait_bound("first") == "n0"
    guaranteed(world, "second", "3")
    assert "1 cannot align container" in world.wait_refused("second")
    if world.kind == "real":
        with StandIn(world.api):
            eventually(lambda: running(world), 30, "the first pod runs")
    started = eventually(lambda: running(world), 30, "the first pod runs")
    publish(world, topology(zones=(LESS, FREE), pods=started))
    assert world.wait_bound("second") == "n0"
    assert world.node_of("large") == ""
