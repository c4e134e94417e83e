"""percentageOfNodesToScore: the compatible mode against a plain model that walks node by node."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from moorage.framework import FilterPlugin, PreFilterPlugin, PreFilterResult, ScorePlugin, Status
from moorage.testing import Cluster, make_node, make_pod
from tests.scheduler.kit import config


@dataclass
class SamplingModel:
    """kube-scheduler's search with one worker (`findNodesThatPassFilters`), statement by statement."""

    percentage: int
    start: int = 0
    asked: list[list[str]] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    evaluated: list[int] = field(default_factory=list)

    def attempt(self, all_nodes: list[str], candidates: list[str], feasible: set[str], score: dict[str, int]) -> None:
        size = len(candidates)
        wanted = size if size < 100 else max(100, size * self.percentage // 100)
        asked: list[str] = []
        kept: list[str] = []
        failures = 0
        for i in range(size):
            name = candidates[(self.start + i) % size]
            asked.append(name)
            if name not in feasible:
                failures += 1
            elif len(kept) == wanted:
                break
            else:
                kept.append(name)
        self.asked.append(asked)
        self.evaluated.append(len(kept) + failures)
        self.start = (self.start + len(kept) + failures) % len(all_nodes)
        best = max((score[name] for name in kept), default=0)
        self.chosen.append(next((name for name in kept if score[name] == best), ""))


class Picky(PreFilterPlugin, FilterPlugin, ScorePlugin):
    """Each pod's annotations say which nodes fit, which are looked at, and how good they are."""

    name = "picky"
    asked: list[list[str]]
    feasible: list[set[str]]
    candidates: list[frozenset[str] | None]
    scores: list[dict[str, int]]

    def pre_filter(self, state, pod, nodes):
        self.asked.append([])
        only = self.candidates[int(pod.name[1:])]
        return None if only is None else PreFilterResult(only)

    def filter(self, state, pod, node):
        self.asked[-1].append(node.name)
        fits = node.name in self.feasible[int(pod.name[1:])]
        return None if fits else Status.unschedulable("no")

    def score(self, state, pod, node):
        return self.scores[int(pod.name[1:])][node.name]


def picky() -> type[Picky]:
    return type("Picky", (Picky,), {"asked": [], "feasible": [], "candidates": [], "scores": []})


def run(count: int, percentage: int, attempts: int, seed: int, restricted: float, density: float) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    plugin, model = picky(), SamplingModel(percentage)
    nodes = [make_node(f"n{i:03}", zone=f"z{rng.randrange(3)}") for i in range(count)]
    text = config("picky", extra=f"percentageOfNodesToScore: {percentage}")
    with Cluster(config=text, plugins=[plugin], flush_after=None, seed=seed) as cluster:
        cluster.add(*nodes)
        cluster.settle(0.1)
        order = cluster.scheduler.engine.services.nodes().names
        for i in range(attempts):
            fits = {name for name in order if rng.random() < density} or {order[0]}
            only = None
            if rng.random() < restricted:
                only = frozenset(rng.sample(order, rng.randrange(1, count))) | {"unknown"}
            scores = {name: rng.randrange(3) for name in order}
            plugin.feasible.append(fits)
            plugin.candidates.append(only)
            plugin.scores.append(scores)
            candidates = [name for name in order if only is None or name in only]
            model.attempt(order, candidates, fits, scores)
            cluster.add(make_pod(f"p{i}"))
            cluster.settle(0.1)
            assert plugin.asked == model.asked, f"attempt {i}: other nodes were looked at (seed {seed})"
            assert cluster.node_of(f"p{i}") == model.chosen[i], f"attempt {i} (seed {seed})"
            assert cluster.record(f"p{i}").evaluated_nodes == model.evaluated[i]
            if model.chosen[i] == "":
                cluster.delete(make_pod(f"p{i}"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("count", "percentage", "restricted", "density"),
    [
        pytest.param(250, 40, 0.0, 1.0, id="everything fits: a hundred at a time, wrapping round"),
        pytest.param(250, 50, 0.0, 0.8, id="most fit"),
        pytest.param(150, 10, 0.0, 0.3, id="fewer fit than wanted: all are looked at, the start stays"),
        pytest.param(130, 100, 0.0, 0.9, id="a hundred percent"),
        pytest.param(60, 5, 0.0, 0.9, id="below a hundred nodes all are looked at"),
        pytest.param(260, 20, 0.5, 0.9, id="PreFilter narrows: its count decides, the start moves by it"),
    ],
)
def test_the_same_nodes_are_looked_at_and_chosen_as_upstream(count, percentage, restricted, density, seed):
    run(count, percentage, 6, seed, restricted, density)


def test_without_a_percentage_all_nodes_are_looked_at():
    plugin = picky()
    names = [f"n{i}" for i in range(150)]
    for _ in range(2):
        plugin.feasible.append(set(names))
        plugin.candidates.append(None)
        plugin.scores.append(dict.fromkeys(names, 1))
    with Cluster(config=config("picky"), plugins=[plugin]) as cluster:
        cluster.add(*(make_node(name) for name in names), make_pod("p0"), make_pod("p1"))
        cluster.settle()
        assert [sorted(asked) for asked in plugin.asked] == [sorted(names)] * 2
        assert cluster.node_of("p0") == cluster.node_of("p1") == "n0", "the first among equals"


@pytest.mark.parametrize("top", [100, 120])
def test_no_scalar_plugin_is_called_beyond_the_node_that_is_one_too_many(top):
    plugin = picky()
    names = [f"n{i:03}" for i in range(200)]
    plugin.feasible.append(set(names[50:]))
    plugin.candidates.append(None)
    plugin.scores.append(dict.fromkeys(names, 1))
    text = config("picky", extra=f"percentageOfNodesToScore: {top // 2}")
    with Cluster(config=text, plugins=[plugin]) as cluster:
        cluster.add(*(make_node(name) for name in names), make_pod("p0"))
        cluster.settle()
        assert plugin.asked == [names[: 50 + top + 1]]
        record = cluster.record("p0")
        assert (record.evaluated_nodes, record.feasible_nodes) == (50 + top, top)


def test_a_nominated_node_does_not_move_the_start():
    plugin = picky()
    names = [f"n{i:03}" for i in range(250)]
    for _ in range(3):
        plugin.feasible.append(set(names))
        plugin.candidates.append(None)
        plugin.scores.append(dict.fromkeys(names, 1))
    text = config("picky", extra="percentageOfNodesToScore: 40")
    with Cluster(config=text, plugins=[plugin]) as cluster:
        cluster.add(*(make_node(name) for name in names))
        cluster.add(make_pod("p0"), make_pod("p1", nominated="n200"), make_pod("p2"))
        cluster.settle()
        assert [cluster.node_of(f"p{i}") for i in range(3)] == ["n000", "n200", "n100"]
