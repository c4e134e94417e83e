"""GangPreemption, CrossNodePreemption and quotas in a hierarchy on the real API server, with the kinds and
rights that `moorage manifests` prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS
from moorage.app.configuration import configure
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS
from moorage.contrib.coscheduling.groups import PODGROUPS
from moorage.manifests import DeployOptions, manifests
from tests.cluster.api import Json, eventually
from tests.cluster.conftest import RIGHTS
from tests.cluster.controlplane import ControlPlane
from tests.cluster.moorage_process import NAMESPACE
from tests.cluster.worlds import World
from tests.contrib.preempting_scenarios import CHECKS, CONFIG, PROFILES, prepare

NAME = "preempting"


class RealCluster:
    """Implements `preempting_scenarios.Cluster`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def create(self, *items: Json) -> None:
        for item in items:
            self.world.api.create(item, namespace=item["metadata"].get("namespace", ""))

    def nodes_of(self, namespace: str) -> dict[str, str]:
        return {
            pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
            for pod in self.world.api.list(PODS, namespace)
            if "deletionTimestamp" not in pod["metadata"]
        }


@pytest.fixture
def real(plane: ControlPlane, tmp_path: Path) -> Iterator[RealCluster]:
    """An account of its own: its rights are more than those of the default profile."""
    configured = configure(CONFIG, discover=False)
    for obj in manifests(configured, CONFIG, DeployOptions(name=NAME, image="moorage:test")):
        if obj["kind"] in (*RIGHTS, "CustomResourceDefinition"):
            plane.api.apply(obj)
    world = World("real", plane.api, tmp_path, plane.kubeconfig(NAME, token=plane.token(NAME, NAMESPACE)))
    kinds = [f"{kind.plural}.{kind.group}" for kind in (PODGROUPS, ELASTICQUOTAS)]
    eventually(lambda: all(established(world, kind) for kind in kinds), 30, "the kinds are served")
    lease = (f"--leader-elect-resource-name={NAME}", f"--leader-elect-resource-namespace={NAMESPACE}")
    world.moorage(*PROFILES, arguments=lease)
    made = RealCluster(world)
    prepare(made)
    yield made
    world.stop()
    for kind in kinds:
        plane.api.delete(CUSTOM_RESOURCE_DEFINITIONS, kind, "")


def established(world: World, kind: str) -> bool:
    found = world.api.find(CUSTOM_RESOURCE_DEFINITIONS, kind, "") or {}
    conditions = found.get("status", {}).get("conditions", ())
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def test_victims_go_for_groups_across_nodes_and_by_share(real: RealCluster) -> None:
    for check in CHECKS.values():
        check(real)
