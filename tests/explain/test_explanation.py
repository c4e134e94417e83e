"""What `moorage explain` says: the scheduler's message, all that is in the way, scores, and remedies that
work."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from moorage.explain.refusals import summary
from moorage.framework.optional import Detail
from moorage.testing import Cluster, make_node, make_pod
from tests.explain.world import ask, budget, load

GPU = ["gpu=true:NoSchedule"]


def test_every_plugin_is_asked_about_every_node():
    nodes = [make_node("small", cpu="1"), make_node("gpu", cpu="1", taints=GPU), make_node("big", cpu="8")]
    busy = make_pod("busy", cpu="7", node="big")
    pod = make_pod("p", cpu="2")
    found = ask(load(nodes, [busy, pod]), pod, nodes=("gpu",))
    assert found.feasible == 0
    assert found.message.startswith("0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.")
    assert [(g.plugin, g.nodes, g.only) for g in found.groups] == [
        ("NodeResourcesFit", 3, 2),
        ("TaintToleration", 1, 0),
    ]
    assert [each["plugin"] for each in found.nodes["gpu"]] == ["TaintToleration", "NodeResourcesFit"]
    assert found.nodes["gpu"][1]["details"][0]["text"] == "cpu: 2 requested, 1 free (1 short)"


def test_the_message_is_that_of_the_scheduler():
    nodes = [make_node("a", cpu="1"), make_node("b", cpu="4", taints=GPU), make_node("c", cpu="4")]
    placed = make_pod("placed", cpu="3", node="c", labels={"app": "x"})
    pod = make_pod("p", cpu="2")
    with Cluster() as cluster:
        cluster.add(nodes)
        cluster.add([placed])
        cluster.settle()
        cluster.add(pod)
        cluster.settle()
        said = cluster.scheduler.records.of("default/p")[-1].message
    assert ask(load(nodes, [placed, pod]), pod).message == said


def test_a_placed_pod_is_compared_with_the_next_best_node():
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="8")]
    pod = make_pod("p", cpu="1", node="a")
    found = ask(load(nodes, [pod]), pod)
    assert found.placement is not None
    assert (found.placement.node, found.feasible) == ("b", 2)
    assert found.placement.decided_by == ("NodeResourcesFit", "NodeResourcesBalancedAllocation")
    assert found.placement.margin is not None
    assert found.placement.margin > 0
    assert found.placement.own is not None
    assert found.placement.own.node == "a"


def test_candidates_for_preemption_have_victims_reprieves_and_violated_budgets():
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="4"), make_node("c", cpu="1")]
    running = [
        make_pod("a-large", cpu="2", node="a"),
        make_pod("a-small", cpu="1", node="a"),
        make_pod("b-kept", cpu="3", node="b", labels={"app": "kept"}),
    ]
    pod = make_pod("p", cpu="2", priority=10)
    found = ask(load(nodes, [*running, pod], budget("kept", {"app": "kept"})), pod)
    assert found.nominated == "a"
    assert found.to_dict()["preemption"]["candidates"] == [
        {
            "node": "a",
            "victims": ["default/a-small"],
            "reprieved": ["default/a-large"],
            "pdbViolations": 0,
            "highestPriority": 0,
        },
        {"node": "b", "victims": ["default/b-kept"], "reprieved": [], "pdbViolations": 1, "highestPriority": 0},
    ]


def test_the_state_is_as_before_after_a_question():
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="8", unschedulable=True)]
    pods = [make_pod("p", cpu="1", node="a"), make_pod("q", cpu="6")]
    loaded = load(nodes, pods)
    before = [ask(loaded, pod).to_dict() for pod in pods]
    assert [ask(loaded, pod).to_dict() for pod in pods] == before
    assert json.dumps(before)


ONE = [make_node("n", cpu="4", memory="8Gi")]
FULL = make_pod("full", cpu="3", node="n", priority=0)

REMEDIES: list[Any] = [
    pytest.param([make_node("n", taints=GPU)], [], {}, "Tolerate taint gpu=true:NoSchedule", id="taint"),
    pytest.param([make_node("n", cpu="4", unschedulable=True)], [], {}, "Uncordon node n", id="cordon"),
    pytest.param(ONE, [FULL], {"cpu": "1500m"}, "Request at most 1 cpu", id="cpu"),
    pytest.param(ONE, [], {"node_selector": {"disk": "ssd"}}, "Label node n with disk=ssd", id="label"),
    pytest.param(
        [make_node("n", cpu="4", taints=GPU, unschedulable=True)],
        [],
        {},
        "Uncordon node n, and tolerate taint gpu=true:NoSchedule",
        id="two things",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "pods", "options", "text"), REMEDIES)
def test_the_mildest_remedy_is_shown_first(nodes, pods, options, text):
    pod = make_pod("p", **{"cpu": "1", **options})
    found = ask(load(nodes, [*pods, pod]), pod)
    assert found.remedies[0].text == text


def test_a_part_that_does_is_not_shown_with_more():
    nodes = [make_node("a", taints=GPU), make_node("b", taints=GPU, unschedulable=True)]
    pod = make_pod("p")
    texts = [remedy.text for remedy in ask(load(nodes, [pod]), pod).remedies]
    assert texts[0] == "Tolerate taint gpu=true:NoSchedule"
    assert not any("uncordon" in text.lower() and "tolerate" in text.lower() for text in texts)


def test_a_pod_that_fits_needs_no_remedy():
    pod = make_pod("p")
    assert ask(load([make_node("a")], [pod]), pod).remedies == []


@pytest.mark.parametrize("seed", range(40))
def test_the_first_remedy_makes_the_scheduler_place_the_pod(seed):
    """Random clusters; the remedy is applied to a cluster with the real scheduler."""
    draw = random.Random(seed)
    nodes = [
        make_node(
            f"n{i}",
            cpu=draw.choice(("1", "2", "4")),
            labels={"zone": draw.choice("ab"), **({"disk": "ssd"} if draw.random() < 0.3 else {})},
            taints=GPU if draw.random() < 0.5 else [],
            unschedulable=draw.random() < 0.3,
        )
        for i in range(draw.randrange(1, 6))
    ]
    pods = [
        make_pod(f"r{i}", cpu="700m", node=draw.choice(nodes).name, labels={"app": draw.choice("xy")})
        for i in range(draw.randrange(0, 6))
    ]
    pod = make_pod(
        "p",
        cpu=draw.choice(("500m", "2", "3500m")),
        labels={"app": "x"},
        node_selector={"disk": "ssd"} if draw.random() < 0.4 else {},
    )
    found = ask(load(nodes, [*pods, pod]), pod)
    if not found.remedies or not found.remedies[0].nodes:
        return
    remedy = found.remedies[0]
    gone = {old.name for kind, old, new in remedy.changes if new is None}
    changed = {new.name: new for kind, old, new in remedy.changes if new is not None}
    with Cluster(seed=seed) as cluster:
        cluster.add([changed.pop(node.name, node) for node in nodes])
        cluster.add(list(changed.values()))
        cluster.add([each for each in pods if each.name not in gone])
        cluster.settle()
        cluster.add(remedy.pod or pod)
        cluster.settle()
        assert cluster.node_of("p"), remedy.text


def test_details_of_many_nodes_become_a_line_for_each_subject():
    cpu = [Detail("cpu", 2000, free, 2000 - free, "m") for free in (500, 1000)]
    taint = Detail("taint a:NoSchedule")
    assert summary([[cpu[0], taint], [cpu[1]]]) == ["cpu: 1 to 1500m short on 2 nodes", "taint a:NoSchedule (1 node)"]


def test_preemption_names_the_nodes_that_it_could_choose_from_those_that_cost_least_first():
    nodes = [make_node(name, cpu="2") for name in ("dear", "cheap", "large")]
    pods = [
        make_pod("a", cpu="2", node="dear", priority=50),
        make_pod("b", cpu="2", node="cheap", priority=1),
        make_pod("c", cpu="1", node="large", priority=1),
        make_pod("d", cpu="1", node="large", priority=1),
    ]
    pod = make_pod("p", cpu="2", priority=100)
    found = ask(load(nodes, [*pods, pod]), pod).to_dict()["preemption"]
    assert (found["nominatedNode"], found["victims"]) == ("cheap", ["default/b"])
    assert [(each["node"], len(each["victims"])) for each in found["candidates"]] == [
        ("cheap", 1), ("large", 2), ("dear", 1),
    ]  # fmt: skip
    assert [each["highestPriority"] for each in found["candidates"]] == [1, 1, 50]
