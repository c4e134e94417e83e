"""Remedies are found for what default plugins refuse, and work when they are applied."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.node import HOSTNAME, ZONE
from moorage.api.pod import Pod
from moorage.api.resources import NODES
from moorage.app.offline import QuestionEngine
from moorage.explain.judging import Judge
from moorage.explain.remedies import Remedy, changed, node_like
from moorage.testing import make_node, make_pod
from moorage.testing.builders import make_affinity, spread_over
from tests.explain.world import ask, load

WEB = {"app": "web"}
GPU = ["gpu=true:NoSchedule"]
FULL = make_node("n", cpu="4", memory="8Gi")


def applied(engine: QuestionEngine, pod: Pod, remedy: Remedy) -> Any:
    """The explanation of the pod after the remedy."""
    relaxed = remedy.pod or pod
    with changed(Judge.of(engine, pod), remedy.changes):
        return ask(engine, relaxed, remedies=0)


REMEDIES: list[Any] = [
    pytest.param(
        {}, [make_node("n", taints=GPU)], [], ["Tolerate taint gpu=true:NoSchedule"], id="taint"
    ),
    pytest.param(
        {}, [make_node("n", taints=["a:NoSchedule", "b:NoExecute"])], [],
        ["Tolerate taint a:NoSchedule and b:NoExecute"],
        id="two taints",
    ),
    pytest.param({}, [make_node("n", unschedulable=True)], [], ["Uncordon node n"], id="cordon"),
    pytest.param(
        {"node_selector": {"disk": "ssd"}}, [make_node("n")], [],
        ["Label node n with disk=ssd", "Drop node selector disk=ssd"],
        id="node selector",
    ),
    pytest.param(
        {"affinity": make_affinity(nodes={"zone": ["a"]})}, [make_node("n")], [],
        ["Drop the required node affinity"],
        id="node affinity",
    ),
    pytest.param(
        {"cpu": "2"}, [FULL], [make_pod("busy", cpu="3", node="n")],
        ["Request 1 less cpu", "Delete pod default/busy on node n"],
        id="cpu",
    ),
    pytest.param(
        {"cpu": "2", "memory": "6Gi"}, [FULL], [make_pod("busy", cpu="3", memory="4Gi", node="n")],
        ["Request 1 less cpu and 2Gi less memory"],
        id="cpu and memory",
    ),
    pytest.param(
        {}, [make_node("n", pods=1)], [make_pod("only", node="n")],
        ["Delete pod default/only on node n"],
        id="number of pods",
    ),
    pytest.param(
        {"ports": [80]}, [make_node("n")], [make_pod("web", node="n", ports=[80])],
        ["Do without host ports", "Delete pod default/web on node n"],
        id="host port",
    ),
    pytest.param(
        {"affinity": make_affinity(away=WEB)}, [make_node("n")], [make_pod("web", node="n", labels=WEB)],
        ["Drop the required pod anti-affinity", "Delete pod default/web on node n"],
        id="anti-affinity",
    ),
    pytest.param(
        {"affinity": make_affinity(near=WEB)}, [make_node("n")], [],
        ["Drop the required pod affinity"],
        id="affinity",
    ),
    pytest.param(
        {"labels": WEB, "spread": [spread_over(ZONE, WEB)]},
        [make_node("a", zone="x"), make_node("b", zone="y", unschedulable=True)],
        [make_pod("web", node="a", labels=WEB)],
        [
            "Uncordon node b",
            f"Allow a maxSkew of 2 over {ZONE}",
            f"Spread over {ZONE} with ScheduleAnyway",
        ],
        id="topology spread",
    ),
    pytest.param(
        {"cpu": "2"}, [make_node("n", cpu="4", unschedulable=True)], [make_pod("busy", cpu="3", node="n")],
        ["Uncordon node n, and request 1 less cpu"],
        id="two plugins on one node",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("options", "nodes", "pods", "texts"), REMEDIES)
def test_remedies_are_found_and_make_the_pod_schedulable(options, nodes, pods, texts):
    pod = make_pod("p", **options)
    engine = load(nodes, [*pods, pod])
    answer = ask(engine, pod, remedies=10)
    assert answer.feasible == 0
    found = {remedy.text: remedy for remedy in answer.remedies}
    assert [text for text in found if text in texts] == texts
    for remedy in answer.remedies:
        after = applied(engine, pod, remedy)
        if remedy.nodes:
            assert after.feasible == remedy.nodes, remedy.text
            assert after.placement.node == remedy.node, remedy.text
        else:
            assert after.nominated == remedy.node, remedy.text
    assert ask(engine, pod, remedies=10).to_dict() == answer.to_dict(), "nothing is changed by trying"


def test_the_costs_order_the_remedies():
    nodes = [make_node("a", cpu="4", taints=GPU), make_node("b", cpu="1")]
    pod = make_pod("p", cpu="2")
    costs = [remedy.cost for remedy in ask(load(nodes, [pod]), pod, remedies=10).remedies]
    assert costs == sorted(costs)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_no_more_remedies_than_asked_for(number):
    pod = make_pod("p", cpu="2", node_selector={"disk": "ssd"})
    nodes = [make_node("a", taints=GPU, labels={"disk": "ssd"}), make_node("b"), make_node("c", cpu="1")]
    assert len(ask(load(nodes, [pod]), pod, remedies=number).remedies) == number


def test_one_more_node_helps_a_pod_that_fits_an_empty_one():
    busy = make_pod("busy", cpu="3", node="n", priority=0)
    pod = make_pod("p", cpu="4")
    remedies = {each.text: each for each in ask(load([FULL], [busy, pod]), pod, remedies=10).remedies}
    remedy = remedies["Add one more node like n"]
    [(_, old, new)] = remedy.changes
    assert old is None
    assert (new.name, new.labels[HOSTNAME]) == (remedy.node, remedy.node)


def test_no_node_of_a_known_shape_helps_a_pod_that_is_too_large():
    pod = make_pod("p", cpu="64")
    texts = [remedy.text for remedy in ask(load([FULL], [pod]), pod, remedies=10).remedies]
    assert not [text for text in texts if text.startswith("one more node")]


def test_the_lowest_priority_that_would_preempt():
    pods = [make_pod(f"r{i}", cpu="2", node="n", priority=10 * (i + 1)) for i in range(2)]
    pod = make_pod("p", cpu="2", priority=0)
    remedies = ask(load([FULL], [*pods, pod]), pod, remedies=10).remedies
    [remedy] = [each for each in remedies if "priority" in each.text]
    assert remedy.text == "Raise the priority to 11, which would preempt default/r0"
    assert (remedy.nodes, remedy.node) == (0, "n")
    assert remedy.pod is not None
    assert remedy.pod.priority == 11


def test_a_pod_that_never_preempts_is_not_advised_to_raise_its_priority():
    pod = make_pod("p", cpu="4", preemption_policy="Never")
    busy = make_pod("busy", cpu="3", node="n", priority=0)
    texts = [remedy.text for remedy in ask(load([FULL], [busy, pod]), pod, remedies=10).remedies]
    assert not [text for text in texts if "priority" in text]


def test_of_several_pods_in_the_way_the_least_important_is_proposed():
    pods = [make_pod("large", cpu="3", node="n", priority=5), make_pod("low", cpu="1", node="n", priority=1)]
    pod = make_pod("p", cpu="1", priority=0)
    texts = [remedy.text for remedy in ask(load([FULL], [*pods, pod]), pod, remedies=10).remedies]
    assert "Delete pod default/low on node n" in texts
    assert "Delete pod default/large on node n" not in texts


def test_a_remedy_as_data_has_the_objects_before_and_after():
    pod = make_pod("p")
    answer = ask(load([make_node("n", unschedulable=True)], [pod]), pod).to_dict()
    remedy = answer["remedies"][0]
    assert (remedy["text"], remedy["nodes"], remedy["node"]) == ("Uncordon node n", 1, "n")
    [change] = remedy["changes"]
    assert (change["kind"], change["name"]) == ("Node", "n")
    assert change["from"]["spec"]["unschedulable"] is True
    assert not change["to"]["spec"].get("unschedulable")
    assert remedy["pod"] is None


def test_a_remedy_of_the_pod_as_data_has_the_pod():
    pod = make_pod("p")
    answer = ask(load([make_node("n", taints=GPU)], [pod]), pod).to_dict()
    tolerations = answer["remedies"][0]["pod"]["spec"]["tolerations"]
    assert [each["key"] for each in tolerations] == ["gpu"]
    assert answer["remedies"][0]["changes"] == []


def test_a_node_like_another_is_not_cordoned_and_has_its_own_hostname():
    copy = node_like(make_node("n", unschedulable=True, zone="x", labels={"disk": "ssd"}), "m")
    assert (copy.name, copy.unschedulable) == ("m", False)
    assert (copy.labels[HOSTNAME], copy.labels[ZONE], copy.labels["disk"]) == ("m", "x", "ssd")


def test_changes_are_taken_back_also_after_an_error():
    pod = make_pod("p", cpu="4")
    engine = load([FULL], [pod])
    judge, more = Judge.of(engine, pod), node_like(FULL, "m")

    def fail() -> None:
        with changed(judge, ((NODES, None, more),)):
            assert judge.nodes.names == ["n", "m"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert judge.nodes.names == ["n"]
