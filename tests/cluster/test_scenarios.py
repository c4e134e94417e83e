"""What a user sees, from the first pod to preemption: on the real API server and on the embedded one."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial

import pytest

from moorage.api import resources as kinds
from moorage.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from tests.cluster import objects
from tests.cluster.api import ApiProblem, Json, eventually
from tests.cluster.kubelet import StandIn
from tests.cluster.worlds import World, with_sample


@pytest.fixture
def world(any_world: World) -> World:
    return any_world


HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def test_the_story_of_the_tutorial(world: World) -> None:
    """A Deployment for a scheduler with a plugin of one's own waits, says why, and runs when a node is
    labelled."""
    world.moorage(with_sample())
    world.nodes("master", unschedulable=True)
    world.nodes("node1", "node2")
    world.api.create(objects.deployment("test-scheduler", 1, scheduler="sample-scheduler"))
    name = eventually(lambda: first_pod(world, "test-scheduler"), 30, "the Deployment has a pod")
    expected = (
        "0/3 nodes are available: 1 Node: node1, 1 Node: node2, 1 node(s) were unschedulable. "
        "preemption: 0/3 nodes are available: "
        "1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod."
    )
    assert world.wait_refused(name) == expected
    events = eventually(lambda: world.events_of(name, "FailedScheduling"), 30, "an event says why")
    assert events[0]["note"] == expected
    assert events[0]["reportingController"] == "sample-scheduler"
    assert world.node_of(name) == ""
    world.label("node1", cpu="true")
    assert world.wait_bound(name) == "node1"
    scheduled = eventually(lambda: world.events_of(name, "Scheduled"), 30, "an event says where")
    assert scheduled[0]["note"] == f"Successfully assigned default/{name} to node1"


def test_repeated_refusals_become_one_event(world: World) -> None:
    """Whatever wakes the pod, the same message makes a series grow and does not become another event."""
    world.moorage(with_sample())
    world.nodes("node1")
    world.pod("waits", scheduler="sample-scheduler")
    world.wait_refused("waits")

    def count() -> int:
        world.label("node1", turn=str(time.monotonic_ns()))
        events = world.events_of("waits", "FailedScheduling")
        return max((event.get("series", {}).get("count", 1) for event in events), default=0)

    eventually(lambda: count() >= 2, 60, "the event has a series")
    assert len(world.events_of("waits", "FailedScheduling")) == 1


def first_pod(world: World, app: str) -> str:
    found = world.api.list(PODS, labelSelector=f"app={app}")
    return str(found[0]["metadata"]["name"]) if found else ""


def refuses(world: World, reason: str, **spec: object) -> None:
    """A pod that no node takes for that reason."""
    world.pod("refused", **spec)
    message = world.wait_refused("refused")
    assert reason in message, message
    assert world.node_of("refused") == ""


def test_node_unschedulable(world: World) -> None:
    world.nodes("n1", unschedulable=True)
    world.moorage()
    refuses(world, "1 node(s) were unschedulable")
    world.api.patch(NODES, "n1", {"spec": {"unschedulable": False}}, "")
    assert world.wait_bound("refused") == "n1"


def test_node_name_by_field(world: World) -> None:
    world.nodes("n1", "n2", "n3")
    world.moorage()
    only = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    world.pod("there", affinity=affinity)
    assert world.wait_bound("there") == "n2"


def test_taints(world: World) -> None:
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    world.nodes("tainted", taints=[taint])
    world.moorage()
    refuses(world, "1 node(s) had untolerated taint(s)")
    world.pod("tolerant", tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert world.wait_bound("tolerant") == "tainted"
    world.api.patch(NODES, "tainted", {"spec": {"taints": None}}, "")
    assert world.wait_bound("refused") == "tainted"


def test_node_affinity_and_selector(world: World) -> None:
    world.nodes("hdd", labels={"disk": "hdd"})
    world.moorage()
    refuses(world, "1 node(s) didn't match Pod's node affinity/selector", nodeSelector={"disk": "ssd"})
    world.nodes("ssd", labels={"disk": "ssd"})
    assert world.wait_bound("refused") == "ssd"


def test_host_ports(world: World) -> None:
    world.nodes("n1")
    world.moorage()
    ports = [{"containerPort": 80, "hostPort": 8080}]
    world.pod("first", ports=ports)
    assert world.wait_bound("first") == "n1"
    refuses(world, "1 node(s) didn't have free ports for the requested pod ports", ports=ports)
    world.api.delete(PODS, "first", now=True)
    assert world.wait_bound("refused") == "n1"


def test_resources(world: World) -> None:
    world.nodes("n1", cpu="2")
    world.moorage()
    world.pod("first", cpu="1500m")
    assert world.wait_bound("first") == "n1"
    refuses(world, "1 Insufficient cpu", cpu="1")
    world.api.delete(PODS, "first", now=True)
    assert world.wait_bound("refused") == "n1"


def test_extended_resources(world: World) -> None:
    world.nodes("plain", cpu="32")
    world.nodes("gpu", cpu="2", extended={"example.com/gpu": "1"})
    world.moorage()
    world.pod("first", requests={"cpu": "1", "example.com/gpu": "1"})
    assert world.wait_bound("first") == "gpu"
    refuses(world, "2 Insufficient example.com/gpu", requests={"example.com/gpu": "1"})


def test_least_allocated_balanced_and_images_decide(world: World) -> None:
    """Scores: the emptier node wins, and among equals the one that has the image."""
    image = "registry.example/large:1"
    world.nodes("busy")
    world.nodes("empty")
    world.moorage()
    world.api.create(objects.pod("load", cpu="3", nodeName="busy"))
    world.pod("first")
    assert world.wait_bound("first") == "empty"
    for name in ("first", "load"):
        world.api.delete(PODS, name, now=True)
    world.api.delete(NODES, "busy", "")
    world.nodes("has-image", images=[{"names": [image], "sizeBytes": 900 * 1024 * 1024}])
    eventually(lambda: not world.bound(), 30, "the pods are gone")
    world.pod("second", image=image)
    assert world.wait_bound("second") == "has-image"


def test_topology_spread(world: World) -> None:
    for zone in ("a", "b"):
        world.nodes(f"n-{zone}", labels={ZONE: zone})
    world.moorage()
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    for number in range(6):
        world.pod(f"web-{number}", labels={"app": "web"}, topologySpreadConstraints=[constraint])
        world.wait_bound(f"web-{number}")
    nodes = list(world.bound("app=web").values())
    assert {node: nodes.count(node) for node in nodes} == {"n-a": 3, "n-b": 3}
    world.api.patch(NODES, "n-b", {"spec": {"unschedulable": True}}, "")
    world.pod("web-6", labels={"app": "web"}, topologySpreadConstraints=[constraint])
    world.wait_bound("web-6")
    refuses(
        world,
        "1 node(s) didn't match pod topology spread constraints",
        labels={"app": "web"},
        topologySpreadConstraints=[constraint],
    )


def test_default_spread_by_service(world: World) -> None:
    """Pods of one Service go apart although they say nothing about it."""
    world.nodes(*(f"n-{i}" for i in range(4)))
    world.api.create(objects.service("web", {"app": "web"}))
    world.moorage()
    for number in range(4):
        world.pod(f"web-{number}", labels={"app": "web"})
        world.wait_bound(f"web-{number}")
    assert len(set(world.bound("app=web").values())) == 4


def test_pod_affinity_and_anti_affinity(world: World) -> None:
    world.nodes("n1", "n2")
    world.moorage()
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "db"}}}
    world.pod("db", labels={"app": "db"})
    home = world.wait_bound("db")
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    far = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world.pod("near", affinity=near)
    world.pod("far", affinity=far)
    assert world.wait_bound("near") == home
    assert world.wait_bound("far") != home
    world.pod("far-db", labels={"app": "db"}, affinity=far)
    message = world.wait_refused("far-db")
    assert "node(s) didn't match pod anti-affinity rules" in message
    assert "node(s) didn't satisfy existing pods anti-affinity rules" in message


def test_namespace_selector_of_affinity(world: World) -> None:
    """Needs the labels of namespaces, which come by an informer of their own."""
    world.nodes("n1", "n2")
    world.api.create(objects.namespace("blue", {"team": "blue"}))
    world.moorage()
    other = objects.pod("db", scheduler="moorage", labels={"app": "db"})
    world.api.create(other, namespace="blue")
    home = eventually(lambda: world.node_of("db", "blue"), 30, "db is bound")
    term = {
        "topologyKey": HOST,
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchLabels": {"team": "blue"}},
    }
    world.pod("far", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    assert world.wait_bound("far") != home


def test_scheduling_gates(world: World) -> None:
    world.nodes("n1")
    world.moorage()
    world.pod("gated", schedulingGates=[{"name": "example.com/wait"}, {"name": "example.com/other"}])
    world.pod("free")
    world.wait_bound("free")
    assert world.node_of("gated") == ""
    assert not world.events_of("gated")
    world.api.patch(PODS, "gated", {"spec": {"schedulingGates": [{"name": "example.com/other"}]}})
    world.pod("free-2")
    world.wait_bound("free-2")
    assert world.node_of("gated") == ""
    world.api.patch(PODS, "gated", {"spec": {"schedulingGates": None}})
    assert world.wait_bound("gated") == "n1"


def test_preemption_spares_the_budget(world: World) -> None:
    """Two victims to choose from, one under a disruption budget that allows none: the other goes, with a
    condition and an event that say for whom."""
    world.api.create(objects.priority_class("high", 1000))
    world.api.create(objects.priority_class("low", 1))
    world.nodes("guarded", "open", cpu="2")
    world.api.create(objects.budget("all-stay", {"app": "guarded"}, maxUnavailable=0))
    world.moorage()
    for name in ("guarded", "open"):
        labels = {"app": name}
        world.pod(f"low-{name}", cpu="1500m", labels=labels, priorityClassName="low", nodeSelector={HOST: name})
        world.wait_bound(f"low-{name}")
    with StandIn(world.api):
        eventually(lambda: budget_is_known(world), 60, "the budget's status is known")
        world.pod("urgent", cpu="1500m", priorityClassName="high")
        assert world.wait_bound("urgent") == "open"
    assert world.node_of("low-guarded") == "guarded"
    assert world.api.find(PODS, "low-open") is None
    events = eventually(lambda: world.events_of("low-open", "Preempted"), 30, "an event tells the victim")
    uid = world.api.get(PODS, "urgent")["metadata"]["uid"]
    assert events[0]["note"] == f"Preempted by pod {uid} on node open"
    assert events[0]["related"]["name"] == "urgent"


def budget_is_known(world: World) -> bool:
    status = world.api.get(kinds.POD_DISRUPTION_BUDGETS, "all-stay").get("status", {})
    return bool(status.get("currentHealthy") == 1 and status.get("disruptionsAllowed") == 0)


def test_preemption_policy_never_waits(world: World) -> None:
    world.api.create(objects.priority_class("patient", 1000, "Never"))
    world.nodes("n1", cpu="2")
    world.moorage()
    world.pod("there", cpu="1500m")
    world.wait_bound("there")
    refuses(world, "preemption: not eligible due to preemptionPolicy=Never", cpu="1500m", priorityClassName="patient")


def test_local_volume_waits_for_its_consumer(world: World) -> None:
    """Static volumes: the claim is bound to the volume of the node that the pod gets, and not before."""
    world.nodes("n1", "n2")
    world.api.create(objects.storage_class("local"))
    world.api.create(objects.volume("disk-2", "n2", "local"))
    world.api.create(objects.claim("data", "local"))
    world.moorage()
    world.pod("user", volumes=objects.uses_claim("data"))
    assert world.wait_bound("user", 60) == "n2"
    claim = world.api.get(PERSISTENT_VOLUME_CLAIMS, "data")
    assert claim["spec"]["volumeName"] == "disk-2"
    world.api.create(objects.claim("more", "local"))
    refuses(world, "2 node(s) didn't find available persistent volumes to bind", volumes=objects.uses_claim("more"))


def test_provisioned_volume_on_the_chosen_node(world: World) -> None:
    """A provisioner that waits for the selected node, as CSI drivers do."""
    world.nodes("n1", labels={"disk": "ssd"})
    world.nodes("n2")
    world.api.create(objects.storage_class("fast", provisioner="provisioner.example.com"))
    world.api.create(objects.claim("data", "fast"))
    world.moorage()
    with Provisioner(world):
        world.pod("user", volumes=objects.uses_claim("data"), nodeSelector={"disk": "ssd"})
        assert world.wait_bound("user", 60) == "n1"
    claim = world.api.get(PERSISTENT_VOLUME_CLAIMS, "data")
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"


class Provisioner:
    """Makes a volume for every claim that has a selected node."""

    def __init__(self, world: World) -> None:
        self._api = world.api
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="provisioner", daemon=True)

    def __enter__(self) -> Provisioner:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.2):
            for claim in self._api.list(PERSISTENT_VOLUME_CLAIMS):
                self._provide(claim)

    def _provide(self, claim: Json) -> None:
        meta = claim["metadata"]
        node = meta.get("annotations", {}).get("volume.kubernetes.io/selected-node")
        if not node or self._api.find(PERSISTENT_VOLUMES, f"pv-{meta['name']}"):
            return
        made = objects.volume(f"pv-{meta['name']}", node, claim["spec"]["storageClassName"])
        made["spec"]["claimRef"] = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
        }  # fmt: skip
        with suppress(ApiProblem):
            self._api.create(made)


def test_volume_zone(world: World) -> None:
    world.nodes("n-a", labels={ZONE: "a"})
    world.api.create(objects.storage_class("static", mode="Immediate"))
    made = objects.volume("zonal", "", "static")
    made["metadata"]["labels"] = {ZONE: "b"}
    del made["spec"]["nodeAffinity"], made["spec"]["local"]
    made["spec"]["hostPath"] = {"path": "/mnt/zonal"}
    world.api.create(made)
    world.api.create(objects.claim("data", "static"))
    eventually(lambda: is_bound(world, "data"), 60, "the claim is bound")
    world.moorage()
    refuses(world, "1 node(s) had no available volume zone", volumes=objects.uses_claim("data"))
    world.nodes("n-b", labels={ZONE: "b"})
    assert world.wait_bound("refused") == "n-b"


def is_bound(world: World, claim: str) -> bool:
    found = world.api.get(PERSISTENT_VOLUME_CLAIMS, claim)
    return bool(found.get("status", {}).get("phase") == "Bound")


def test_volume_limits_and_exclusive_claims(world: World) -> None:
    """NodeVolumeLimits: one CSI volume per node; VolumeRestrictions: ReadWriteOncePod."""
    driver = "csi.example.com"
    world.nodes("n1")
    drivers = {"drivers": [{"name": driver, "nodeID": "n1", "allocatable": {"count": 1}}]}
    csi_node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}}
    with suppress(ApiProblem):  # the kubelets of the embedded cluster may have made one already
        world.api.create(csi_node)
    world.api.patch(kinds.CSI_NODES, "n1", {"spec": drivers})
    world.api.create(objects.storage_class("static", mode="Immediate"))
    for name, mode in (("one", "ReadWriteOncePod"), ("two", "ReadWriteOnce")):
        made = objects.volume(name, "", "static")
        del made["spec"]["nodeAffinity"], made["spec"]["local"]
        made["spec"] |= {"csi": {"driver": driver, "volumeHandle": name}, "accessModes": [mode]}
        world.api.create(made)
        wanted = objects.claim(name, "static", mode=mode)
        wanted["spec"]["volumeName"] = name
        world.api.create(wanted)
    for name in ("one", "two"):
        eventually(partial(is_bound, world, name), 60, f"claim {name} is bound")
    world.moorage()
    world.pod("first", volumes=objects.uses_claim("one"))
    assert world.wait_bound("first") == "n1"
    world.pod("second", volumes=objects.uses_claim("two"))
    assert "1 node(s) exceed max volume count" in world.wait_refused("second")
    refuses(
        world,
        "1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use",
        volumes=objects.uses_claim("one"),
    )


def test_priority_decides_who_is_first(world: World) -> None:
    world.api.create(objects.priority_class("high", 1000, "Never"))
    world.nodes("n1", cpu="1", unschedulable=True)
    for name, priority in (("low", None), ("high", "high")):
        more = {"priorityClassName": priority} if priority else {}
        world.pod(name, cpu="800m", **more)
    world.moorage()
    world.wait_refused("low")
    world.wait_refused("high")
    world.api.patch(NODES, "n1", {"spec": {"unschedulable": False}}, "")
    assert world.wait_bound("high") == "n1"
    assert world.node_of("low") == ""


def test_pods_of_other_schedulers_are_not_touched_but_counted(world: World) -> None:
    world.nodes("n1", cpu="2")
    world.moorage()
    world.api.create(objects.pod("theirs", scheduler="somebody-else"))
    world.api.create(objects.pod("placed", scheduler="somebody-else", cpu="1500m", nodeName="n1"))
    refuses(world, "1 Insufficient cpu", cpu="1")
    assert world.node_of("theirs") == ""


@pytest.mark.parametrize("count", [300])
def test_many_pods_at_once(world: World, count: int) -> None:
    world.nodes(*(f"n-{i}" for i in range(20)), pods="20")
    process = world.moorage()
    pods = [objects.pod(f"p-{i}", scheduler="moorage", cpu="10m") for i in range(count)]
    world.api.create_all(pods)
    bound = world.wait_all_bound(count, 90)
    per_node = [list(bound.values()).count(node) for node in set(bound.values())]
    assert max(per_node) <= 20
    assert process.running
