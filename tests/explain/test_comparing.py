"""Two deciders on one state: which aspects differ, and which of them have an effect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.app.configuration import Configuration, configure
from moorage.explain.comparing import Difference, EngineDecider, Placement, PodOutcome, compare, differing
from moorage.testing import make_node, make_pod
from tests.explain.world import DEFAULT, load

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def configured(*disabled: str, weights: dict[str, int] | None = None) -> Configuration:
    """Return the default profile without some plugins, and with other weights."""
    plugins = {
        "multiPoint": {
            "disabled": [{"name": name} for name in disabled],
            "enabled": [{"name": name, "weight": weight} for name, weight in (weights or {}).items()],
        }
    }
    return configure(json.dumps({**HEAD, "profiles": [{"plugins": plugins}]}), discover=False)


def compared(
    nodes: Iterable[Node], pods: list[Pod], after: Configuration, before: Configuration = DEFAULT
) -> dict[str, Difference]:
    async def all_of_them() -> list[Difference]:
        deciders = EngineDecider(load(nodes, pods, by=before)), EngineDecider(load(nodes, pods, by=after))
        return [found async for found in compare(*deciders, pods)]

    return {found.pod: found for found in asyncio.run(all_of_them())}


def test_equal_deciders_do_not_differ():
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="8")]
    pods = [make_pod("runs", cpu="1", node="a"), make_pod("waits", cpu="1"), make_pod("huge", cpu="64")]
    assert compared(nodes, pods, DEFAULT) == {}


def test_other_feasible_nodes_are_named():
    nodes = [make_node("a"), make_node("b", unschedulable=True)]
    found = compared(nodes, [make_pod("p")], configured("NodeUnschedulable"))["default/p"]
    assert "feasible" in found.aspects
    assert found.has_effect
    assert (found.to_dict()["gained"], found.to_dict()["lost"]) == (["b"], [])


def test_a_pod_that_becomes_schedulable_has_another_node_and_no_message():
    found = compared([make_node("a", unschedulable=True)], [make_pod("p")], configured("NodeUnschedulable"))
    difference = found["default/p"]
    assert {"node", "message", "feasible"} <= {*difference.aspects}
    assert (difference.before.node, difference.after.node) == ("", "a")
    assert difference.before.message.startswith("0/1 nodes are available: 1 node(s) were unschedulable.")
    assert difference.after.message == ""


def test_a_running_pod_is_placed_again_without_itself():
    nodes = [make_node("a", cpu="2")]
    found = compared(nodes, [make_pod("p", cpu="2", node="a")], configured("NodeResourcesFit"))
    assert not any(difference.has_effect for difference in found.values())


def test_scores_that_leave_every_node_in_its_place_have_no_effect():
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="8")]
    pods = [make_pod("p", cpu="1")]
    found = compared(nodes, pods, configured(weights={"TaintToleration": 5}))["default/p"]
    assert found.aspects == ("scores",)
    assert not found.has_effect
    assert found.before.digest() == found.after.digest()


def test_another_order_of_nodes_has_an_effect():
    nodes = [make_node("a", cpu="4", memory="64Gi"), make_node("b", cpu="8", memory="8Gi")]
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [CPU]}}}
    after = configure(json.dumps({**HEAD, "profiles": [{"pluginConfig": [fit]}]}), discover=False)
    found = compared(nodes, [make_pod("p", cpu="3", memory="1Gi")], after)["default/p"]
    assert {"order", "node"} <= {*found.aspects}
    assert (found.before.node, found.after.node) == ("b", "a")
    assert found.before.digest() != found.after.digest()


CPU = {"name": "cpu", "weight": 1}


def test_a_preemption_is_compared_with_its_node_and_victims():
    nodes = [make_node("a", cpu="2")]
    pods = [make_pod("small", cpu="2", node="a"), make_pod("p", cpu="2", priority=10)]
    found = compared(nodes, pods, configured("DefaultPreemption"))["default/p"]
    assert {"preemption", "message"} <= {*found.aspects}
    assert found.to_dict()["before"]["preemption"] == {"nominatedNode": "a", "victims": ["default/small"]}
    assert found.to_dict()["after"]["preemption"] == {"nominatedNode": "", "victims": []}


def test_a_gated_pod_is_not_tried_by_either():
    gated = make_pod("p", gates=["example.com/quota"])
    assert compared([make_node("a", unschedulable=True)], [gated], configured("NodeUnschedulable")) == {}


def test_nodes_that_share_the_best_total_count_as_one():
    nodes, pod = [make_node("a"), make_node("b")], make_pod("p", node="b")

    async def moved() -> list[Difference]:
        return [found async for found in compare(Placement(), EngineDecider(load(nodes, [pod])), [pod])]

    assert asyncio.run(moved()) == []


def test_outcomes_that_know_only_the_node_are_compared_by_it():
    assert differing(PodOutcome("a"), PodOutcome("a")) == []
    assert differing(PodOutcome("a"), PodOutcome("b")) == ["node"]
    assert differing(PodOutcome("a"), PodOutcome(message="0/1 nodes are available")) == ["node", "message"]


def test_engines_that_list_nodes_in_another_order_are_compared_by_name():
    first = [make_node("a", cpu="4"), make_node("b", cpu="8"), make_node("c", unschedulable=True)]
    pods = [make_pod("p", cpu="1")]

    async def both() -> list[Difference]:
        deciders = EngineDecider(load(first, pods)), EngineDecider(load(reversed(first), pods))
        return [found async for found in compare(*deciders, pods)]

    assert asyncio.run(both()) == []
