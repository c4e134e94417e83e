"""In random clusters the message of an explanation is the one that the real scheduler writes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_affinity, spread_over
from tests.explain.world import ask, load

ZONES = ("x", "y", "z")
APPS = ("web", "db")


class Draw:
    """A random cluster with one incoming pod."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.nodes = [self._node(i) for i in range(self._random.randrange(1, 9))]
        self.running = [self._running(i) for i in range(self._random.randrange(0, 12))]
        self.pod = self._incoming()

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _node(self, number: int) -> Node:
        draw = self._random
        return make_node(
            f"n{number}",
            cpu=draw.choice(("1", "2", "4")),
            memory=draw.choice(("2Gi", "8Gi")),
            pods=draw.choice((2, 110)),
            zone=draw.choice(ZONES),
            labels={"disk": draw.choice(("ssd", "hdd"))},
            taints=["dedicated=batch:NoSchedule"] if self._chance(0.3) else [],
            unschedulable=self._chance(0.2),
        )

    def _running(self, number: int) -> Pod:
        draw = self._random
        app = draw.choice(APPS)
        return make_pod(
            f"r{number}",
            node=draw.choice(self.nodes).name,
            cpu=draw.choice(("100m", "700m", "1500m")),
            memory=draw.choice(("128Mi", "1Gi")),
            labels={"app": app},
            priority=draw.choice((0, 5, 50)),
            ports=[80] if self._chance(0.2) else [],
            affinity=make_affinity(away={"app": draw.choice(APPS)}) if self._chance(0.15) else None,
        )

    def _incoming(self) -> Pod:
        draw, app = self._random, self._random.choice(APPS)
        options: dict[str, Any] = {}
        if self._chance(0.3):
            options["node_selector"] = {"disk": "ssd"}
        if self._chance(0.25):
            options["ports"] = [80]
        if self._chance(0.25):
            options["spread"] = [spread_over("topology.kubernetes.io/zone", {"app": app})]
        if self._chance(0.3):
            other = {"app": draw.choice(APPS)}
            near = draw.random() < 0.5
            options["affinity"] = make_affinity(near=other) if near else make_affinity(away=other)
        if self._chance(0.3):
            options["tolerations"] = ["dedicated=batch:NoSchedule"]
        return make_pod(
            "p",
            cpu=draw.choice(("500m", "1500m", "3")),
            memory=draw.choice(("256Mi", "3Gi")),
            labels={"app": app},
            priority=draw.choice((0, 0, 10)),
            **options,
        )


@pytest.mark.parametrize("seed", range(120))
def test_the_message_equals_that_of_the_scheduler(seed):
    drawn = Draw(seed)
    with Cluster(seed=seed) as cluster:
        cluster.add(drawn.nodes)
        cluster.add(drawn.running)
        cluster.settle(0.01)
        cluster.add(drawn.pod)
        cluster.until(lambda: cluster.scheduler.records.of("default/p"))
        record = cluster.scheduler.records.of("default/p")[0]
    answer = ask(load(drawn.nodes, [*drawn.running, drawn.pod]), drawn.pod, remedies=0)
    assert answer.feasible == record.feasible_nodes
    if not record.feasible_nodes:
        assert answer.message == record.message
        assert answer.nominated == record.nominated_node
    else:
        assert answer.message == ""
        assert answer.placement is not None
        assert answer.placement.node == record.node


def test_the_drawn_clusters_are_of_all_kinds():
    """Otherwise the comparison above would show little."""
    plugins: set[str] = set()
    outcomes: set[bool] = set()
    for seed in range(120):
        drawn = Draw(seed)
        answer = ask(load(drawn.nodes, [*drawn.running, drawn.pod]), drawn.pod, remedies=0)
        plugins |= {group.plugin for group in answer.groups}
        outcomes |= {bool(answer.feasible), bool(answer.nominated)}
    assert outcomes == {True, False}
    assert plugins == {
        "InterPodAffinity", "NodeAffinity", "NodePorts", "NodeResourcesFit", "NodeUnschedulable",
        "PodTopologySpread", "TaintToleration",
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_every_node_of_the_message_is_in_a_group(seed):
    drawn = Draw(seed)
    answer = ask(load(drawn.nodes, [*drawn.running, drawn.pod]), drawn.pod, remedies=0, table=True)
    table = answer.table
    assert table is not None
    refused = [any(each["verdicts"][row] for each in table["plugins"]) for row in range(answer.total)]
    assert sum(refused) == answer.total - answer.feasible
    for group in answer.groups:
        assert 0 <= group.only <= group.nodes <= answer.total
        assert sum(group.codes.values()) == group.nodes
