"""Scenarios: fields that do not fit together are found before anything runs, all at once."""

import pytest

from moorage.sim import scenario
from moorage.sim.fields import FieldError

NODES = "nodes: [{name: n, count: 1, allocatable: {cpu: 1}}]\n"


def read(text, files=None):
    return scenario.read(text, "s.yaml", lambda name: (files or {})[name])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: [{name: n}]", "nodes[0].allocatable: required"),
        ("nodes: [{allocatable: {cpu: lots}}]", "nodes[0].allocatable.cpu: 'lots' is not a quantity"),
        ("nodes: [{count: -1, allocatable: {cpu: 1}}]", "nodes[0].count: -1 is less than 0"),
        ("workloads: [{name: w, count: 1}]", "workloads[0]: needs either shape"),
        ("workloads: [{name: w, shape: {cpu: 1}}]", "workloads[0].count: required without a rate"),
        ("workloads: [{name: w, shape: {cpu: x}, count: 1}]", "workloads[0].shape.cpu: 'x' is not a quantity"),
        ("workloads: [{name: w, shape: {cpu: 1}, rate: 1}]", "workloads[0]: pods would arrive forever"),
        ("workloads: [{name: w, shape: {cpu: 1}, count: 1, arrival: at}]", "`arrival: at` requires times"),
        ("workloads: [{name: w, shape: {cpu: 1}, count: 1, arrival: poisson}]", "workloads[0].rate: required"),
        ("workloads: [{name: w, shape: {cpu: 1}, count: 1, burst: 0}]", "workloads[0].burst: 0 is less than 1"),
        ("workloads: [{name: w, shape: {cpu: 1}, count: 1, lifetime: {}}]", "workloads[0].lifetime: needs one"),
        (
            "workloads: [{name: w, shape: {cpu: 1}, count: 1}, {name: w, shape: {cpu: 1}, count: 1}]",
            "workloads[1].name: 'w' is the name of two workloads",
        ),
        (
            "workloads: [{name: w, shape: {cpu: 1}, rate: 1, count: 1, as: deployment}]",
            "workloads[0].as: all pods of a deployment exist",
        ),
        (
            "workloads: [{name: w, shape: {cpu: 1}, count: 1, as: deployment, lifetime: {fixed: 1m}}]",
            "workloads[0]: pods would be recreated forever; set the duration",
        ),
        ("events: [{at: 1}]", "events[0]: needs one of failNode, removeNodes, drain"),
        ("events: [{at: 1, drain: a, cordon: b}]", "got drain, cordon"),
        ("events: [{at: 1, drain: a, for: 1m}]", "events[0].for: is allowed with failNode only"),
        ("events: [{at: 1, addNodes: {name: n}}]", "events[0].addNodes.allocatable: required"),
        ("events: [{at: 1, scale: {workload: w, count: 2}}]", "events[0].scale.workload: 'w' is not a deployment"),
        ("assertions: [{measure: pending, op: '=', value: 0}]", "assertions[0].op: Invalid enum value '='"),
        ("workloads: [{name: w, shape: {cpu: 1}, cont: 1}]", "workloads[0].cont: unknown field; did you mean"),
    ],
)
def test_mistakes_are_named_with_their_place(text, message):
    with pytest.raises(FieldError) as caught:
        read(text)
    assert message in str(caught.value)


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(FieldError) as caught:
        read("nodes: [{name: n}]\nevents: [{at: 1}]")
    assert str(caught.value).count("s.yaml: ") == 2


def test_files_of_objects_are_opened_where_they_are_named():
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}
    found = read(NODES + "objects: [a.yaml]\nevents: [{at: 1, apply: [a.yaml]}]", {"a.yaml": [pod]})
    assert found.objects == (pod,)
    assert found.events[0].apply == (pod,)
