"""What would happen: on a copy, with the real scheduler; the cluster that was read stays as it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.errors import MoorageError
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.resources import NODES, POD_DISRUPTION_BUDGETS, PODS
from moorage.api.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from moorage.app.configuration import configure
from moorage.app.offline import question_engine
from moorage.explain.what_if import ClusterCopy, WhatIfOutcome, ended_by, placed_elsewhere
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
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], **spec}},
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


def test_manifests_get_the_defaults_of_the_api_server():
    """The container limits cpu and requests nothing: two of them do not fit on a node."""
    limited = workload(replicas=3)
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1500m"}}}
    limited["spec"]["template"]["spec"]["containers"] = [container]
    with copy(cluster()) as tried:
        tried.add([limited])
        outcome = tried.settle()
    assert (len(outcome.placed), len(outcome.pending)) == (2, 1)


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
    assert outcome == WhatIfOutcome(moved={"default/owned": ("n0", "n1")}, lost=("default/bare",))


def budget(name: str, allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "web"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, current_healthy=2, desired_healthy=2),
    )


@pytest.mark.parametrize(
    ("budgets", "why"),
    [
        ([("one", 1)], ""),
        ([("none", 0)], "the disruption budget none allows no eviction: 2 pods are healthy and 2 must be"),
        ([("a", 1), ("b", 1)], "the disruption budgets a and b both select it, which eviction does not support"),
    ],
)
def test_a_drain_respects_disruption_budgets(budgets, why):
    pod = make_pod("web", cpu="1", node="n0", owner="ReplicaSet/rs", labels={"app": "web"})
    found = cluster(pod)
    made = [budget(name, allowed) for name, allowed in budgets]
    found = ClusterObjects({POD_DISRUPTION_BUDGETS: made, **found.objects})
    with copy(found) as tried:
        tried.drain("n0")
        outcome = tried.settle()
    assert outcome.blocked == ({"default/web": why} if why else {})
    assert list(outcome.moved) == ([] if why else ["default/web"])


def test_pods_that_were_pending_are_not_counted_as_replicas():
    with copy(cluster(make_pod("waiting", cpu="500m"), nodes=1)) as tried:
        outcome = tried.fill([workload(cpu="500m")])
    assert sorted(outcome.placed) == ["default/web-0", "default/web-1", "default/web-2"]


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


# Objects that are added


def test_a_pod_is_placed_under_its_own_name_or_numbered():
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"containers": []}}
    with copy(cluster()) as tried:
        assert tried.add([manifest]) == 1
        assert tried.add([manifest], replicas=2) == 2
        assert sorted(tried.settle().placed) == ["default/one", "default/one1", "default/one2"]


def test_a_pod_without_a_name_gets_one_from_generate_name():
    manifest = {"kind": "Pod", "metadata": {"generateName": "job-", "namespace": "team"}, "spec": {"containers": []}}
    with copy(cluster()) as tried:
        tried.add([manifest])
        assert list(tried.settle().placed) == ["team/job-0"]


@pytest.mark.parametrize(("replicas", "pods"), [pytest.param(None, 2, id="of the manifest"), (0, 0), (5, 5)])
def test_replicas_of_a_workload_may_be_replaced(replicas, pods):
    with copy(cluster(nodes=3)) as tried:
        assert tried.add([workload(replicas=2, cpu="100m")], replicas) == pods


def test_names_that_are_taken_are_not_used_again():
    with copy(cluster(make_pod("web-0", cpu="100m", node="n0"))) as tried:
        tried.add([workload(replicas=1, cpu="100m")])
        assert list(tried.settle().placed) == ["default/web-1"]


def test_other_objects_are_added_too():
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    low = [make_pod(f"low-{i}", cpu="2", node=f"n{i}") for i in range(2)]
    with copy(cluster(*low)) as tried:
        tried.add([high, workload(replicas=1, cpu="2", priorityClassName="high")])
        outcome = tried.settle()
    assert list(outcome.placed) == ["default/web-0"]
    assert len(outcome.preempted) == 1


def test_a_node_of_a_manifest_takes_pods():
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "big"}, "status": {"allocatable": amounts}}
    with copy(cluster()) as tried:
        tried.add([node, workload(replicas=1, cpu="4")])
        assert tried.settle().placed == {"default/web-0": "big"}


# Nodes


def test_a_cordoned_node_keeps_its_pods_and_gets_no_more():
    with copy(cluster(make_pod("old", cpu="1", node="n0"))) as tried:
        tried.cordon("n0")
        tried.add([workload(replicas=2, cpu="1")])
        assert tried.settle() == WhatIfOutcome(placed={"default/web-0": "n1", "default/web-1": "n1"})


def test_a_drained_pod_that_fits_nowhere_is_pending():
    pods = [make_pod(f"owned-{i}", cpu="2", node=f"n{i}", owner="ReplicaSet/rs") for i in range(2)]
    with copy(cluster(*pods)) as tried:
        tried.drain("n0")
        outcome = tried.settle()
    assert outcome.moved == {}
    [(key, message)] = outcome.pending.items()
    assert key == "default/owned-0"
    assert message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.")


def test_added_nodes_are_empty_copies_with_their_own_names():
    full = [make_pod(f"full-{i}", cpu="2", node=f"n{i}") for i in range(2)]
    with copy(cluster(*full)) as tried:
        tried.add_nodes(2, like="n1")
        tried.add([workload(replicas=2, cpu="2")])
        assert set(tried.settle().placed.values()) == {"n1-copy-0", "n1-copy-1"}


def test_nothing_happens_to_a_cluster_without_changes():
    running = make_pod("old", cpu="1", node="n0")
    with copy(cluster(running, make_pod("huge", cpu="64"))) as tried:
        outcome = tried.settle()
    assert outcome == WhatIfOutcome()
    assert outcome.to_dict() == {"placed": {}, "pending": {}, "preempted": [], "moved": {}, "lost": [], "blocked": {}}


def test_an_outcome_as_data_has_both_nodes_of_a_moved_pod():
    with copy(cluster(make_pod("owned", cpu="1", node="n0", owner="ReplicaSet/rs"))) as tried:
        tried.drain("n0")
        assert tried.settle().to_dict()["moved"] == {"default/owned": {"from": "n0", "to": "n1"}}


# The reason that there is no more room


def test_the_first_pending_pod_is_explained_on_the_final_state():
    with copy(cluster()) as tried:
        tried.add([workload(replicas=3, cpu="1500m")])
        outcome = tried.settle()
        why = ended_by(tried, outcome)
    assert why is not None
    assert [why.pod.key] == list(outcome.pending)
    [group] = why.groups
    assert group.details == ("cpu: 1 short on 2 nodes",)
    assert why.remedies == []


def test_nothing_is_explained_when_every_pod_has_a_node():
    with copy(cluster()) as tried:
        tried.add([workload(replicas=1)])
        assert ended_by(tried, tried.settle()) is None


def test_filling_stops_at_the_bound_when_pods_need_nothing():
    with copy(cluster()) as tried:
        outcome = tried.fill([workload(cpu="0")], most=40)
    assert len(outcome.placed) == 40
    assert not outcome.pending


# Another configuration

PACKED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def elsewhere(found: ClusterObjects, text: str = "") -> list[dict[str, Any]]:
    configured = configure(text, discover=False) if text else configure(discover=False)
    engine = question_engine(configured, found.changes())
    return asyncio.run(placed_elsewhere(engine))


def test_pods_that_the_configuration_would_place_elsewhere_are_named_with_the_plugins():
    found = cluster(make_pod("big", cpu="1", node="n0"), make_pod("p", cpu="500m", node="n1"))
    assert elsewhere(found) == []
    [moved] = [each for each in elsewhere(found, PACKED) if each["pod"] == "default/p"]
    assert (moved["from"], moved["to"]) == ("n1", "n0")
    assert "NodeResourcesFit" in moved["decidedBy"]


def test_a_pod_that_would_be_pending_goes_nowhere_with_the_reason():
    nodes = [make_node("n0", unschedulable=True)]
    found = ClusterObjects({NODES: nodes, PODS: [make_pod("p", node="n0")]})
    assert elsewhere(found) == [
        {"pod": "default/p", "from": "n0", "to": "", "decidedBy": ["node(s) were unschedulable"]}
    ]


def test_nodes_with_equal_scores_count_as_one():
    assert elsewhere(cluster(make_pod("p", cpu="1", node="n1"))) == []


def test_pending_pods_are_not_placed_again():
    assert elsewhere(cluster(make_pod("p", cpu="1"))) == []
