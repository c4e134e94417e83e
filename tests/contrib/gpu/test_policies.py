"""The policies score as the formulas of the paper say, written out here node by node."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.app.configuration import configure
from moorage.config import ConfigError
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.gpu.gpus import TYPICAL, cards, gpu_node, gpu_pod, profile
from tests.plugins.one_plugin import ask

NODES = [gpu_node("two", 2), gpu_node("idle", 4), gpu_node("mixed", 4), gpu_node("whole", 2), make_node("none")]
RUNNING = [
    gpu_pod("a", 300, node="two", index="0"),
    gpu_pod("b", 700, node="two", index="1"),
    gpu_pod("c", 200, node="mixed", index="1"),
    gpu_pod("d", 1000, node="mixed", index="0"),
    gpu_pod("e", 1000, node="whole", index="1"),
]


def scores(policy, pod):
    found = ask(policy, pod, NODES, RUNNING)
    return found.raw_scores()


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (gpu_pod("p", 500), {"two": 93, "mixed": 92, "idle": 29, "whole": 49, "none": 33}),
        (gpu_pod("p", 250), {"two": 97, "mixed": 92, "idle": 29, "whole": 49, "none": 33}),
        (gpu_pod("p", 1000, 2), {"two": 48, "mixed": 48, "idle": 29, "whole": 48, "none": 33}),
        (make_pod("p"), {"two": 0, "mixed": 0, "idle": 0, "whole": 0, "none": 0}),
    ],
)
def test_packing_prefers_used_cards_then_used_nodes_then_small_idle_ones(pod, expected):
    assert scores("GpuPacking", pod) == expected


@pytest.mark.parametrize(
    ("pod", "alike"),
    [
        (gpu_pod("p", 500), {"two": 75, "mixed": 50, "idle": 25, "whole": 0, "none": 25}),
        (gpu_pod("p", 1000), {"two": 0, "mixed": 50, "idle": 25, "whole": 75, "none": 25}),
        (gpu_pod("p", 1000, 2), {"two": 0, "mixed": 0, "idle": 25, "whole": 0, "none": 25}),
    ],
)
def test_clustering_prefers_nodes_with_pods_of_one_kind(pod, alike):
    used = {"two": 21, "mixed": 16, "idle": 12, "whole": 21, "none": 25}
    assert scores("GpuClustering", pod) == {name: used[name] + points for name, points in alike.items()}


def test_clustering_does_not_score_pods_without_gpus():
    assert set(scores("GpuClustering", make_pod("p")).values()) == {0}


def test_least_free_prefers_nodes_with_few_idle_cards():
    expected = {"two": 100, "mixed": 75, "idle": 50, "whole": 88, "none": 100}
    assert scores("GpuLeastFree", gpu_pod("p", 1000)) == expected


def test_best_fit_prefers_nodes_with_least_free_afterwards():
    # On the first node 61 cpus and 500 milli stay free: 100 - 50 · 61 / 128 - 50 · 500 / 8,000.
    expected = {"two": 73, "mixed": 61, "idle": 53, "whole": 72, "none": 101}
    assert scores("BestFit", gpu_pod("p", 500, cpu="1")) == expected


def test_dot_product_prefers_nodes_where_little_is_free_of_what_is_asked_for():
    # On the first node: 100 - 50 · (62 / 128 · 32 / 128 + 1,000 / 8,000 · 4,000 / 8,000).
    expected = {"two": 90, "mixed": 85, "idle": 81, "whole": 90, "none": 99}
    assert scores("DotProduct", gpu_pod("p", 1000, 4, cpu="32")) == expected


def fragmentation(cpu, cards):
    """F of a node, class by class as the paper defines it; TYPICAL has no models."""
    classes = [(2000, 500, 0.5), (4000, 1000, 0.25), (1000, 0, 0.25)]
    idle, found = sum(cards), 0.0
    for wanted, milli, weight in classes:
        fits = milli and wanted <= cpu and any(card >= milli for card in cards)
        found += weight * (sum(card for card in cards if card < milli) if fits else idle)
    return found


def points(before, after):
    return int(100 / (1 + math.exp(-round(before - after, 6) / 1000)))


def choices(cpu, cards, pod_cpu, milli, count):
    """Card → score of placing the pod; one entry for whole cards and for pods without GPUs."""
    before = fragmentation(cpu, cards)
    if 0 < milli < 1000:
        ways = {card: {card: free - milli} for card, free in enumerate(cards) if free >= milli}
    else:
        ways = {0: dict.fromkeys([card for card, free in enumerate(cards) if free == 1000][:count], 0)}
    after = {way: [changed.get(n, free) for n, free in enumerate(cards)] for way, changed in ways.items()}
    return {way: points(before, fragmentation(cpu - pod_cpu, cards)) for way, cards in after.items()}


CARDS = st.lists(st.integers(0, 100).map(lambda tens: 10 * tens), min_size=1, max_size=8)


@given(CARDS, st.integers(1, 8), st.sampled_from([(0, 0), (1000, 1), (1000, 2), (70, 1), (500, 1), (990, 1)]))
def test_fgd_scores_by_what_becomes_fragmented(cards, cpu, gpu):
    milli, count = gpu
    nodes = [gpu_node("a", len(cards), cpu=str(cpu))]
    running = [
        gpu_pod(f"on-{card}", 1000 - free, node="a", index=str(card), cpu="0")
        for card, free in enumerate(cards)
        if free < 1000
    ]
    pod = gpu_pod("p", milli, count, cpu="1") if milli else make_pod("p", cpu="1")
    if sum(free >= milli for free in cards) < count:
        return
    found = ask("FGD", pod, nodes, running, {"typicalPods": TYPICAL})
    expected = choices(1000 * cpu, cards, 1000, milli, count)
    assert found.raw_scores() == {"a": max(expected.values())}


def test_fgd_chooses_the_first_card_of_the_best_score():
    running = [(0, 900), (1, 400), (2, 700), (3, 500)]
    pods = [gpu_pod(f"on-{card}", milli, node="a", index=str(card), cpu="0") for card, milli in running]
    with Cluster(config=profile("FGD", {"typicalPods": TYPICAL}), verify_reuse=True) as cluster:
        cluster.add(gpu_node("a", 5), pods)
        cluster.settle()
        free = [100, 600, 300, 500, 1000, 0, 0, 0]
        for name, milli in (("p", 100), ("q", 300), ("r", 450), ("s", 200)):
            expected = choices(64_000, free, 1000, milli, 1)
            best = min(card for card, score in expected.items() if score == max(expected.values()))
            cluster.add(gpu_pod(name, milli))
            cluster.settle()
            assert cards(cluster, name) == ("a", (best,))
            free[best] -= milli


def test_fgd_keeps_a_scarce_model_for_the_pods_that_need_it():
    typical = [{"gpuMilli": 1000, "gpuCardModel": "A10"}, {"gpuMilli": 1000}]
    with Cluster(config=profile("FGD", {"typicalPods": typical}), verify_reuse=True) as cluster:
        cluster.add(gpu_node("a", 2, model="A10"), gpu_node("b", 2, model="T4"))
        cluster.add(gpu_pod(f"p{n}") for n in range(2))
        cluster.settle()
        assert set(cluster.bound().values()) == {"b"}


@pytest.mark.parametrize(
    ("typical", "path"),
    [
        ([], ""),
        ([{"cpu": 1}], ""),
        ([{"gpuMilli": 1001}], "[0].gpuMilli"),
        ([{"gpuMilli": 500, "gpuCount": 2}], "[0].gpuMilli"),
        ([{"gpuMilli": 1000, "gpuCount": 9}], "[0].gpuCount"),
        ([{"gpuMilli": 500}, {"cpu": "much"}], "[1].cpu"),
        ([{"gpuMilli": 500, "weight": 0}], "[0].weight"),
    ],
)
def test_typical_pods_that_make_no_sense_are_refused_with_their_place(typical, path):
    with pytest.raises(ConfigError) as caught:
        configure(profile("FGD", {"typicalPods": typical}))
    expected = [f"profiles[0].pluginConfig[0].args.typicalPods{path}"]
    assert [problem.path for problem in caught.value.problems] == expected
