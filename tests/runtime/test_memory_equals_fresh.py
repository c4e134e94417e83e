"""Whatever happens to the cluster, an attempt from memory ends as one that starts from nothing."""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest

from mooring.api.resources import NODES, PODS, SERVICES
from mooring.app.evaluating import World
from mooring.framework.queued import QueuedPod
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.choosing import NodeChooser
from mooring.scheduler.recalling import Recaller
from mooring.testing import make_node, make_pod
from mooring.testing.builders import ZONE, make_service, spread_over

TEMPLATES = (
    {"cpu": "500m", "memory": "1Gi", "labels": {"app": "plain"}},
    {"cpu": "100m", "labels": {"app": "served"}},
    {"cpu": "300m", "labels": {"app": "spread"}, "spread": [spread_over(ZONE, {"app": "spread"})]},
    {"cpu": "200m", "labels": {"app": "near"}, "near": {"app": "served"}, "topology": ZONE},
    {"cpu": "200m", "labels": {"app": "away"}, "away": {"app": "away"}},
    {"cpu": "100m", "labels": {"app": "ports"}, "ports": [8080]},
    {
        "cpu": "100m",
        "labels": {"app": "picky"},
        "node_selector": {"disk": "ssd"},
        "tolerations": ["a=b:NoSchedule"],
    },
)


class Clusters:
    """A cluster under random changes, and two choosers: one that remembers and one that never does."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.world = World({"pod": msgspec.to_builtins(make_pod("unused"))})
        engine = self.world.engine
        self.recaller = Recaller(lambda resource: engine.stores[resource].version)
        self.warm, self.fresh = NodeChooser(self.recaller), NodeChooser()
        self.nodes = {f"n{i}": self.node(f"n{i}") for i in range(8)}
        for node in self.nodes.values():
            self.world.put(NODES, node)
        self.world.put(SERVICES, make_service("served", selector={"app": "served"}))
        engine.drain()
        self.number = 0
        self.recalls = 0

    def node(self, name: str):
        draw = self.draw
        taints = (
            ["a=b:NoSchedule"]
            if draw.random() < 0.2
            else ["c=d:PreferNoSchedule"]
            if draw.random() < 0.2
            else []
        )
        return make_node(
            name,
            cpu=draw.choice(("1", "2", "4")),
            zone=draw.choice(("x", "y", "z")),
            labels={"disk": draw.choice(("ssd", "hdd"))},
            taints=taints,
            unschedulable=draw.random() < 0.1,
        )

    def step(self) -> None:
        match self.draw.randrange(10):
            case 0:
                self.change_node()
            case 1 | 2:
                self.delete_pod()
            case _:
                self.place()
        self.world.engine.drain()

    def change_node(self) -> None:
        name = f"n{self.draw.randrange(9)}"
        old = self.nodes.pop(name, None)
        new = self.node(name) if old is None or self.draw.random() < 0.7 else None
        if new is not None:
            self.nodes[name] = new
        self.world.put(NODES, new, old)

    def delete_pod(self) -> None:
        pods = [cached.pod for cached in self.world.engine.cache.pods()]
        if pods:
            self.world.put(PODS, None, self.draw.choice(pods))

    def place(self) -> None:
        self.number += 1
        pod = make_pod(f"p{self.number}", **self.draw.choice(TEMPLATES))
        warm, fresh = self.choose(self.warm, pod), self.choose(self.fresh, pod)
        self.recalls += warm.recalled is not None
        assert outcome(warm) == outcome(fresh)
        if warm.node:
            self.world.put(
                PODS,
                msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=warm.node)),
            )

    def choose(self, chooser: NodeChooser, pod) -> Attempt:
        profile = next(iter(self.world.engine.profiles.values()))
        info = QueuedPod(pod, 0.0, signature=profile.signature(pod))
        attempt = Attempt(info, profile, self.world.nodes)
        asyncio.run(chooser.choose(attempt))
        return attempt


def outcome(attempt: Attempt):
    return (
        attempt.node,
        attempt.feasible,
        attempt.evaluated,
        sorted(attempt.statuses.histogram().items()),
        attempt.rejectors(),
    )


@pytest.mark.parametrize("seed", range(12))
def test_memory_equals_a_fresh_evaluation(seed):
    clusters = Clusters(seed)
    for _ in range(120):
        clusters.step()
    assert clusters.recalls > 20, "memory was hardly used"
