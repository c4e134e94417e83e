"""Many pods: all are bound, and one event over a crowd of unschedulable pods asks each question once."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from moorage.api.resources import PODS
from moorage.framework import (
    ActionType,
    ClusterEvent,
    FilterPlugin,
    QueueingHint,
    Registration,
    ReusablePlugin,
    Status,
    VectorFilterPlugin,
)
from moorage.framework.events import ASSIGNED_POD, NODE, QueuedPod
from moorage.testing import Cluster, make_node, make_nodes, make_pod
from tests.scheduler.kit import config


class FreeCpu(VectorFilterPlugin):
    name = "room"

    def filter_nodes(self, state, pod, nodes):
        return nodes.refuse(nodes.free("cpu") < 100, "no room")


def test_a_thousand_pods_on_a_hundred_nodes():
    with Cluster(config=config("room"), plugins=[FreeCpu]) as cluster:
        began = time.perf_counter()
        cluster.add(make_nodes(100, cpu=1), (make_pod(f"p{i}", cpu="100m") for i in range(1000)))
        cluster.until(lambda: not cluster.pending())
        print(f"1,000 pods in {time.perf_counter() - began:.2f} s")
        assert Counter(cluster.bound().values()) == {f"node-{i}": 10 for i in range(100)}
        assert len(cluster.faults.calls_of("bind")) == 1000
        assert len(cluster.scheduler.records.of("default/p999")) == 1
        cluster.add(make_pod("one-more", cpu="100m"))
        cluster.settle()
        assert cluster.events("one-more")[0].note == "0/100 nodes are available: 100 no room."
        cluster.validate()


class Shy(FilterPlugin, ReusablePlugin):
    """Refuses every pod; its hint counts how often it is asked."""

    name = "shy"
    asked: list[str]

    def filter(self, state, pod, node):
        return Status.unschedulable("no")

    def events_to_register(self):
        node = ClusterEvent(NODE, ActionType.DELETE)
        pod = ClusterEvent(ASSIGNED_POD, ActionType.DELETE)
        return [Registration(node, self.hint), Registration(pod, self.hint)]

    def hint(self, pod, old, new):
        self.asked.append(pod.labels["app"])
        return QueueingHint.SKIP

    def sign(self, pod):
        return pod.labels["app"]


def shy(signs: bool) -> type[Shy]:
    members = {"asked": []} if signs else {"asked": [], "sign": ReusablePlugin.sign}
    return type("Shy", (Shy,), members)


@pytest.mark.parametrize(
    ("signs", "pods"), [pytest.param(True, 50_000, id="with sign"), pytest.param(False, 10_000, id="by template")]
)
def test_one_deletion_over_50000_unschedulable_pods_of_100_signatures_asks_100_hints(signs, pods):
    plugin = shy(signs)
    with Cluster(config=config("shy"), plugins=[plugin], flush_after=None) as cluster:
        cluster.add(make_node("a"), make_node("b"), make_pod("running", node="b", scheduler="somebody"))
        cluster.settle()
        queue = cluster.scheduler.engine.queue
        # Straight into the queue and through its real hooks: 50,000 attempts would take half a minute.
        for i in range(pods):
            pod = make_pod(f"p{i}", labels={"app": f"app{i % 100}"}, uid=f"u{i}")
            queue.add(pod)
            info = queue.pop()
            assert isinstance(info, QueuedPod)
            queue.requeue(info, unschedulable_plugins=frozenset({"shy"}))
            queue.done(info.uid)
        assert queue.pending.counts()["unschedulable"] == pods
        began = time.perf_counter()
        cluster.delete(cluster.node("a"))
        cluster.settle(0.1)
        assert len(plugin.asked) == 100
        assert len(set(plugin.asked)) == 100
        plugin.asked.clear()
        cluster.run(cluster.client.delete(PODS, "running", namespace="default", grace_period=0))
        cluster.settle(60)
        assert Counter(plugin.asked) == {f"app{i}": 1 for i in range(100)}
        print(f"two events over {pods} pods in {time.perf_counter() - began:.3f} s")
