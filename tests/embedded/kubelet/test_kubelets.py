"""The kubelets in a cluster: nodes become ready, pods run, stop, are refused, resized, and use something."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from moorage.api.times import parse_time
from moorage.embedded.controllers import kinds
from moorage.embedded.kubelet.decisions import KubeletSettings
from tests.embedded.controllers.world import FAST, World, node, template

Raw = dict[str, Any]
OLD = "2026-01-01T00:00:00Z"


def bare(name: str = "p", notes: Raw | None = None, cpu: str | None = None, **spec: Any) -> Raw:
    made = template(annotations=notes, **spec)
    if cpu:
        made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return {"metadata": {"name": name, "namespace": "default", **made["metadata"]}, "spec": made["spec"]}


def phase(world: World, name: str = "p") -> str:
    return str(world.get(kinds.PODS, name)["status"]["phase"])


def test_a_new_node_becomes_ready_and_keeps_its_lease():
    with World(nodes=0) as world:
        world.create(kinds.NODES, {"metadata": {"name": "bare"}})
        world.settle(5)
        status = world.get(kinds.NODES, "bare", "")["status"]
        assert {c["type"]: c["status"] for c in status["conditions"]} == {
            "Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False",
            "NetworkUnavailable": "False",
        }  # fmt: skip
        assert status["capacity"] == status["allocatable"]
        assert status["capacity"]["pods"] == "110"
        assert {a["type"] for a in status["addresses"]} == {"InternalIP", "Hostname"}
        assert status["nodeInfo"]["kubeletVersion"].startswith("v1.")
        assert world.get(kinds.CSI_NODES, "bare", "")["spec"] == {"drivers": None}
        renewed = []
        for _ in range(60):
            world.settle(1)
            lease = world.get(kinds.LEASES, "bare", "kube-node-lease")
            renewed.append(parse_time(lease["spec"]["renewTime"]) or 0.0)
        gaps = {round(b - a) for a, b in itertools.pairwise(renewed)} - {0}
        assert gaps <= {10, 11}
        assert lease["spec"]["holderIdentity"] == "bare"
        assert lease["metadata"]["ownerReferences"][0]["kind"] == "Node"


@pytest.mark.parametrize("times", [{}, {"lastTransitionTime": None}, {"lastHeartbeatTime": OLD}])
def test_conditions_that_a_user_wrote_without_times_get_them(times: Raw):
    with World(nodes=0) as world:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", **times}
        world.create(kinds.NODES, {"metadata": {"name": "n"}, "status": {"conditions": [ready]}})
        world.settle(1)
        status = world.get(kinds.NODES, "n", "")["status"]
        assert all(c["lastHeartbeatTime"] and c["lastTransitionTime"] for c in status["conditions"])
        assert [c["type"] for c in status["conditions"]].count("Ready") == 1
        assert status["addresses"]


def test_many_nodes_renew_less_often_and_say_so():
    settings = KubeletSettings(heartbeats_per_second=2.0)
    with World(nodes=50, kubelets=settings) as world:
        world.settle(120)
        lease = world.get(kinds.LEASES, "n7", "kube-node-lease")
        assert lease["spec"]["leaseDurationSeconds"] == 100
        since = world.clock.now()
        world.settle(100)
        renewals = [c for c in world.faults.calls if c.time >= since and c.resource.plural == "leases"]
        assert 150 <= len(renewals) <= 210
        assert all(_is_ready(n) for n in world.all(kinds.NODES))


def _is_ready(raw: Raw) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in raw["status"]["conditions"])


def test_a_pod_goes_through_its_phases():
    notes = {"moorage.dev/start-seconds": "3", "moorage.dev/run-seconds": "5"}
    with World() as world:
        world.create(kinds.PODS, bare(notes=notes, restartPolicy="Never"))
        world.settle(1)
        found = world.get(kinds.PODS, "p")["status"]
        assert found["phase"] == "Pending"
        assert found["startTime"]
        assert found["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
        world.settle(3)
        assert phase(world) == "Running"
        world.settle(5)
        assert phase(world) == "Succeeded"
        reasons = [e["reason"] for e in world.events(name="p")]
        assert sorted(reasons) == ["Created", "Pulled", "Started"]
        assert {e["reportingController"] for e in world.events(name="p")} == {"kubelet"}


@pytest.mark.parametrize(("grace", "stop", "least", "most"), [(30, "2", 1.5, 3.0), (1, "60", 0.5, 2.0)])
def test_a_deleted_pod_stops_within_its_grace(grace: int, stop: str, least: float, most: float):
    with World() as world:
        world.create(kinds.PODS, bare(notes={"moorage.dev/stop-seconds": stop}))
        world.settle(3)
        began = world.clock.now()
        world.delete(kinds.PODS, "p", grace_period=grace)
        world.until(lambda: world.find(kinds.PODS, "p") is None)
        assert least <= world.clock.now() - began <= most
        assert world.events("Killing", "p")


def test_overcommit_by_two_schedulers_ends_at_the_node():
    with World(nodes=0, schedule=False) as world:
        world.create(kinds.NODES, node("small", cpu="2"))
        world.settle(2)
        for name in ("a", "b", "c"):
            world.create(kinds.PODS, bare(name, cpu="900m"))
            world.store.bind(name, "default", "small")
        world.settle(3)
        failed = [p for p in world.all(kinds.PODS) if p["status"]["phase"] == "Failed"]
        assert len(failed) == 1
        assert failed[0]["status"]["reason"] == "OutOfcpu"
        assert failed[0]["status"]["message"] == (
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 900, used: 1800, capacity: 2000"
        )
        assert world.events("OutOfcpu")
        world.delete(kinds.PODS, "a", grace_period=0)
        world.create(kinds.PODS, bare("d", cpu="900m"))
        world.store.bind("d", "default", "small")
        world.settle(3)
        assert phase(world, "d") == "Running"  # what has gone has given its share back


def test_a_resize_shows_in_the_status():
    with World() as world:
        world.create(kinds.PODS, bare(cpu="1"))
        world.settle(3)
        patch = {"spec": {"containers": [{**bare(cpu="2")["spec"]["containers"][0]}]}}
        world.patch(kinds.PODS, "p", patch, subresource="resize")
        world.settle(3)
        (container,) = world.get(kinds.PODS, "p")["status"]["containerStatuses"]
        assert container["resources"]["requests"] == container["allocatedResources"] == {"cpu": "2"}


def test_a_host_network_pod_has_the_address_of_its_node():
    with World(nodes=1) as world:
        world.create(kinds.PODS, bare(hostNetwork=True))
        world.settle(3)
        found = world.get(kinds.PODS, "p")["status"]
        assert found["podIP"] == found["hostIP"]


def test_a_restarted_stand_in_goes_on_where_it_was():
    notes = {"moorage.dev/run-seconds": "60"}
    with World() as world:
        world.create(kinds.PODS, bare("long", notes=notes, restartPolicy="Never"))
        world.create(kinds.PODS, bare("other"))
        world.settle(30)
        before = world.get(kinds.PODS, "long")["status"]
        world.restart_kubelets()
        world.settle(5)
        assert world.get(kinds.PODS, "long")["status"] == before
        world.create(kinds.PODS, bare("new"))
        world.settle(5)
        addresses = [p["status"]["podIP"] for p in world.all(kinds.PODS)]
        assert len(set(addresses)) == 3
        world.settle(25)
        assert phase(world, "long") == "Succeeded"


def test_a_selector_chooses_the_nodes():
    settings = KubeletSettings(node_selector="type=fake")
    with World(nodes=0, kubelets=settings) as world:
        world.create(kinds.NODES, node("real"))
        world.create(kinds.NODES, node("fake", labels={"type": "fake"}))
        world.settle(5)
        assert _is_ready(world.get(kinds.NODES, "fake", ""))
        assert not world.get(kinds.NODES, "real", "")["status"].get("conditions")


def test_bad_annotations_are_reported():
    with World() as world:
        world.create(kinds.PODS, bare(notes={"moorage.dev/run-seconds": "long"}))
        world.patch(kinds.NODES, "n0", {"metadata": {"annotations": {"moorage.dev/conditions": "Ready"}}})
        world.settle(3)
        assert phase(world) == "Running"
        assert {e["regarding"]["name"] for e in world.events("InvalidAnnotation")} == {"p", "n0"}


def test_usage_is_annotated_or_a_part_of_the_requests():
    with World(nodes=1) as world:
        annotations = {"moorage.dev/usage-cpu": "250m", "moorage.dev/usage-memory": "64Mi"}
        world.create(kinds.PODS, bare("annotated", notes=annotations))
        world.create(kinds.PODS, bare("asks", cpu="1"))
        world.settle(3)
        assert world.kubelets is not None
        usage = world.kubelets.usage
        first = usage.pod("default", "annotated")
        assert first is not None
        assert (first["main"].cpu_cores, first["main"].memory_bytes) == (0.25, 64 * 1024 * 1024)
        second = usage.pod("default", "asks")
        assert second is not None
        assert 0.3 <= second["main"].cpu_cores <= 0.5
        assert second == usage.pod("default", "asks")
        total = usage.node("n0")
        assert total is not None
        assert total.cpu_cores > 0.25 + second["main"].cpu_cores
        assert usage.pod("default", "none") is None
        assert usage.node("none") is None


def test_a_flood_of_pods_is_written_at_a_steady_rate():
    slow = KubeletSettings(start_seconds=(0.1, 0.2), writes_per_second=50.0, busy_backlog=20)
    with World(nodes=5, kubelets=slow, schedule=False) as world:
        for number in range(300):
            world.create(kinds.PODS, bare(f"p{number}"))
            world.store.bind(f"p{number}", "default", f"n{number % 5}")
        since = world.clock.now()
        world.settle(4)
        assert len(world.writes(since)) <= 50 * 4 + 20
        world.settle(20)
        assert all(p["status"]["phase"] == "Running" for p in world.all(kinds.PODS))
        assert FAST.writes_per_second > 50.0
