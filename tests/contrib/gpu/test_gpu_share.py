"""GpuShare: no card gives more than it has, and what a card gave is in the API before the pod is bound."""

from __future__ import annotations

import random

import pytest

from moorage.api.resources import PODS
from moorage.contrib.gpu.requests import GPU_COUNT, GPU_INDEX, GPU_MILLI
from moorage.framework.status import Code
from moorage.store.faults import Fault, lost_answer, lost_request, server_error
from moorage.testing import Cluster, make_node, make_pod
from tests.contrib.gpu.gpus import TYPICAL, cards, gpu_node, gpu_pod, in_use, profile
from tests.plugins.one_plugin import ask

FEW = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had too few GPUs",))
OTHER = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had another GPU model",))


def full(milli):
    return (Code.UNSCHEDULABLE, (f"node(s) had too few GPUs with {milli} of 1000 milli free",))


def sharing(policy="", args=None, **options):
    return Cluster(config=profile(policy, args), verify_reuse=True, **options)


def accounted(cluster):
    """What the scheduler takes for in use, and what it has booked beyond what pods say."""
    plugin = next(iter(cluster.scheduler.engine.profiles.values())).plugins["GpuShare"]
    nodes = plugin.handle.nodes
    cards = plugin.cards.free(nodes)
    return int(1000 * nodes.allocatable(GPU_COUNT).sum() - cards.sum()), plugin.cards.booked


def test_a_node_is_judged_card_by_card_and_not_by_the_sum():
    nodes = [gpu_node("a", 2), gpu_node("b", 2), gpu_node("c", 1), make_node("none")]
    running = [gpu_pod(f"{card}", 600, node="a", index=str(card)) for card in (0, 1)]
    assert ask("GpuShare", gpu_pod("p", 500), nodes, running).refused() == {"a": full(500), "none": FEW}
    assert ask("GpuShare", gpu_pod("p", 400), nodes, running).refused() == {"none": FEW}
    two = ask("GpuShare", gpu_pod("p", count=2), nodes, running)
    assert two.refused() == {"a": full(1000), "c": FEW, "none": FEW}


def test_a_pod_gets_the_models_that_it_accepts():
    nodes = [gpu_node("a", model="T4"), gpu_node("b", model="A10"), gpu_node("c", model="G2")]
    assert ask("GpuShare", gpu_pod("p", models="T4|A10"), nodes).refused() == {"c": OTHER}
    assert ask("GpuShare", gpu_pod("p"), nodes).refused() == {}


def test_pods_without_gpus_are_not_looked_at():
    assert ask("GpuShare", make_pod("p"), [gpu_node("a")]).skipped


def test_a_pod_that_is_wrong_says_what_is_until_it_is_put_right():
    with sharing() as cluster:
        cluster.add(gpu_node("a"), gpu_pod("p", 500, count=2))
        cluster.settle()
        assert "parts are of one card" in cluster.events("p")[0].note
        cluster.patch(PODS, "p", {"metadata": {"annotations": {GPU_COUNT: "1"}}}, namespace="default")
        cluster.settle(20)
        assert cards(cluster, "p") == ("a", (0,))


def test_parts_go_to_the_tightest_card_and_whole_ones_to_the_first_idle():
    with sharing() as cluster:
        running = [gpu_pod(f"{card}", milli, node="a", index=str(card)) for card, milli in ((1, 300), (2, 500))]
        cluster.add(gpu_node("a", 4), running)
        cluster.settle()
        for name, milli, count in (("p", 400, 1), ("q", 600, 1), ("r", 1000, 2)):
            cluster.add(gpu_pod(name, milli, count))
            cluster.settle()
        assert [cards(cluster, name)[1] for name in "pqr"] == [(2,), (1,), (0, 3)]


def test_the_resource_is_served_as_the_annotations_are():
    with sharing() as cluster:
        cluster.add(gpu_node("a", 2), *(make_pod(f"p{n}", requests={GPU_MILLI: 600}) for n in range(3)))
        cluster.settle()
        assert in_use(cluster) == {("a", 0): 600, ("a", 1): 600}
        assert len(cluster.pending()) == 1


def test_a_pod_that_ends_gives_its_cards_back_and_wakes_one_that_waits():
    with sharing() as cluster:
        cluster.add(gpu_node("a", 1), gpu_pod("p", 700))
        cluster.settle()
        cluster.add(gpu_pod("q", 700), make_pod("plain"))
        cluster.settle()
        cluster.delete(cluster.pod("plain"))
        cluster.settle(20)
        assert cluster.record("q").attempt == 1  # a pod without GPUs does not help
        cluster.delete(cluster.pod("p"))
        cluster.settle(20)
        assert cards(cluster, "q") == ("a", (0,))


def test_a_pod_that_says_no_card_counts_on_the_tightest():
    foreign = gpu_pod("foreign", 600, node="a")
    assert ask("GpuShare", gpu_pod("p", 500), [gpu_node("a", 1)], [foreign]).refused() == {"a": full(500)}


@pytest.mark.parametrize("effect", [server_error(), lost_answer(), lost_request()])
def test_no_card_gives_more_than_it_has_when_writes_fail(effect):
    with sharing(allow_background_failures=True) as cluster:
        cluster.add(gpu_node("a", 4), gpu_node("b", 4))
        cluster.settle()
        for verb in ("patch", "bind"):
            cluster.faults.add(Fault(effect, verb=verb, resource=PODS, times=None, chance=0.4))
        cluster.add(gpu_pod(f"p{n}", 300 + 10 * n) for n in range(20))
        cluster.settle(60)
        assert max(in_use(cluster).values()) <= 1000
        cluster.faults.clear()
        cluster.settle(400)
        used = in_use(cluster)
        assert max(used.values()) <= 1000
        assert accounted(cluster) == (sum(used.values()), {})
        assert len(cluster.pending()) <= 5


def test_the_cards_of_an_earlier_attempt_do_not_count():
    """A pod that was not bound after all may still have the annotation."""
    with sharing() as cluster:
        cluster.add(gpu_node("a", 2), gpu_pod("x", 800, node="a", index="1"))
        cluster.settle()
        cluster.add(gpu_pod("p", 600, index="1"))
        cluster.settle()
        assert cards(cluster, "p") == ("a", (0,))


def test_preemption_frees_the_card_that_is_needed():
    running = [gpu_pod(f"{n}", 600, node="a", index=f"{n}", priority=n) for n in (0, 1)]
    with sharing() as cluster:
        cluster.add(gpu_node("a", 2), running)
        cluster.settle()
        cluster.add(gpu_pod("urgent", 500, priority=10))
        cluster.settle()
        assert list(cluster.record("urgent").victims) == ["default/0"]
        cluster.delete(running[0])
        cluster.settle(20)
        assert cards(cluster, "urgent") == ("a", (0,))


def test_a_nominated_pod_keeps_the_card_that_its_victim_gives_back():
    victim = gpu_pod("victim", 600, node="a", index="0")
    with sharing() as cluster:
        cluster.add(gpu_node("a", 1), victim)
        cluster.settle()
        cluster.add(gpu_pod("urgent", 700, priority=10))
        cluster.settle()
        cluster.add(gpu_pod("small", 400))  # would fit beside the victim, and leave too little afterwards
        cluster.settle()
        assert cluster.pending() == ["default/small", "default/urgent"]
        cluster.delete(victim)
        cluster.settle(20)
        assert cards(cluster, "urgent") == ("a", (0,))
        assert cluster.pending() == ["default/small"]


@pytest.mark.parametrize("policy", ["FGD", "BestFit", "GpuPacking"])
def test_no_card_gives_more_than_it_has_across_a_restart_in_the_middle(policy):
    draw = random.Random(7)
    pods = [gpu_pod(f"p{n}", draw.randrange(10, 1000, 10), cpu="10m") for n in range(500)]
    args = {"typicalPods": TYPICAL} if policy == "FGD" else None
    with Cluster(config=profile(policy, args)) as cluster:
        cluster.add(gpu_node(f"n{n}", 8, pods=500) for n in range(20))
        cluster.add(pods[:250])
        cluster.until(lambda: len(cluster.bound()) > 100)
        cluster.add(pods[250:])
        cluster.restart()
        cluster.settle(30)
        used = in_use(cluster)
        assert max(used.values()) <= 1000
        assert all(pod.annotations.get(GPU_INDEX) for pod in cluster.pods() if pod.is_assigned)
        assert accounted(cluster) == (sum(used.values()), {})
        assert sum(used.values()) > 150_000
