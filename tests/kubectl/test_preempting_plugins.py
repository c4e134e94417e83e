"""GangPreemption, CrossNodePreemption and quotas in a hierarchy on the embedded cluster, with kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.contrib.capacity_scheduling.quotas import DEFINITION
from moorage.contrib.coscheduling.args import PODGROUP_DEFINITION
from tests.cluster import objects
from tests.cluster.moorage_process import MoorageProcess
from tests.cluster.objects import Json
from tests.contrib.preempting_scenarios import CHECKS, PROFILES, Cluster, prepare
from tests.kubectl import cluster as embedded
from tests.kubectl.runner import Kubectl

pytestmark = pytest.mark.slow


class KubectlCluster:
    """Implements `preempting_scenarios.Cluster`."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl

    def create(self, *items: Json) -> None:
        for item in items:
            namespace = item["metadata"].get("namespace", "default")
            self.kubectl.within(namespace)("create", "-f", "-", stdin=json.dumps(item))

    def nodes_of(self, namespace: str) -> dict[str, str]:
        found = json.loads(self.kubectl.within(namespace)("get", "pods", "-o", "json"))
        return {
            pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
            for pod in found["items"]
            if "deletionTimestamp" not in pod["metadata"]
        }


@pytest.fixture(scope="module")
def found(programs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("preempting")
    cluster = embedded.Cluster(home / "kubeconfig")
    cluster.start()
    kubectl = Kubectl(programs[0], cluster.kubeconfig, home)
    made = KubectlCluster(kubectl)
    config = objects.scheduler_config(*PROFILES, leaderElection={"leaderElect": False})
    process = MoorageProcess(home, "preempting", cluster.kubeconfig, config)
    try:
        made.create(dict(PODGROUP_DEFINITION), dict(DEFINITION))
        kubectl("wait", "--for=condition=Established", "crd", "--all")
        process.start_ready()
        prepare(made)
        yield made
    finally:
        process.stop()
        cluster.stop()


@pytest.mark.parametrize("name", CHECKS)
def test_victims_go(found: Cluster, name: str) -> None:
    CHECKS[name](found)
