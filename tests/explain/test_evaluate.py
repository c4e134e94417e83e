"""Cases that are not what they should be: each gives an answer, none stops the others."""

from __future__ import annotations

import pytest

from moorage.explain.evaluate import evaluate

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
        (
            {"pod": POD, "nodes": [{**NODE, "status": {"allocatable": {"cpu": "x"}}}]},
            "Node n: status.allocatable",
        ),
        (
            {"pod": POD, "args": {"NodeResourcesFit": {"scoringStrategy": {"type": "No"}}}},
            "scoringStrategy.type",
        ),
    ],
)
def test_a_bad_case_says_what_is_wrong_with_it(given, error):
    answer = evaluate({"id": "x", "input": given})
    assert set(answer) == {"id", "error"}
    assert error in answer["error"]


def test_a_bare_dump_with_a_pod_is_a_case():
    answer = evaluate({"id": "x", "pod": POD, "nodes": [NODE]})
    assert (answer["id"], answer["feasible"]) == ("x", ["n"])


def test_an_empty_cluster_has_no_feasible_node():
    assert evaluate({"id": 1, "input": {"pod": POD}})["feasible"] == []
