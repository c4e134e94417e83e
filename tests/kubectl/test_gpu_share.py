"""GPUs that pods share, typed by a user with kubectl: parts of cards, the reason, a pod that ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.contrib.gpu.requests import GPU_COUNT, GPU_INDEX
from tests.contrib.gpu.gpus import profile
from tests.kubectl.cluster import Cluster
from tests.kubectl.runner import Kubectl

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  annotations: {{alibabacloud.com/gpu-milli: "{milli}"}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{{name: main, image: app}}]
---
"""
READ = "jsonpath={.spec.nodeName}/{.metadata.annotations." + GPU_INDEX.replace(".", r"\.") + "}"


@pytest.fixture
def kubectl(programs: list[Path], tmp_path: Path) -> Iterator[Kubectl]:
    cluster = Cluster(tmp_path / "kubeconfig", profile("GpuPacking"), {GPU_COUNT: 1})
    cluster.start()
    yield Kubectl(programs[0], cluster.kubeconfig, tmp_path)
    cluster.stop()


def test_parts_of_gpus_with_kubectl(kubectl):
    names = [f"p{number}" for number in range(6)]
    kubectl("apply", "-f", "-", stdin="".join(POD.format(name=name, milli=500) for name in names))
    kubectl("wait", "--for=condition=Ready", "--timeout=20s", *(f"pod/{name}" for name in names))
    places = [kubectl("get", "pod", name, "-o", READ) for name in names]
    assert sorted(places) == [f"node-{number}/0" for number in range(3) for _ in range(2)]

    kubectl("apply", "-f", "-", stdin=POD.format(name="late", milli=200))
    kubectl("wait", "--for=condition=PodScheduled=False", "--timeout=20s", "pod/late")
    reason = "0/3 nodes are available: 3 node(s) had too few GPUs with 200 of 1000 milli free."
    assert reason in kubectl("get", "pod", "late", "-o", "jsonpath={.status.conditions}")

    kubectl("delete", "pod", names[0])
    kubectl("wait", "--for=condition=Ready", "--timeout=20s", "pod/late")
    assert kubectl("get", "pod", "late", "-o", READ) == places[0]
