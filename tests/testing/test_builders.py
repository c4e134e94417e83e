"""Builders: the common case in one line, deterministic, and acceptable to the store."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moorage.api import decoding
from moorage.api.meta import LabelSelector, Object, OwnerReference
from moorage.api.node import HOSTNAME, REGION, ZONE
from moorage.api.pod import ContainerPort, Pod, PodSchedulingGroup, controller_of
from moorage.api.requests import pod_requests
from moorage.api.resources import by_kind
from moorage.api.taints import Taint, Toleration
from moorage.store.store import Store
from moorage.testing.builders import (
    host_port,
    make_affinity,
    make_container,
    make_namespace,
    make_node,
    make_nodes,
    make_pdb,
    make_pod,
    make_pod_group,
    make_pods,
    make_priority_class,
    make_service,
    spread_over,
    taint,
    toleration,
)
from moorage.testing.volumes import make_csi_node, make_pv, make_pvc, make_storage_class

EVERYTHING: list[Object] = [
    make_pod(
        "web",
        containers=[make_container("main", "1", limits={"memory": "1Gi"}, ports=[80])],
        labels={"app": "web"},
        owner="ReplicaSet/web",
        priority=3,
        affinity=make_affinity(
            nodes={ZONE: ["a", "b"]}, near={"app": "db"}, away=LabelSelector(match_labels={"app": "web"})
        ),
        spread=ZONE,
        tolerations=["gpu=yes:NoSchedule"],
        scheduling_group=PodSchedulingGroup(pod_group_name="gang"),
        claims=["data"],
    ),
    make_node("n1", zone="a", taints=["gpu=yes:NoSchedule"], images={"app": 10**8}, extended={"x.io/gpu": 8}),
    make_namespace("team"),
    make_pvc("data", volume="disk"),
    make_pv("disk", claim=make_pvc("data"), nodes={ZONE: ["a"]}, driver="csi.example.com"),
    make_storage_class("fast", wait=True),
    make_csi_node("n1", {"csi.example.com": 5, "other": None}),
    make_pdb("budget", {"app": "web"}, allowed=1, min_available="50%"),
    make_priority_class("high", 1000, preempts=False),
    make_pod_group("gang", 3),
    make_service("web", {"app": "web"}),
]


@pytest.mark.parametrize("obj", EVERYTHING, ids=lambda obj: obj.kind)
def test_every_object_survives_the_store_unchanged(obj):
    resource = by_kind(obj.kind, obj.api_version)
    assert resource is not None
    store = Store(lambda: 0.0, random.Random(1))
    loaded = store.load(resource, decoding.to_builtins(obj)).typed
    assert isinstance(loaded, type(obj))
    assert (loaded.uid, loaded.key, loaded.labels) == (obj.uid, obj.key, obj.labels)
    assert getattr(loaded, "status", None) == getattr(obj, "status", None)
    decoding.validate(loaded)


def test_the_same_call_gives_an_equal_object_and_another_name_another_uid():
    assert make_pod("a", cpu=1) == make_pod("a", cpu=1)
    uids = {obj.uid for obj in (*EVERYTHING, make_pod("a"), make_pod("a", namespace="b"), make_node("a"))}
    assert len(uids) == len(EVERYTHING) + 3


def test_a_plain_pod_is_pending_and_one_with_a_node_runs():
    assert (make_pod().status.phase, make_pod().spec.node_name) == ("Pending", "")
    assert (make_pod(node="n1").status.phase, make_pod(node="n1").is_assigned) == ("Running", True)
    assert make_pod(node="n1", phase="Succeeded").is_terminal


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"cpu": "500m", "memory": "1Ki"}, {"cpu": 500, "memory": 1024}, id="cpu and memory"),
        pytest.param({"cpu": 1, "requests": {"x.io/gpu": 2}}, {"cpu": 1000, "x.io/gpu": 2}, id="more"),
        pytest.param({"containers": [make_container("a", 1), make_container("b", 2)]}, {"cpu": 3000}, id="containers"),
        pytest.param(
            {"cpu": 1, "init_containers": [make_container("s", 1, sidecar=True)]}, {"cpu": 2000}, id="sidecar"
        ),
        pytest.param({"cpu": 1, "overhead": {"cpu": "250m"}}, {"cpu": 1250}, id="further spec attributes"),
    ],
)
def test_requests(options: dict[str, Any], expected: dict[str, int]):
    assert pod_requests(make_pod(**options)) == expected


@pytest.mark.parametrize(
    ("text", "as_taint", "as_toleration"),
    [
        (
            "k=v:NoExecute",
            Taint(key="k", value="v", effect="NoExecute"),
            Toleration(key="k", operator="Equal", value="v", effect="NoExecute"),
        ),
        (
            "k:NoSchedule",
            Taint(key="k", effect="NoSchedule"),
            Toleration(key="k", operator="Exists", effect="NoSchedule"),
        ),
        ("k", Taint(key="k", effect="NoSchedule"), Toleration(key="k", operator="Exists")),
    ],
    ids=["all parts", "no value", "key only"],
)
def test_taints_and_tolerations_as_text(text, as_taint, as_toleration):
    assert taint(text) == as_taint
    assert toleration(text) == as_toleration
    assert make_node(taints=[text, as_taint]).taints == (as_taint, as_taint)
    assert make_pod(tolerations=[text, as_toleration]).spec.tolerations == (as_toleration, as_toleration)


def test_ports_are_host_ports_unless_they_say_otherwise():
    inner = ContainerPort(container_port=80)
    (container,) = make_pod(ports=[8080, inner, host_port(53, "UDP", "10.0.0.1")]).spec.containers
    assert [(p.host_port, p.protocol, p.host_ip) for p in container.ports] == [
        (8080, "TCP", ""),
        (0, "", ""),
        (53, "UDP", "10.0.0.1"),
    ]


def test_affinity_is_absent_unless_asked_for():
    assert make_pod().spec.affinity is None
    affinity = make_pod(affinity=make_affinity(away={"app": "web"}, topology=ZONE)).spec.affinity
    assert affinity is not None
    assert (affinity.node_affinity, affinity.pod_affinity) == (None, None)
    assert affinity.pod_anti_affinity is not None
    (term,) = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    assert (term.topology_key, term.label_selector) == (ZONE, LabelSelector(match_labels={"app": "web"}))


def test_spread_as_text_is_strict_over_the_pods_own_labels():
    (constraint,) = make_pod(labels={"app": "web"}, spread=ZONE).spec.topology_spread_constraints
    assert constraint == spread_over(ZONE, {"app": "web"})
    assert (constraint.max_skew, constraint.when_unsatisfiable) == (1, "DoNotSchedule")
    soft = spread_over(HOSTNAME, {}, soft=True, min_domains=2)
    assert make_pod(spread=soft).spec.topology_spread_constraints == (soft,)
    assert make_pod(spread=[constraint, soft]).spec.topology_spread_constraints == (constraint, soft)


@pytest.mark.parametrize(
    ("owner", "kind", "name"),
    [
        ("StatefulSet/db", "StatefulSet", "db"),
        ("web", "ReplicaSet", "web"),
        (make_service("svc"), "Service", "svc"),
        (OwnerReference(kind="Job", name="j", uid="u", controller=True), "Job", "j"),
    ],
    ids=["kind and name", "name only", "object", "reference"],
)
def test_owners(owner, kind, name):
    reference = controller_of(make_pod(owner=owner))
    assert reference is not None
    assert (reference.kind, reference.name) == (kind, name)
    assert reference.uid


def test_nodes_have_their_places_as_labels():
    node = make_node("n1", zone="a", region="r", labels={"disk": "ssd"})
    assert node.labels == {HOSTNAME: "n1", ZONE: "a", REGION: "r", "disk": "ssd"}
    assert node.allocatable == {"cpu": "4", "memory": "16Gi", "pods": 110, "ephemeral-storage": "100Gi"}
    assert make_node(allocatable={"cpu": "1"}).status.capacity["cpu"] == "4"
    assert make_node(unschedulable=True).unschedulable


def test_many_at_once():
    assert [pod.name for pod in make_pods(2, "web", cpu=1)] == ["web-0", "web-1"]
    assert [node.labels[ZONE] for node in make_nodes(3, zones=["a", "b"])] == ["a", "b", "a"]
    assert ZONE not in make_nodes(1)[0].labels


def test_life_cycle_fields():
    pod: Pod = make_pod(
        uid="mine", nominated="n1", deletion_timestamp="2026-01-01T00:00:30Z", finalizers=["x/y"], gates=["g"]
    )
    assert (pod.uid, pod.nominated_node_name) == ("mine", "n1")
    assert pod.is_terminating
    assert pod.is_gated
    assert pod.metadata.finalizers == ("x/y",)


def test_a_field_that_no_part_of_a_pod_has_is_named():
    with pytest.raises(TypeError, match="a pod has no 'colour', 'taste'"):
        make_pod(colour="red", taste="sweet", phase="Failed")
