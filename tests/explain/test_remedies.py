"""Remedies are found for what default plugins refuse, and work when they are applied."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.node import HOSTNAME, ZONE, Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES
from moorage.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from moorage.app.offline import QuestionEngine
from moorage.explain.judging import Judge
from moorage.explain.other_remedies import node_like
from moorage.explain.trying import Remedy, changed
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


def leaving(node: Node) -> Node:
    return replace(node, metadata=replace(node.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


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
        {"node_selector": {"kubernetes.io/hostname": "m"}}, [make_node("n")], [],
        ["Drop node selector kubernetes.io/hostname=m"],
        id="a label that Kubernetes sets is not proposed",
    ),
    pytest.param(
        {}, [leaving(make_node("n", unschedulable=True))], [],
        [],
        id="a node that is being deleted",
    ),
    pytest.param(
        {"affinity": make_affinity(nodes={"zone": ["a"]})}, [make_node("n")], [],
        ["Drop the required node affinity"],
        id="node affinity",
    ),
    pytest.param(
        {"cpu": "2"}, [FULL], [make_pod("busy", cpu="3", node="n")],
        ["Request at most 1 cpu", "Delete pod default/busy on node n"],
        id="cpu",
    ),
    pytest.param(
        {"cpu": "2", "memory": "6Gi"}, [FULL], [make_pod("busy", cpu="3", memory="4Gi", node="n")],
        ["Request at most 1 cpu and 4Gi memory"],
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
        ["Prefer the pod anti-affinity instead of requiring it", "Delete pod default/web on node n"],
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
        ["Uncordon node n, and request at most 1 cpu"],
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


def test_one_more_node_is_like_the_one_with_the_fewest_obstacles():
    nodes = [make_node("a", cpu="4"), make_node("b", cpu="4", labels={"disk": "ssd"})]
    busy = make_pod("busy", cpu="3", node="b", priority=100)
    pod = make_pod("p", cpu="4", node_selector={"disk": "ssd"})
    texts = [remedy.text for remedy in ask(load(nodes, [busy, pod]), pod, remedies=10).remedies]
    assert "Add one more node like b" in texts


def test_a_larger_node_helps_a_pod_that_fits_no_shape():
    pod = make_pod("p", requests={"cpu": "64", "example.com/fpga": "2"})
    texts = [remedy.text for remedy in ask(load([FULL], [pod]), pod, remedies=10).remedies]
    assert texts == ["Add a node with at least 64 cpu and 2 example.com/fpga"]


@pytest.mark.parametrize("name", ["leaving", "a-leaving"])
def test_a_node_that_is_being_deleted_is_no_success(name):
    nodes = [make_node("n", cpu="4"), leaving(make_node(name, cpu="8"))]
    busy = make_pod("busy", cpu="3", node="n", priority=100)
    pod = make_pod("p", cpu="9")
    found = ask(load(nodes, [busy, pod]), pod, remedies=10)
    assert found.remedies
    assert not [remedy.text for remedy in found.remedies if remedy.node == name]


def test_a_feasible_node_that_is_being_deleted_is_said():
    pod = make_pod("p")
    found = ask(load([leaving(make_node("n"))], [pod]), pod)
    assert found.facts == ("Node n is feasible, but it has been terminating since 2026-01-01T00:00:00Z.",)


def test_the_right_to_preempt_may_help():
    busy = make_pod("busy", cpu="3", node="n", priority=0)
    pod = make_pod("p", cpu="4", priority=10, preemption_policy="Never")
    found = ask(load([FULL], [busy, pod]), pod, remedies=10)
    assert "The pod could preempt default/busy on n, but its preemptionPolicy is Never." in found.facts
    [remedy] = [each for each in found.remedies if "preemptionPolicy" in each.text]
    assert remedy.text == "Drop preemptionPolicy Never, which would preempt default/busy"
    assert remedy.node == "n"


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


def test_the_overhead_of_a_runtime_class_is_no_request_that_could_be_reduced():
    pod = make_pod("p", cpu="500m")
    pod = replace(pod, spec=replace(pod.spec, overhead={"cpu": "4"}))
    found = ask(load([make_node("n", cpu="4")], [pod]), pod)
    assert [remedy.text for remedy in found.remedies if "equest" in remedy.text] == []
    pod = replace(pod, spec=replace(pod.spec, overhead={"cpu": "3700m"}))
    found = ask(load([make_node("n", cpu="4")], [pod]), pod)
    assert "Request at most 300m cpu" in [remedy.text for remedy in found.remedies]


@pytest.mark.parametrize(("allowed", "said"), [(0, ", which violates the disruption budget default/web"), (1, "")])
def test_a_deletion_names_the_budget_that_it_violates(allowed, said):
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=WEB)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )
    pod, busy = make_pod("p", cpu="4"), make_pod("busy", cpu="3", node="n", labels=WEB)
    engine = load([FULL], [pod, busy], budget)
    texts = [remedy.text for remedy in ask(engine, pod).remedies]
    assert f"Delete pod default/busy on node n{said}" in texts
