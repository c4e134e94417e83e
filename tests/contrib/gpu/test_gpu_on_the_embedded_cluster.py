"""GpuShare on the embedded cluster: the cards of pods are written over HTTP, and read after a restart."""

from __future__ import annotations

import pytest

from moorage.api.errors import Conflict
from moorage.api.resources import PODS
from moorage.contrib.gpu.requests import GPU_INDEX
from tests.contrib.gpu.gpus import TYPICAL, cards, gpu_node, gpu_pod, in_use, profile
from tests.faults.world import HttpCluster


def test_cards_are_shared_over_http_and_across_a_restart():
    with HttpCluster(config=profile("FGD", {"typicalPods": TYPICAL})) as cluster:
        cluster.add(gpu_node("a", 2), gpu_node("b", 1))
        cluster.settle()
        for name, milli, count in (("p", 600, 1), ("q", 600, 1), ("pair", 1000, 2), ("r", 400, 1)):
            cluster.add(gpu_pod(name, milli, count))
            cluster.settle()
        assert cluster.pending() == ["default/pair"]
        cluster.restart()
        cluster.add(gpu_pod("s", 1000), gpu_pod("t", 300))
        cluster.settle(20)
        assert max(in_use(cluster).values()) <= 1000
        assert sum(in_use(cluster).values()) == 600 + 600 + 400 + 1000 + 300
        for pod in cluster.pods():
            if pod.spec.node_name == "a":
                cluster.delete(pod)
        cluster.settle(20)
        assert cards(cluster, "pair") == ("a", (0, 1))


def test_a_new_pod_of_the_same_name_does_not_get_the_cards_of_the_old_one():
    with HttpCluster(config=profile()) as cluster:
        cluster.add(gpu_pod("p", 500))
        patch = {"metadata": {"uid": "of-the-old-pod", "annotations": {GPU_INDEX: "0"}}}
        with pytest.raises(Conflict):
            cluster.run(cluster.http.patch(PODS, "p", patch, namespace="default"))
        assert cards(cluster, "p") == ("", ())
