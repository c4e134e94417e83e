"""CapacityScheduling on the real API server, with the kind and the rights that `moorage manifests` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS
from moorage.app.configuration import configure
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS
from moorage.manifests import DeployOptions, manifests
from tests.cluster import objects
from tests.cluster.api import Json, eventually
from tests.cluster.conftest import RIGHTS
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.worlds import World
from tests.contrib.capacity_scheduling.tenants import CONFIG, quota

NAME = "quotas"


@pytest.fixture
def world(plane: ControlPlane, tmp_path: Path) -> Iterator[World]:
    """An account of its own: its rights are more than those of the default profile."""
    configured = configure(CONFIG, discover=False)
    for obj in manifests(configured, CONFIG, DeployOptions(name=NAME, image="moorage:test")):
        if obj["kind"] in (*RIGHTS, "CustomResourceDefinition"):
            plane.api.apply(obj)
    made = World("real", plane.api, tmp_path, plane.kubeconfig(NAME, token=plane.token(NAME, NAMESPACE)))
    yield made
    made.stop()
    plane.api.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{ELASTICQUOTAS.plural}.{ELASTICQUOTAS.group}", "")


def used(world: World, namespace: str) -> Json:
    found: Json = world.api.get(ELASTICQUOTAS, "q", namespace).get("status", {}).get("used", {})
    return found


def test_a_namespace_borrows_and_the_owner_takes_it_back(world: World) -> None:
    lease = (f"--leader-elect-resource-name={NAME}", f"--leader-elect-resource-namespace={NAMESPACE}")
    profile = {**json.loads(CONFIG)["profiles"][0], "schedulerName": "moorage"}
    world.moorage(profile, arguments=lease)
    world.nodes("node1", cpu="2")
    world.api.create(objects.namespace("quota-owner"))
    for namespace in ("default", "quota-owner"):
        world.api.create(quota(namespace, {"cpu": "1", "memory": "9Gi"}, 2), namespace=namespace)
    eventually(lambda: used(world, "quota-owner") == {"cpu": "0", "memory": "0"}, 30, "the status is there")
    for name in ("red-0", "red-1"):
        world.pod(name, cpu="1", memory="1Gi")
        world.wait_bound(name)
    eventually(lambda: used(world, "default")["cpu"] == "2", 30, "the status counts what was borrowed")
    blue = objects.pod("blue-0", scheduler="moorage", cpu="1", memory="1Gi")
    world.api.create(blue, namespace="quota-owner")
    eventually(lambda: world.node_of("blue-0", "quota-owner") == "node1", 30, "the owner has its share")
    assert sorted(world.bound()) == ["blue-0", "red-0"]
    eventually(lambda: used(world, "default")["cpu"] == "1", 30, "and the status says so")
