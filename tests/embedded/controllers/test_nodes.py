"""Nodes that fail: conditions, taints, eviction, and pods on nodes that are gone."""

from __future__ import annotations

import math
from typing import Any

import pytest

from moorage.api.resources import Unstructured
from moorage.api.taints import Taint, Toleration
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.node_lifecycle import eviction_time, wanted_taints, with_taints
from tests.embedded.controllers.world import World, template, workload

Raw = dict[str, Any]


def taints(world: World, name: str) -> set[tuple[str, str]]:
    found = world.get(kinds.NODES, name).get("spec", {}).get("taints") or ()
    return {(t["key"].rpartition("/")[2], t["effect"]) for t in found}


def ready(world: World, name: str) -> str:
    conditions = world.get(kinds.NODES, name)["status"]["conditions"]
    return next(str(c["status"]) for c in conditions if c["type"] == "Ready")


def tolerant(seconds: int) -> list[Raw]:
    return [
        {"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for k in ("not-ready", "unreachable")
    ]


def test_a_silent_node_is_tainted_its_pods_move_and_it_comes_back():
    with World() as world:
        made = template(tolerations=tolerant(60))
        world.create(kinds.DEPLOYMENTS, workload(replicas=6, template=made))
        world.settle(5)
        assert world.kubelets is not None
        world.kubelets.fail("n1")
        world.settle(35)
        assert ready(world, "n1") == "True"
        world.settle(25)
        assert ready(world, "n1") == "Unknown"
        assert taints(world, "n1") == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
        assert world.events("NodeNotReady", "n1")
        stuck = [p for p in world.all(kinds.PODS) if p["spec"]["nodeName"] == "n1"]
        assert len(stuck) == 2
        assert not any(_pod_ready(p) for p in stuck)
        world.settle(60)
        # Evicted and replaced; the dead node cannot confirm that its pods have stopped.
        stuck = [p for p in world.all(kinds.PODS) if p["spec"]["nodeName"] == "n1"]
        assert all("deletionTimestamp" in p["metadata"] for p in stuck)
        assert len(stuck) == 2
        assert world.get(kinds.DEPLOYMENTS, "web")["status"]["readyReplicas"] == 6
        assert len(world.events("TaintManagerEviction")) == 2
        world.kubelets.recover("n1")
        world.settle(40)
        assert ready(world, "n1") == "True"
        assert taints(world, "n1") == set()
        assert len(world.all(kinds.PODS)) == 6
        since = world.clock.now()
        world.settle(100)
        assert world.writes(since) == []


def _pod_ready(pod: Raw) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])


def test_the_annotation_kills_a_node_too():
    with World() as world:
        world.patch(kinds.NODES, "n0", {"metadata": {"annotations": {"moorage.dev/fail": "true"}}})
        world.settle(70)
        assert ready(world, "n0") == "Unknown"
        world.patch(kinds.NODES, "n0", {"metadata": {"annotations": {"moorage.dev/fail": None}}})
        world.settle(30)
        assert ready(world, "n0") == "True"


def test_conditions_and_cordons_become_taints():
    with World() as world:
        annotated = {"metadata": {"annotations": {"moorage.dev/conditions": "MemoryPressure=True,Ready=False"}}}
        world.patch(kinds.NODES, "n0", annotated)
        world.patch(kinds.NODES, "n1", {"spec": {"unschedulable": True}})
        world.settle(5)
        assert taints(world, "n0") == {
            ("memory-pressure", "NoSchedule"), ("not-ready", "NoSchedule"), ("not-ready", "NoExecute"),
        }  # fmt: skip
        assert taints(world, "n1") == {("unschedulable", "NoSchedule")}
        world.patch(kinds.NODES, "n0", {"metadata": {"annotations": {"moorage.dev/conditions": None}}})
        world.patch(kinds.NODES, "n1", {"spec": {"unschedulable": False}})
        world.settle(5)
        assert taints(world, "n0") == taints(world, "n1") == set()


def test_a_taint_of_the_user_evicts_who_does_not_tolerate_it_and_stays():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=3))
        world.settle(5)
        world.patch(kinds.NODES, "n2", {"spec": {"taints": [{"key": "repair", "effect": "NoExecute"}]}})
        world.settle(10)
        assert taints(world, "n2") == {("repair", "NoExecute")}
        assert {p["spec"]["nodeName"] for p in world.all(kinds.PODS)} == {"n0", "n1"}


def test_pods_of_a_vanished_node_are_removed_and_replaced():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=3))
        world.settle(5)
        world.delete(kinds.NODES, "n2")
        world.settle(90)
        assert {p["spec"]["nodeName"] for p in world.all(kinds.PODS)} == {"n0", "n1"}
        assert world.get(kinds.DEPLOYMENTS, "web")["status"]["readyReplicas"] == 3
        assert world.find(kinds.LEASES, "n2", "kube-node-lease") is None
        assert world.find(kinds.CSI_NODES, "n2", "") is None


NO_EXECUTE = Taint(key="k", effect="NoExecute", time_added="2026-01-01T00:00:00Z")
NOW = 1_767_225_610.0
TIMES = [
    ("no taint", [], [], math.inf),
    ("not tolerated", [NO_EXECUTE], [], -math.inf),
    ("tolerated for ever", [NO_EXECUTE], [Toleration(key="k", operator="Exists")], math.inf),
    ("tolerated for a while", [NO_EXECUTE], [Toleration(key="k", operator="Exists", toleration_seconds=30)], NOW + 20),
    ("negative is at once", [NO_EXECUTE], [Toleration(key="k", operator="Exists", toleration_seconds=-5)], NOW - 10),
    (
        "the shortest counts",
        [NO_EXECUTE],
        [
            Toleration(key="k", operator="Exists", toleration_seconds=90),
            Toleration(operator="Exists", toleration_seconds=60),
        ],
        NOW + 50,
    ),
]


@pytest.mark.parametrize(("name", "taints_", "tolerations", "expected"), TIMES, ids=[t[0] for t in TIMES])
def test_eviction_time(name: str, taints_: list[Taint], tolerations: list[Toleration], expected: float):
    assert eviction_time(taints_, tolerations, NOW) == expected


def test_taints_of_others_keep_their_place():
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    node = Unstructured({"metadata": {"name": "n"}, "spec": {"unschedulable": True}, "status": unready})
    theirs = {"key": "a", "effect": "NoSchedule"}
    stale = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    made = with_taints([theirs, stale], wanted_taints(node), "now")
    assert made == [
        theirs,
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "now"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
    ]
    assert with_taints(made, wanted_taints(node), "later") == made
