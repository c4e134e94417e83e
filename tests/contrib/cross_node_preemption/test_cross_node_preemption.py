"""CrossNodePreemption: pods of a domain that keep a pod off all its nodes, and what is done about them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.config import ConfigError
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_affinity, make_pdb
from tests.contrib.configs import enabling

ZONE = "topology.kubernetes.io/zone"
X, Y = {"app": "x"}, {"app": "y"}
APART = make_affinity(away=X, topology=ZONE)


def cluster(args: Any = None, **options: Any) -> Cluster:
    return Cluster(config=enabling("CrossNodePreemption", args), **options)


def node(name: str, zone: str, cpu: int = 4) -> Any:
    return make_node(name, cpu=str(cpu), labels={ZONE: zone})


def high(name: str, where: str, cpu: int) -> Pod:
    return make_pod(name, node=where, cpu=str(cpu), priority=1000)


def low(name: str, where: str, **options: Any) -> Pod:
    return make_pod(name, node=where, **{"labels": X, **options})


def new(**options: Any) -> Pod:
    return make_pod("new", **{"cpu": "3", "priority": 100, "labels": X, **options})


def nominated(found: Cluster) -> str:
    pod = found.pod("new")
    assert pod is not None
    return pod.nominated_node_name


def ended(found: Cluster) -> list[str]:
    ending = [pod for pod in found.pods() if pod.is_terminating]
    for pod in ending:
        found.delete(pod)
    return sorted(pod.name for pod in ending)


TWO_NODES = [node("a", "1"), node("b", "1"), high("high", "b", 3)]
"""One zone; a pod of 3 cpus fits on `a` only."""
OTHER_ZONE = [node("c", "2"), high("full", "c", 4)]


@pytest.mark.parametrize(
    ("objects", "pod", "victims"),
    [
        ([low("low", "b")], new(affinity=APART), ["low"]),
        ([low("low", "b", labels={}, affinity=APART)], new(), ["low"]),
        ([*OTHER_ZONE, low("low", "b")], new(spread=ZONE), ["low"]),
        ([low("low", "b"), low("own", "a")], new(affinity=APART), ["low", "own"]),
        ([low("low", "b"), low("big", "a", cpu="2", labels={})], new(affinity=APART), ["big", "low"]),
        ([low("low", "b"), low("near", "b", labels=Y)], new(affinity=APART), ["low"]),
    ],
    ids=["own anti-affinity", "theirs", "spread", "both nodes", "and resources", "no others"],
)  # fmt: skip
def test_victims_on_other_nodes_of_the_domain_go(objects, pod, victims):
    with cluster() as found:
        found.add(TWO_NODES, objects)
        found.settle()
        found.add(pod)
        found.settle(5)
        assert sorted(key.partition("/")[2] for key in found.record("new").victims) == victims
        assert nominated(found) == "a"
        assert ended(found) == victims
        found.settle(15)
        assert found.node_of("new") == "a"


@pytest.mark.parametrize(
    ("objects", "pod", "args"),
    [
        ([make_pod("low", node="b", labels=X, priority=100)], new(affinity=APART), {}),
        ([make_pod("low", node="b", labels=X)], new(affinity=APART, preemption_policy="Never"), {}),
        ([make_pod(f"low-{n}", node="b", labels=X) for n in range(3)], new(affinity=APART), {"maxVictims": 2}),
        ([node("d", "1", 0), low("low-0", "b"), low("low-1", "d")], new(affinity=APART), {"maxNodesBeside": 1}),
    ],
    ids=["equal priority", "never preempts", "too many victims", "too many nodes"],
)
def test_no_pod_goes_where_it_may_not_or_it_would_be_too_many(objects, pod, args):
    with cluster(args) as found:
        found.add(TWO_NODES, objects)
        found.settle()
        found.add(pod)
        found.settle(5)
        assert ended(found) == []
        assert nominated(found) == ""


def test_one_node_is_enough_where_that_helps():
    with cluster() as found:
        found.add(node("a", "1"), node("b", "1"), make_pod("low", node="b", labels=X))
        found.settle()
        found.add(new(affinity=APART))
        found.settle(5)
        assert found.record("new").victims == ("default/low",)
        assert nominated(found) == "b"


def test_disruption_budgets_decide_between_domains():
    with cluster() as found:
        found.add(TWO_NODES, node("c", "2"), node("d", "2"), high("high-2", "d", 3))
        found.add(make_pod("guarded", node="b", labels={**X, "guarded": "yes"}), make_pod("low", node="d", labels=X))
        found.add(make_pdb("budget", {"guarded": "yes"}, allowed=0))
        found.settle()
        found.add(new(affinity=APART))
        found.settle(5)
        assert found.record("new").victims == ("default/low",)
        assert nominated(found) == "c"


def test_the_pod_waits_for_victims_on_other_nodes_and_takes_no_more():
    with cluster() as found:
        found.add(TWO_NODES, (make_pod(f"low-{n}", node="b", labels=X) for n in range(2)))
        found.settle()
        found.add(new(affinity=APART))
        found.settle(5)
        noise = make_pod("noise", node="a")
        found.add(noise)
        found.delete(noise)
        found.settle(60)
        assert nominated(found) == "a"
        assert ended(found) == ["low-0", "low-1"]
        found.settle(15)
        assert found.node_of("new") == "a"


@pytest.mark.parametrize("field", ["candidateNodes", "maxNodesBeside", "maxVictims", "maxMilliseconds"])
def test_limits_must_be_positive(field):
    with pytest.raises(ConfigError, match=rf"{field}.*must be at least 1"), cluster({field: 0}):
        pass


class Zones:
    """A random cluster, and a plain account of what the new pod needs: cpu on its node, and a zone without
    pods that it does not want or that do not want it."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.cpus = {f"n{i}": draw.randint(2, 6) for i in range(draw.randint(2, 7))}
        self.zone = {name: draw.choice("12") for name in self.cpus}
        self.found = cluster(seed=seed, flush_after=None)
        self.found.add(make_node(name, cpu=str(cpu), labels={ZONE: self.zone[name]}) for name, cpu in self.cpus.items())
        for name, cpu in self.cpus.items():
            for number in range(draw.randint(0, cpu)):
                kind: dict[str, Any] = draw.choice([{}, {"labels": X}, {"affinity": APART}, {"labels": Y}])
                priority = draw.choice([0, 10, 0, 10, 500] if kind else [0, 500, 500])
                self.found.add(make_pod(f"{name}-{number}", node=name, cpu="1", priority=priority, **kind))
        self.found.add(make_pdb("budget", X, allowed=draw.randint(0, 2)))
        self.found.settle()
        self.pod = new(cpu=str(draw.randint(1, 4)), affinity=APART)

    def fits(self, name: str, away: set[str]) -> bool:
        pods = [pod for pod in self.found.pods() if pod.name not in away and pod.spec.node_name]
        zone = [pod for pod in pods if self.zone[pod.spec.node_name] == self.zone[name]]
        here = sum(pod.spec.node_name == name for pod in pods)
        wanted = int(self.pod.spec.containers[0].resources.requests["cpu"])
        unwanted = any(pod.labels == X or pod.spec.affinity is not None for pod in zone)
        return here + wanted <= self.cpus[name] and not unwanted

    def one_node_is_enough(self) -> bool:
        lower = [pod for pod in self.found.pods() if pod.priority < 100 and pod.spec.node_name]
        return any(self.fits(name, {pod.name for pod in lower if pod.spec.node_name == name}) for name in self.cpus)

    def possible(self) -> bool:
        lower = {pod.name for pod in self.found.pods() if pod.priority < 100}
        return any(self.fits(name, lower) for name in self.cpus)


def play(seed: int) -> bool:
    """Whether pods went from another node."""
    zones = Zones(seed)
    with zones.found as found:
        alone, possible = zones.one_node_is_enough(), zones.possible()
        fits_now = any(zones.fits(name, set()) for name in zones.cpus)
        found.add(zones.pod)
        found.settle(5)
        victims = {pod.name: pod for pod in found.pods() if pod.is_terminating}
        pod = found.pod("new")
        assert pod is not None
        assert bool(victims) == (possible and not fits_now), seed
        if not victims:
            return False
        target = pod.nominated_node_name
        assert zones.fits(target, {*victims}), (seed, "the pod does not fit after all")
        for name, victim in victims.items():
            assert victim.priority < 100, seed
            assert not zones.fits(target, {*victims} - {name}), (seed, f"{name} went for nothing")
        across = any(victim.spec.node_name != target for victim in victims.values())
        assert not (across and alone), (seed, "one node would have been enough")
        ended(found)
        found.settle(30)
        assert found.node_of("new"), (seed, "pods were preempted in vain")
        found.validate()
        return across


def test_a_few_random_zones():
    assert sum(play(seed) for seed in range(20)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 25))
def test_no_pod_goes_in_vain_or_where_one_node_is_enough_and_every_one_is_needed(first):
    assert sum(play(seed) for seed in range(first, first + 25)) > 0
