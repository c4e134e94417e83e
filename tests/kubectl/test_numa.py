"""NUMA zones, typed by a user with kubectl: pods in single zones, the reason, a pod that ends. What is
published is what `moorage up --numa 2` publishes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contrib.configs import enabling
from tests.kubectl.cluster import Cluster
from tests.kubectl.runner import Kubectl

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {{name: main, image: app, resources: {{limits: {{cpu: "{cpu}", memory: 1Gi}}}}}}
---
"""
CPUS = 'jsonpath={.zones[*].resources[?(@.name=="cpu")].available}'


@pytest.fixture
def kubectl(programs: list[Path], tmp_path: Path) -> Iterator[Kubectl]:
    config = enabling("NodeResourceTopologyMatch", {"cacheResyncPeriodSeconds": 1})
    cluster = Cluster(tmp_path / "kubeconfig", config, numa=2)
    cluster.start()
    yield Kubectl(programs[0], cluster.kubeconfig, tmp_path)
    cluster.stop()


def test_zones_of_nodes_with_kubectl(kubectl):
    for node in ("node-0", "node-1", "node-2"):
        assert kubectl.until(bool, "get", "node-res-topo", node, "--ignore-not-found", "-o", CPUS) == "4 4"
    names = [f"p{number}" for number in range(6)]
    for name in names:
        kubectl("apply", "-f", "-", stdin=POD.format(name=name, cpu=3))
        kubectl("wait", "--for=condition=Ready", "--timeout=20s", f"pod/{name}")
    for node in ("node-0", "node-1", "node-2"):
        kubectl.until(lambda shown: shown == "1 1", "get", "node-res-topo", node, "-o", CPUS)

    kubectl("apply", "-f", "-", stdin=POD.format(name="late", cpu=2))
    kubectl("wait", "--for=condition=PodScheduled=False", "--timeout=20s", "pod/late")
    reason = "0/3 nodes are available: 3 cannot align container."
    assert reason in kubectl("get", "pod", "late", "-o", "jsonpath={.status.conditions}")

    kubectl("delete", "pod", names[0])
    kubectl("wait", "--for=condition=Ready", "--timeout=20s", "pod/late")

    kubectl("delete", "node", "node-2")
    kubectl.until(lambda shown: not shown, "get", "node-res-topo", "node-2", "--ignore-not-found")
