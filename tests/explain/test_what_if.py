"""What would happen: on a copy, with the real scheduler; the cluster that was read stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.api.resources import NODES, PODS
from moorage.app.configuration import configure
from moorage.explain.what_if import ClusterCopy, Outcome
from moorage.snapshots.cluster import ClusterObjects
from moorage.testing import make_node, make_pod


def workload(kind: str = "Deployment", replicas: int = 2, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    number = "parallelism" if kind == "Job" else "replicas"
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {
            number: replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container], **spec},
            },
        },
    }


def cluster(*pods: Any, nodes: int = 2) -> ClusterObjects:
    return ClusterObjects({NODES: [make_node(f"n{i}", cpu="2") for i in range(nodes)], PODS: list(pods)})


def copy(found: ClusterObjects) -> ClusterCopy:
    return ClusterCopy(found, configure(discover=False))


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "Job"])
def test_the_pods_of_a_workload_are_placed(kind):
    with copy(cluster()) as tried:
        tried.add([workload(kind, 2)])
        outcome = tried.settle()
    assert outcome.placed == {"default/web-0": "n0", "default/web-1": "n1"}
    assert not outcome.pending


def test_what_does_not_fit_is_pending_with_the_schedulers_message():
    with copy(cluster()) as tried:
        tried.add([workload(replicas=3, cpu="1500m")])
        outcome = tried.settle()
    [message] = outcome.pending.values()
    assert message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert len(outcome.placed) == 2


def test_as_many_as_fit_and_the_first_that_does_not():
    with copy(cluster(nodes=40)) as tried:
        outcome = tried.fill([workload(cpu="900m")])
    assert len(outcome.placed) == 80
    assert list(outcome.pending) == ["default/web-80"]


def test_whom_a_pod_would_preempt():
    low = [make_pod(f"low-{i}", cpu="2", node=f"n{i}", priority=-1) for i in range(2)]
    with copy(cluster(*low)) as tried:
        tried.add([workload(replicas=1, cpu="2", priority=100)])
        outcome = tried.settle()
    assert list(outcome.placed) == ["default/web-0"]
    assert len(outcome.preempted) == 1


def test_a_drain_moves_what_a_controller_makes_again_and_loses_the_rest():
    pods = [
        make_pod("owned", cpu="1", node="n0", owner="ReplicaSet/rs"),
        make_pod("bare", cpu="1", node="n0"),
        make_pod("daemon", cpu="0", node="n0", owner="DaemonSet/ds"),
    ]
    with copy(cluster(*pods)) as tried:
        tried.drain("n0")
        outcome = tried.settle()
    assert outcome == Outcome(moved={"default/owned": ("n0", "n1")}, lost=("default/bare",))


def test_more_nodes_take_pods_that_have_waited():
    waiting = make_pod("waiting", cpu="2")
    full = [make_pod(f"full-{i}", cpu="1", node=f"n{i}") for i in range(2)]
    with copy(cluster(waiting, *full)) as tried:
        assert tried.settle().placed == {}
        tried.add_nodes(1, like="n0")
        assert tried.settle().placed == {"default/waiting": "n0-copy-0"}


def test_a_deleted_pod_and_a_cordoned_node():
    with copy(cluster(make_pod("old", cpu="2", node="n0"))) as tried:
        tried.remove("old")
        tried.cordon("n1")
        tried.add([workload(replicas=1, cpu="2")])
        outcome = tried.settle()
    assert outcome.placed == {"default/web-0": "n0"}
    assert outcome.preempted == ()


def test_nothing_that_was_read_is_changed():
    found = cluster(make_pod("old", cpu="1", node="n0"))
    before = list(found.objects[NODES]), list(found.objects[PODS])
    with copy(found) as tried:
        tried.drain("n0")
        tried.add([workload()])
        tried.settle()
    assert (list(found.objects[NODES]), list(found.objects[PODS])) == before
    assert not found.objects[NODES][0].unschedulable


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tried: tried.drain("n9"), "node 'n9' does not exist"),
        (lambda tried: tried.remove("p9"), "pod 'p9' does not exist"),
        (lambda tried: tried.add([workload("DaemonSet")]), "DaemonSet web"),
        (lambda tried: tried.add([{"kind": "Job", "metadata": {"name": "j"}}]), "spec.template is missing"),
    ],
)
def test_what_is_not_there_is_named(change, says):
    with copy(cluster()) as tried, pytest.raises(MoorageError, match=says):
        change(tried)
