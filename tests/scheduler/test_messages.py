"""The FailedScheduling messages of the default profile, byte for byte as kube-scheduler 1.37 writes them."""

from __future__ import annotations

import pytest

from moorage.testing import make_node, make_pod
from moorage.testing.volumes import make_pvc, make_storage_class


def message_of(moorage_cluster, *objects, pod):
    """What the pod's last FailedScheduling event and its condition say."""
    cluster = moorage_cluster(flush_after=None)
    cluster.add(*objects)
    cluster.settle()
    cluster.add(pod)
    cluster.settle(0.5)
    event = cluster.events(pod.name, "FailedScheduling")[0]
    (condition,) = [c for c in cluster.pod(pod.name).status.conditions if c.type == "PodScheduled"]
    assert (condition.status, condition.reason, condition.message) == ("False", "Unschedulable", event.note)
    return event.note


def nodes(count, **options):
    return [make_node(f"n{i}", **options) for i in range(count)]


REFUSED = [
    pytest.param(
        [make_node("t", taints=["dedicated=gpu:NoSchedule"]), *nodes(2, cpu="4")],
        [make_pod(f"p{i}", node=f"n{i}", cpu="4", priority=10) for i in range(2)],
        make_pod("p", cpu="1", priority=10),
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
        "preemption: 0/3 nodes are available: "
        "1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
        id="one tainted, two short of cpu, nobody to preempt",
    ),
    pytest.param(
        nodes(5),
        [],
        make_pod("p", node_selector={"disk": "ssd"}),
        "0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector. "
        "preemption: 0/5 nodes are available: "
        "5 Preemption is not helpful for scheduling.",
        id="all unresolvable",
    ),
    pytest.param(
        nodes(3, memory="1Gi"),
        [make_pod(f"p{i}", node=f"n{i}", memory="1Gi") for i in range(3)],
        make_pod("p", memory="1Gi", priority=10, preemption_policy="Never"),
        "0/3 nodes are available: 3 Insufficient memory. preemption: not eligible due to preemptionPolicy=Never.",
        id="preemptionPolicy Never",
    ),
    pytest.param(
        nodes(3, cpu="4"),
        [make_pod(f"p{i}", node=f"n{i}", cpu="4", priority=0, termination_grace_period_seconds=30) for i in range(3)],
        make_pod("p", cpu="4", priority=10),
        "0/3 nodes are available: 3 Insufficient cpu. preemption: found a potential placement for pod on node n0, "
        "preempting 1 victims",
        id="preemption succeeded",
    ),
    pytest.param(
        nodes(12, cpu="4") + [make_node(f"c{i}", unschedulable=True) for i in range(2)],
        [make_pod(f"p{i}", node=f"n{i}", cpu="4", priority=10) for i in range(12)],
        make_pod("p", cpu="1", priority=10),
        "0/14 nodes are available: 12 Insufficient cpu, 2 node(s) were unschedulable. "
        "preemption: 0/14 nodes are available: "
        "12 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
        id="sorted as texts",
    ),
    pytest.param(
        nodes(2, cpu="4", pods=1),
        [make_pod(f"p{i}", node=f"n{i}", cpu="4", priority=10) for i in range(2)],
        make_pod("p", cpu="1", priority=10),
        "0/2 nodes are available: 2 Insufficient cpu, 2 Too many pods. "
        "preemption: 0/2 nodes are available: "
        "2 No preemption victims found for incoming pod.",
        id="several reasons of one node are counted each",
    ),
]


@pytest.mark.parametrize(("cluster", "pods", "pod", "expected"), REFUSED)
def test_messages_of_refused_pods(moorage_cluster, cluster, pods, pod, expected):
    assert message_of(moorage_cluster, *cluster, *pods, pod=pod) == expected


def test_a_pod_that_pre_filter_refuses_for_good_finds_no_claims_state(moorage_cluster):
    claim = make_pvc("data", storage_class="standard")
    pod = make_pod("p", claims=["data"])
    message = message_of(moorage_cluster, *nodes(3), make_storage_class("standard"), claim, pod=pod)
    assert message == ("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found")


def test_while_victims_terminate(moorage_cluster):
    cluster = moorage_cluster(flush_after=None)
    cluster.add(*nodes(1, cpu="4"), make_pod("low", cpu="4", priority=0, termination_grace_period_seconds=30))
    cluster.settle()
    cluster.add(make_pod("p", cpu="4", priority=10))
    cluster.settle()
    cluster.scheduler.engine.services.activate([cluster.pod("p")], "")
    cluster.settle()
    assert cluster.events("p", "FailedScheduling")[-1].note == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: not eligible due to a terminating pod on the nominated node."
    )


def test_an_empty_cluster(moorage_cluster):
    assert message_of(moorage_cluster, pod=make_pod("p")) == "no nodes available to schedule pods"
