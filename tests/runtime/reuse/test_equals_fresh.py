"""Whatever happens to the cluster, an attempt from a baseline ends as one that starts from nothing."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from moorage.api.node import HOSTNAME, ZONE
from moorage.api.resources import NODES, PODS, SERVICES
from moorage.explain.evaluate import EvaluatedCase
from moorage.framework.events import QueuedPod
from moorage.framework.status import Code
from moorage.runtime.attempt import Attempt
from moorage.runtime.reuse.cache import ReuseCache
from moorage.runtime.reuse.template import TemplateBaseline
from moorage.scheduler.choosing import NodeChooser
from moorage.scheduler.records import make_record
from moorage.state.node_listing import NodeEpoch
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_affinity, make_container, make_service, spread_over

TEMPLATES: tuple[dict[str, Any], ...] = (
    {"labels": {"app": "plain"}, "containers": [make_container("main", "500m", "1Gi", image="web:1")]},
    {"cpu": "100m", "labels": {"app": "served"}},
    {"cpu": "300m", "labels": {"app": "spread"}, "spread": [spread_over(ZONE, {"app": "spread"})]},
    {
        "cpu": "50m",
        "labels": {"app": "soft"},
        "spread": [
            spread_over(HOSTNAME, {"app": "soft"}, soft=True),
            spread_over(ZONE, {"app": "soft"}, soft=True, max_skew=2),
        ],
    },
    {"cpu": "50m", "labels": {"app": "zonal"}, "spread": [spread_over(ZONE, {"app": "zonal"}, soft=True)]},
    {"cpu": "200m", "labels": {"app": "near"}, "affinity": make_affinity(near={"app": "served"}, topology=ZONE)},
    {"cpu": "200m", "labels": {"app": "away"}, "affinity": make_affinity(away={"app": "away"})},
    {"cpu": "100m", "labels": {"app": "ports"}, "ports": [8080]},
    {"cpu": "100m", "labels": {"app": "picky"}, "node_selector": {"disk": "ssd"}, "tolerations": ["a=b:NoSchedule"]},
)


class Clusters:
    """A cluster under random changes, and two choosers: one that reuses answers and one that never does."""

    def __init__(self, seed: int, nodes: int = 8, calm: bool = False) -> None:
        self.calm = calm
        """Whether nodes seldom change, so that baselines last."""
        self.draw = random.Random(seed)
        self.world = EvaluatedCase({"pod": msgspec.to_builtins(make_pod("unused"))})
        engine = self.world.engine
        self.reuse = ReuseCache(lambda resource: engine.stores[resource].version)
        self.warm, self.fresh = NodeChooser(self.reuse), NodeChooser()
        self.nodes = {f"n{i}": self.node(f"n{i}") for i in range(nodes)}
        for node in self.nodes.values():
            self.world.put(NODES, node)
        self.world.put(SERVICES, make_service("served", selector={"app": "served"}))
        engine.drain()
        self.number = 0
        self.seen: Counter[str] = Counter()
        """How often an attempt started from each kind of baseline, and was decided by incremental scores."""

    def node(self, name: str):
        draw = self.draw
        taints = (
            ["a=b:NoSchedule"]
            if draw.random() < 0.2
            else ["c=d:PreferNoSchedule"]
            if not self.calm and draw.random() < 0.2
            else []
        )
        return make_node(
            name,
            cpu=draw.choice(("1", "2", "4")),
            zone=draw.choice(("x", "y", "z")),
            labels={"disk": draw.choice(("ssd", "hdd"))},
            images={"web:1": draw.choice((100, 400)) << 20} if draw.random() < 0.2 else None,
            taints=taints,
            unschedulable=draw.random() < 0.1,
        )

    def step(self) -> None:
        match self.draw.randrange(200 if self.calm else 10):
            case 0:
                self.change_node()
            case 3 if self.calm:
                self.add_service()
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

    def add_service(self) -> None:
        """Pods with these labels are spread in another way from now on."""
        selector = {"app": self.draw.choice(("plain", "served", "ports"))}
        self.world.put(SERVICES, make_service(f"s{self.number}", selector=selector))

    def delete_pod(self) -> None:
        pods = [cached.pod for cached in self.world.engine.cache.pods()]
        if pods:
            self.world.put(PODS, None, self.draw.choice(pods))

    def place(self) -> None:
        self.number += 1
        pod = make_pod(f"p{self.number}", **self.template())
        warm, fresh = self.choose(self.warm, pod), self.choose(self.fresh, pod)
        self.seen[type(warm.baseline).__name__] += 1
        if isinstance(warm.baseline, TemplateBaseline) and not warm.baseline.is_complete:
            self.seen["incremental"] += warm.board is None and bool(warm.node)
        assert outcome(warm) == outcome(fresh)
        assert best(warm) == best(fresh)
        self.seen["kept scores"] += warm.board is None and best(warm) is not None
        if warm.node:
            self.world.put(
                PODS, msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=warm.node))
            )

    def template(self):
        """One of a few templates, or a new one: other requests and labels each time."""
        draw = self.draw
        known = dict(draw.choice(TEMPLATES))
        if draw.random() < 0.4:
            known["cpu"] = f"{draw.randrange(1, 900)}m"
            known["labels"] = {**known["labels"], "only": f"{self.number}"}
        return known

    def choose(self, chooser: NodeChooser, pod) -> Attempt:
        profile = next(iter(self.world.engine.profiles.values()))
        info = QueuedPod(pod, 0.0, signature=self.world.signature(pod))
        attempt = Attempt(info, profile, self.world.nodes)
        status = asyncio.run(chooser.choose(attempt))
        assert status.code is not Code.ERROR, status.message
        return attempt


def outcome(attempt: Attempt):
    return (
        attempt.node,
        attempt.feasible,
        attempt.evaluated,
        sorted(attempt.statuses.histogram().items()),
        attempt.rejectors(),
    )


def best(attempt: Attempt):
    """Return what the record of an attempt tells of the best nodes."""
    epoch = NodeEpoch(0, attempt.nodes.columns.node_names())
    scores = make_record(attempt, 0.0, 0.0, lambda: epoch).scores
    found = [(entry.node, entry.total, sorted(entry.plugins, key=lambda p: p.plugin)) for entry in scores]
    assert not found or found[0][0] == attempt.node
    return found or None


@pytest.mark.parametrize("seed", range(12))
def test_a_reused_answer_equals_a_fresh_one(seed):
    clusters = Clusters(seed)
    for _ in range(200):
        clusters.step()
    assert clusters.seen["TemplateBaseline"] > 8, "templates were hardly reused"
    assert clusters.seen["NodeSetBaseline"] > 30, "what is known about nodes was hardly used"


@pytest.mark.parametrize("seed", range(8))
def test_incremental_scores_equal_fresh_ones(seed):
    clusters = Clusters(seed, nodes=40, calm=True)
    for _ in range(600):
        clusters.step()
    assert clusters.seen["incremental"] > 10, "incremental scores were hardly used"
    assert clusters.seen["kept scores"] > 20, "hardly any attempt was decided by what was kept"


def test_scores_do_not_become_incremental_in_an_attempt_beside_nominated_pods():
    """What PreScore counts among the nodes that such pods leave does not hold when they are gone."""
    clusters = Clusters(0, nodes=0, calm=True)
    for number in range(6):
        clusters.world.put(NODES, make_node(f"n{number}", cpu="1", zone="x"))
    clusters.world.engine.drain()
    soft: dict[str, Any] = {
        "cpu": "50m",
        "labels": {"app": "soft"},
        "spread": [spread_over(HOSTNAME, {"app": "soft"}, soft=True)],
    }

    def place(name: str, priority: int = 0) -> Attempt:
        return clusters.choose(clusters.warm, make_pod(name, priority=priority, **soft))

    nominator = clusters.world.engine.nominator
    rival = make_pod("rival", cpu="1", priority=10)
    place("p0")
    nominator.nominate(rival, "n0")
    beside = place("p1")
    assert isinstance(beside.baseline, TemplateBaseline)
    assert beside.feasible == 5
    assert beside.baseline.incremental is None
    nominator.forget(rival.uid)
    alone = place("p2")
    assert alone.feasible == 6
    assert isinstance(alone.baseline, TemplateBaseline)
    assert alone.baseline.incremental is not None
