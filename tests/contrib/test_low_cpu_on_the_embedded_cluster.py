"""LowCpuScheduler on the embedded cluster: kubelets report usage, metrics.k8s.io serves it over HTTP."""

from __future__ import annotations

import random
from typing import Any

from moorage.embedded.catalog.virtual import Metrics
from moorage.embedded.kubelet.decisions import USAGE_CPU, KubeletSettings
from moorage.embedded.kubelet.kubelets import Kubelets
from moorage.testing import make_node, make_pod
from tests.contrib.configs import enabling
from tests.faults.world import HttpCluster


class MeasuredCluster(HttpCluster):
    """With kubelets, whose usage the API server serves."""

    def _endpoints(self) -> tuple[Any, ...]:
        settings = KubeletSettings(start_seconds=(0.1, 0.3), stop_seconds=0.2)
        self.kubelets = Kubelets(self.client, self.clock, random.Random(self.seed), settings)
        return (Metrics(self.store, self.kubelets.usage, self.clock.wall),)

    def start(self) -> None:
        self.work = self.loop.create_task(self.kubelets.run())
        super().start()

    def close(self) -> None:
        self.work.cancel()
        super().close()


def hot(name, node):
    return make_pod(name, node=node, cpu="100m", annotations={USAGE_CPU: "3900m"})


def test_pods_keep_off_hot_nodes_and_come_back_when_they_have_cooled_down():
    with MeasuredCluster(config=enabling("LowCpuScheduler")) as cluster:
        first = hot("hot-a", "a")
        # Without conditions: those are the kubelets' to write.
        cluster.add(make_node("a", conditions=()), make_node("b", conditions=()), first)
        cluster.settle(40)
        cluster.add(make_pod("p", cpu="1"), make_pod("q", cpu="1"))
        cluster.settle(20)
        assert (cluster.node_of("p"), cluster.node_of("q")) == ("b", "b")
        cluster.add(hot("hot-b", "b"))
        cluster.settle(40)
        cluster.add(make_pod("r", cpu="100m"))
        cluster.settle(40)
        assert "cpu usage too high: above 95%" in cluster.events("r")[0].note
        cluster.delete(first)
        cluster.settle(40)
        assert cluster.node_of("r") == "a"
