"""Random hierarchies of tenants in virtual time, against a plain account of what each level may have."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from moorage.api.pod import Pod
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.capacity_scheduling.tenants import CONFIG, end_terminating, existing, quota
from tests.contrib.capacity_scheduling.test_random_tenants import cpus

SEEDS = 300
STEPS = 14
Level = tuple[str, ...]
"""Namespaces that share something: all below a quota, or one alone."""


@dataclass
class Tree:
    cluster: Cluster
    rng: random.Random
    nodes: dict[str, int]
    parent: dict[str, str]
    least: dict[str, int]
    most: dict[str, int | None]

    def children(self, name: str) -> list[str]:
        return [child for child, parent in self.parent.items() if parent == name]

    def below(self, name: str) -> Level:
        found = [name]
        for child in self.children(name):
            found += self.below(child)
        return tuple(sorted(found))

    def share(self, name: str) -> int:
        return max(self.least[name], sum(map(self.share, self.children(name))))

    def roots(self) -> list[str]:
        return [name for name in self.least if not self.parent[name]]

    def path(self, namespace: str) -> Iterator[tuple[Level, int]]:
        """Levels from a namespace alone up to its root, with what is guaranteed to each."""
        yield (namespace,), self.share(namespace) - sum(map(self.share, self.children(namespace)))
        while namespace:
            yield self.below(namespace), self.share(namespace)
            namespace = self.parent[namespace]

    def used(self, without: set[str] = frozenset()) -> Counter[str]:  # type: ignore[assignment]
        found: Counter[str] = Counter()
        for pod in self.cluster.pods():
            if pod.is_assigned and pod.key not in without:
                found[pod.namespace] += cpus(pod)
        return found

    def fits(self, pod: Pod, node: str, without: set[str]) -> bool:
        used = self.used(without)
        used[pod.namespace] += cpus(pod)
        kept = [other for other in self.cluster.pods() if other.spec.node_name == node]
        on_node = sum(cpus(other) for other in kept if other.key not in without)
        return on_node + cpus(pod) <= self.nodes[node] and not self.exceeded(used)

    def exceeded(self, used: Counter[str]) -> list[str]:
        over = [name for name, most in self.most.items() if most is not None and total(used, self.below(name)) > most]
        return over + ["all"] * (used.total() > sum(map(self.share, self.roots())))


def total(used: Counter[str], level: Level) -> int:
    return sum(used[name] for name in level)


def make_tree(seed: int) -> Tree:
    rng = random.Random(seed)
    nodes = {f"n{i}": rng.randint(2, 6) for i in range(rng.randint(2, 4))}
    names = "abcdef"[: rng.randint(3, 6)]
    parent = {name: rng.choice(["", *names[:i]]) for i, name in enumerate(names)}
    cluster = Cluster(config=CONFIG, seed=seed, flush_after=None)
    tree = Tree(cluster, rng, nodes, parent, dict.fromkeys(names, 0), {})
    capacity = sum(nodes.values())
    for name in rng.sample(names, len(names)):
        tree.least[name] = rng.randint(0, 5)
        while sum(map(tree.share, tree.roots())) > capacity:
            tree.least[name] -= 1
    tree.most = {name: rng.choice([None, tree.share(name) + rng.randint(0, 3)]) for name in names}
    cluster.add(make_node(name, cpu=str(cpu)) for name, cpu in nodes.items())
    cluster.add(quota(n, tree.least[n], tree.most[n], parent=f"{parent[n]}/q" if parent[n] else "") for n in names)
    cluster.settle()
    return tree


def add_pod(tree: Tree, number: int, largest: int) -> bool:
    """One more pod for some tenant, until it has a node or is refused; whether it took something back."""
    cluster, rng = tree.cluster, tree.rng
    namespace, cpu = rng.choice([*tree.least]), rng.randint(1, largest)
    pod = make_pod(f"p{number}", namespace=namespace, cpu=str(cpu), priority=rng.choice([0, 10, 100]))
    before = tree.used()
    own, share = next(tree.path(namespace))
    entitled = total(before, own) + cpu <= share
    cluster.add(pod)
    cluster.settle(0.1)
    victims = {*cluster.record(pod.name, namespace).victims}
    if entitled and largest == 1:
        assert cluster.node_of(pod.name, namespace) or victims, "a tenant did not get its min back"
    if victims:
        check_victims(tree, pod, victims, before)
        assert {*end_terminating(cluster)} == victims
        cluster.settle(30)
        assert cluster.node_of(pod.name, namespace), "pods were preempted in vain"
    elif not cluster.node_of(pod.name, namespace):
        cluster.delete(existing(cluster, pod.name, namespace))
    cluster.settle()
    return any(key.partition("/")[0] != namespace for key in victims)


def check_victims(tree: Tree, pod: Pod, victims: set[str], before: Counter[str]) -> None:
    node = existing(tree.cluster, pod.name, pod.namespace).nominated_node_name
    assert tree.fits(pod, node, victims)
    for key in victims:
        namespace, _, name = key.partition("/")
        assert not tree.fits(pod, node, victims - {key}), f"{key} went for nothing"
        if namespace == pod.namespace:
            assert existing(tree.cluster, name, namespace).priority < pod.priority
            continue
        theirs = [(level, share) for level, share in tree.path(namespace) if pod.namespace not in level]
        assert all(total(before, level) > share for level, share in theirs), f"{key} did not borrow"
        mine = [(level, share) for level, share in tree.path(pod.namespace) if namespace not in level]
        level, share = mine[-1]
        assert total(before, level) + cpus(pod) <= share, f"{key} went for a tenant that borrows itself"


def play(seed: int, largest: int) -> int:
    """How many pods took something back."""
    tree, taken = make_tree(seed), 0
    with tree.cluster as cluster:
        for number in range(STEPS):
            if tree.rng.random() < 0.2 and cluster.bound():
                cluster.delete(tree.rng.choice([pod for pod in cluster.pods() if pod.is_assigned]))
                cluster.settle()
            taken += add_pod(tree, number, largest)
            assert not tree.exceeded(tree.used()), seed
        cluster.validate()
    return taken


def test_a_few_random_hierarchies():
    assert sum(play(seed, 1 + seed % 3) for seed in range(6)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1, 3], ids=["equal pods", "pods of three sizes"])
@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_no_level_exceeds_its_max_or_loses_its_min_and_no_pod_is_preempted_in_vain(first, largest):
    assert sum(play(seed, largest) for seed in range(first, first + 25)) > 1
