"""Inputs on which the Go plugin panics or contradicts itself, and what is right there."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.contrib.coscheduling.groups import LABEL
from tests.conformance.plugin_cases import evaluate_plugin
from tests.contrib.coscheduling.gangs import podgroup


def pod(name: str, group: str = "", cpu: str = "1", node: str = "") -> dict[str, Any]:
    return {
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "labels": {LABEL: group} if group else {}
        },
        "spec": {
            "containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }  # fmt: skip


def node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}


def in_namespace(group: dict[str, Any]) -> dict[str, Any]:
    return {**group, "metadata": {**group["metadata"], "namespace": "default"}}


def asked(**data: Any) -> list[dict[str, Any]]:
    answer = evaluate_plugin({"plugin": "Coscheduling", "input": data})
    assert "error" not in answer, answer
    steps: list[dict[str, Any]] = answer["steps"]
    return steps


def test_a_pod_that_was_never_tried_sorts_by_the_time_at_which_it_was_queued():
    queue = [
        {"pod": pod("a", "train"), "timestamp": "2026-01-02T00:00:00Z"},
        {"pod": pod("b"), "timestamp": "2026-01-03T00:00:00Z"},
    ]
    [found] = asked(queue=queue, steps=[{"op": "sort"}], custom={"podgroups": [in_namespace(podgroup("train", 1))]})
    assert found["order"] == ["default/a", "default/b"]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_an_overcommitted_node_has_nothing_free_whatever_the_order(order):
    group = in_namespace(podgroup("train", 1, minResources={"cpu": "2"}))
    [found] = asked(
        nodes=[node(name) for name in order],
        pods=[pod("over", cpu="5", node="a"), pod("other", cpu="2", node="b"), pod("member", "train")],
        steps=[{"op": "schedule", "pod": "default/member", "node": "b"}],
        custom={"podgroups": [group]},
    )
    assert found == {}
