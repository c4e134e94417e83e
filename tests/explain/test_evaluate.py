"""Cases that are not what they should be: each gives an answer, none stops the others."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api import decoding
from moorage.explain.evaluate import Evaluator, default_configuration, evaluate
from moorage.testing import make_node, make_pod
from tests.explain.world import ask, cluster, load

POD = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c"}]}}
NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, "input.pod: the incoming pod is missing: expected an object, got nothing"),
        ({"pod": 5}, "input.pod: the incoming pod is missing: expected an object, got int"),
        ({"pod": POD, "nodes": 5}, "input.nodes: expected a list of objects, got int"),
        ({"pod": POD, "args": [1]}, "input.args: expected an object of plugin names, got list"),
        ({"pod": POD, "nods": []}, "input.nods: unknown; known are namespaces, nodes"),
        ({"pod": {**POD, "spec": {"containers": 5}}}, "Pod default/p: spec.containers"),
        ({"pod": POD, "nodes": [{**NODE, "status": {"allocatable": {"cpu": "x"}}}]}, "Node n: status.allocatable"),
    ],
)
def test_a_bad_case_says_what_is_wrong_with_it(given, error):
    answer = evaluate({"id": "x", "input": given})
    assert set(answer) == {"id", "error"}
    assert error in answer["error"]


def test_arguments_that_a_plugin_refuses_are_an_error_of_the_plugin_and_of_the_profile():
    given = {"pod": POD, "args": {"NodeResourcesFit": {"scoringStrategy": {"type": "No"}}, "InterPodAffinity": {}}}
    answer = evaluate({"id": "x", "input": given})
    assert "scoringStrategy.type" in answer["error"]
    assert answer["plugins"] == {name: {"error": answer["error"]} for name in ("*", "NodeResourcesFit")}


@pytest.mark.parametrize(("version", "refuses"), [("1.36", True), ("1.37", False)])
def test_a_shape_of_volume_binding_needs_the_feature_gate(version, refuses):
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    given = {"pod": POD, "nodes": [NODE], "args": {"VolumeBinding": {"shape": shape}}}
    answer = Evaluator(default_configuration(version))({"id": "x", "input": given})
    assert ("error" in answer["plugins"].get("VolumeBinding", {})) is refuses
    assert ("feature gate StorageCapacityScoring" in answer.get("error", "")) is refuses


def test_a_node_preference_that_cannot_be_parsed_fails_only_scoring():
    preference = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["x"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]}
    pod = {**POD, "spec": {"affinity": {"nodeAffinity": preferred}}}
    other = {**NODE, "metadata": {"name": "m"}}
    answer = evaluate({"id": "x", "input": {"pod": pod, "nodes": [NODE, other]}})
    assert (answer["feasible"], answer["total"]) == (["m", "n"], {})
    assert answer["plugins"]["NodeAffinity"]["preScore"]["code"] == "Error"
    assert "matchExpressions[0]" in answer["error"]


def test_hand_written_pods_get_the_defaults_of_the_api_server():
    limited = {"name": "c", "resources": {"limits": {"cpu": "3"}}}
    placed = {"metadata": {"name": "o"}, "spec": {"nodeName": "n", "containers": [limited]}}
    answer = evaluate(
        {"id": "x", "input": {"pod": {**POD, "spec": {"containers": [limited]}}, "nodes": [NODE], "pods": [placed]}}
    )
    assert answer["plugins"]["NodeResourcesFit"]["filter"]["n"]["reasons"] == ["Insufficient cpu"]


def test_a_bare_dump_with_a_pod_is_a_case():
    answer = evaluate({"id": "x", "pod": POD, "nodes": [NODE]})
    assert (answer["id"], answer["feasible"]) == ("x", ["n"])


def test_an_empty_cluster_has_no_feasible_node():
    assert evaluate({"id": 1, "input": {"pod": POD}})["feasible"] == []


# Answers


def case(pod: Any, nodes: list[Any], pods: list[Any] | None = None, **rest: Any) -> dict[str, Any]:
    listed = {"nodes": nodes, "pods": pods or []}
    raw = {key: [decoding.to_builtins(obj) for obj in objects] for key, objects in listed.items()}
    return {"id": "x", "input": {"pod": decoding.to_builtins(pod), **raw, **rest}}


def test_each_plugin_answers_as_if_it_were_alone():
    nodes = [make_node("a", cpu="1", taints=["x:NoSchedule"]), make_node("b")]
    answer = evaluate(case(make_pod("p", cpu="2"), nodes))
    plugins = answer["plugins"]
    assert list(plugins["TaintToleration"]["filter"]) == ["a"]
    assert list(plugins["NodeResourcesFit"]["filter"]) == ["a"]
    assert set(plugins["NodeResourcesFit"]["score"]) == {"a", "b"}, "refused nodes are scored too"
    assert "NodePorts" not in plugins, "it has nothing to report"


def test_a_pod_that_pre_filter_refuses_has_no_other_answers_of_the_plugin():
    answer = evaluate(case(make_pod("p", claims=["gone"]), [make_node("a")]))
    assert list(answer["plugins"]["VolumeBinding"]) == ["preFilter"]
    assert answer["plugins"]["VolumeBinding"]["preFilter"]["code"] == "UnschedulableAndUnresolvable"


def test_the_nodes_of_pre_filter_are_named_and_only_they_are_filtered():
    pod = decoding.to_builtins(make_pod("p"))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    data = case(make_pod("p"), [make_node("a"), make_node("b")])
    data["input"]["pod"] = pod
    answer = evaluate(data)
    assert answer["plugins"]["NodeAffinity"] == {"preFilterNodes": ["b"]}
    assert answer["feasible"] == ["b"]


def test_a_single_feasible_node_has_a_total():
    answer = evaluate(case(make_pod("p"), [make_node("a")]))
    assert answer["total"]["a"] == sum(plugin["score"]["a"] for plugin in answer["plugins"].values())


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(0, None, id="no priority"),
        pytest.param(10, {"code": "Success", "node": "a", "victims": ["low"]}, id="higher than a running pod"),
        pytest.param(-5, None, id="negative priority"),
    ],
)
def test_preemption_is_tried_for_pods_with_a_priority(priority, expected):
    low = make_pod("low", cpu="3", node="a", priority=1)
    answer = evaluate(case(make_pod("p", cpu="3", priority=priority), [make_node("a")], [low]))
    assert answer["feasible"] == []
    assert answer.get("preemption") == expected


def test_other_arguments_give_other_scores():
    args = {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}}}
    nodes = [make_node("a", cpu="2"), make_node("b", cpu="8")]
    least, most = (
        evaluate(case(make_pod("p", cpu="1"), nodes, args=given))["plugins"]["NodeResourcesFit"]["score"]
        for given in ({}, args)
    )
    assert least["a"] < least["b"]
    assert most["a"] > most["b"]


def test_arguments_of_a_plugin_that_the_profile_lacks_are_an_error():
    answer = evaluate(case(make_pod("p"), [], args={"Coscheduling": {}}))
    assert answer["error"].startswith("input.args.Coscheduling: profile 'default-scheduler' has no plugin")


def test_a_live_cluster_is_loaded_once_for_all_pods():
    live = cluster([make_node("a"), make_node("b")], [make_pod("old", cpu="3", node="a")])
    judge = Evaluator(live=live)
    first, second, third = (
        judge({"id": i, "pod": decoding.to_builtins(make_pod("p", cpu=cpu))}) for i, cpu in enumerate("129")
    )
    assert (first["feasible"], second["feasible"], third["feasible"]) == (["a", "b"], ["b"], [])


def test_a_live_cluster_is_loaded_again_for_other_arguments():
    live = cluster([make_node("a", cpu="2"), make_node("b", cpu="8")])
    judge, pod = Evaluator(live=live), decoding.to_builtins(make_pod("p", cpu="1"))
    args = {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}}}
    plain, packed, again = judge({"pod": pod}), judge({"pod": pod, "args": args}), judge({"pod": pod})
    assert plain == again
    assert plain["total"] != packed["total"]


def test_objects_of_a_case_are_refused_on_a_live_cluster():
    judge = Evaluator(live=cluster([make_node("a")]))
    answer = judge({"id": 1, "pod": POD, "nodes": []})
    assert answer["error"] == "input.nodes: the cluster is that of the API server; leave this out"


def test_explain_and_evaluate_agree():
    nodes = [make_node("a", cpu="1"), make_node("b", taints=["x:NoSchedule"]), make_node("c"), make_node("d")]
    pod = make_pod("p", cpu="2")
    answer, explanation = evaluate(case(pod, nodes)), ask(load(nodes, [pod]), pod, table=True)
    assert explanation.table is not None
    totals = dict(zip(explanation.table["nodes"], explanation.table["scores"], strict=True))
    assert {name: total for name, total in totals.items() if total is not None} == answer["total"]
