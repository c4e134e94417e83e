"""Random tenants in virtual time, against a plain account of what they may have."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from moorage.api.pod import Pod
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.capacity_scheduling.tenants import CONFIG, end_terminating, existing, quota

SEEDS = 300
STEPS = 16


@dataclass
class Tenants:
    """A cluster with quotas of cpu alone, and what the quotas say."""

    cluster: Cluster
    rng: random.Random
    nodes: dict[str, int]
    least: dict[str, int]
    most: dict[str, int | None]

    def used(self) -> Counter[str]:
        return Counter({name: sum(map(cpus, self.placed(name))) for name in self.least})

    def placed(self, namespace: str) -> list[Pod]:
        return [pod for pod in self.cluster.pods() if pod.namespace == namespace and pod.is_assigned]

    def fits(self, pod: Pod, node: str, without: set[str]) -> bool:
        """Whether the node and the quotas have enough for the pod once some pods are gone."""
        kept = [other for other in self.cluster.pods() if other.is_assigned and other.key not in without]
        on_node = sum(cpus(other) for other in kept if other.spec.node_name == node)
        used = Counter({name: sum(cpus(p) for p in kept if p.namespace == name) for name in self.least})
        most = self.most[pod.namespace]
        return (
            on_node + cpus(pod) <= self.nodes[node]
            and (most is None or used[pod.namespace] + cpus(pod) <= most)
            and used.total() + cpus(pod) <= sum(self.least.values())
        )


def cpus(pod: Pod) -> int:
    return int(pod.spec.containers[0].resources.requests["cpu"])


def make_tenants(seed: int) -> Tenants:
    rng = random.Random(seed)
    nodes = {f"n{i}": rng.randint(2, 6) for i in range(rng.randint(2, 4))}
    remaining, least, most = sum(nodes.values()), {}, {}
    for name in "abcd"[: rng.randint(2, 4)]:
        least[name] = rng.randint(0, remaining)
        remaining -= least[name]
        most[name] = rng.choice([None, least[name] + rng.randint(0, 4)])
    cluster = Cluster(config=CONFIG, seed=seed, flush_after=None)
    cluster.add(make_node(name, cpu=str(cpu)) for name, cpu in nodes.items())
    cluster.add(quota(name, least[name], most[name]) for name in least)
    cluster.settle()
    return Tenants(cluster, rng, nodes, least, most)


def add_pod(tenants: Tenants, number: int, largest: int) -> None:
    """One more pod for some tenant, until it has a node or is refused, with all that is promised of that."""
    cluster, rng = tenants.cluster, tenants.rng
    namespace, cpu = rng.choice([*tenants.least]), rng.randint(1, largest)
    pod = make_pod(f"p{number}", namespace=namespace, cpu=str(cpu), priority=rng.choice([0, 10, 100]))
    entitled = tenants.used()[namespace] + cpu <= tenants.least[namespace]
    before = tenants.used()
    cluster.add(pod)
    cluster.settle(0.1)
    victims = {*cluster.record(pod.name, namespace).victims}
    assert cluster.record(pod.name, namespace).attempt == 1
    if entitled and largest == 1:
        assert cluster.node_of(pod.name, namespace) or victims, "a tenant did not get its min back"
    if victims:
        check_victims(tenants, pod, victims, entitled, before)
        assert {*end_terminating(cluster)} == victims
        cluster.settle(30)
        assert cluster.node_of(pod.name, namespace), "pods were preempted in vain"
    elif not cluster.node_of(pod.name, namespace):
        cluster.delete(existing(cluster, pod.name, namespace))
    cluster.settle()


def add_several(tenants: Tenants, number: int) -> None:
    """Several pods at once for a tenant that is entitled to all of them: each costs one pod at most."""
    cluster, used = tenants.cluster, tenants.used()
    namespace = tenants.rng.choice([*tenants.least])
    count = min(tenants.least[namespace] - used[namespace], 3)
    pods = [make_pod(f"p{number}-{i}", namespace=namespace, cpu="1") for i in range(count)]
    cluster.add(pods)
    cluster.settle(60)
    waiting = sum(not cluster.node_of(pod.name, namespace) for pod in pods)
    ended = end_terminating(cluster)
    assert len(ended) == waiting, "pods were preempted in vain"
    assert all(used[key.partition("/")[0]] > tenants.least[key.partition("/")[0]] for key in ended)
    cluster.settle(60)
    assert all(cluster.node_of(pod.name, namespace) for pod in pods)


def check_victims(tenants: Tenants, pod: Pod, victims: set[str], entitled: bool, before: Counter[str]) -> None:
    node = existing(tenants.cluster, pod.name, pod.namespace).nominated_node_name
    assert tenants.fits(pod, node, victims)
    for victim in victims:
        assert not tenants.fits(pod, node, victims - {victim}), f"{victim} went for nothing"
        namespace = victim.partition("/")[0]
        assert (namespace != pod.namespace) is entitled
        assert not entitled or before[namespace] > tenants.least[namespace]


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1, 3], ids=["equal pods", "pods of three sizes"])
@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_no_tenant_exceeds_its_max_or_loses_its_min_and_no_pod_is_preempted_in_vain(first, largest):
    for seed in range(first, first + 25):
        play(seed, largest)


def test_a_few_random_tenants():
    for seed in range(3):
        play(seed, 1 + seed % 3)


def play(seed: int, largest: int) -> None:
    tenants = make_tenants(seed)
    with tenants.cluster as cluster:
        for number in range(STEPS):
            if tenants.rng.random() < 0.2 and cluster.bound():
                cluster.delete(tenants.rng.choice([pod for pod in cluster.pods() if pod.is_assigned]))
                cluster.settle()
            if largest == 1 and tenants.rng.random() < 0.3:
                add_several(tenants, number)
            else:
                add_pod(tenants, number, largest)
            used = tenants.used()
            assert used.total() <= sum(tenants.least.values()), seed
            for name, most in tenants.most.items():
                assert most is None or used[name] <= most, (seed, name)
        cluster.validate()
