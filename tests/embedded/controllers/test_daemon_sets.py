"""DaemonSets: a pod on every node that takes it, and no other."""

from __future__ import annotations

from typing import Any

from moorage.embedded.controllers import kinds
from tests.embedded.controllers.world import World, node, template, workload

Raw = dict[str, Any]
IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}


def places(world: World) -> list[str]:
    return sorted(p["spec"].get("nodeName", "") for p in world.all(kinds.PODS, "app=agent"))


def agent(**spec: Any) -> Raw:
    return workload("agent", replicas=None, **spec)


def test_every_node_gets_one_and_new_nodes_too():
    with World() as world:
        world.create(kinds.DAEMON_SETS, agent())
        world.settle(5)
        assert places(world) == ["n0", "n1", "n2"]
        world.create(kinds.NODES, node("n3"))
        world.settle(5)
        assert places(world) == ["n0", "n1", "n2", "n3"]
        status = world.get(kinds.DAEMON_SETS, "agent")["status"]
        assert (status["desiredNumberScheduled"], status["numberReady"], status["numberAvailable"]) == (4, 4, 4)
        pod = world.all(kinds.PODS)[0]
        term = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["nodeSelectorTerms"][0]["matchFields"][0]["key"] == "metadata.name"
        tolerated = {(t["key"], t["effect"]) for t in pod["spec"]["tolerations"]}
        assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
        since = world.clock.now()
        world.settle(100)
        assert world.writes(since) == []


def test_selectors_and_taints_decide_where():
    selected = template({"app": "agent"}, nodeSelector={"disk": "ssd"})
    with World() as world:
        world.patch(kinds.NODES, "n0", {"metadata": {"labels": {"disk": "ssd"}}})
        world.patch(kinds.NODES, "n1", {"metadata": {"labels": {"disk": "ssd"}}})
        world.patch(kinds.NODES, "n1", {"spec": {"taints": [{"key": "own", "effect": "NoSchedule"}]}})
        world.create(kinds.DAEMON_SETS, agent(template=selected))
        world.settle(5)
        assert places(world) == ["n0"]
        world.patch(kinds.NODES, "n1", {"spec": {"taints": None}})
        world.settle(5)
        assert places(world) == ["n0", "n1"]
        # A taint that only keeps new pods away leaves the one that runs; another label does not.
        world.patch(kinds.NODES, "n1", {"spec": {"taints": [{"key": "own", "effect": "NoSchedule"}]}})
        world.patch(kinds.NODES, "n0", {"metadata": {"labels": {"disk": "hdd"}}})
        world.settle(5)
        assert places(world) == ["n1"]


def test_an_update_replaces_one_after_the_other():
    with World() as world:
        world.create(kinds.DAEMON_SETS, agent())
        world.settle(5)
        world.patch(kinds.DAEMON_SETS, "agent", IMAGE_2)
        for _ in range(200):
            world.settle(0.05)
            assert world.get(kinds.DAEMON_SETS, "agent")["status"].get("numberUnavailable", 0) <= 1
        assert {p["spec"]["containers"][0]["image"] for p in world.all(kinds.PODS)} == {"app:2"}
        assert world.get(kinds.DAEMON_SETS, "agent")["status"]["updatedNumberScheduled"] == 3


def test_surge_starts_the_new_beside_the_old():
    surge = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    with World() as world:
        world.create(kinds.DAEMON_SETS, agent(updateStrategy=surge))
        world.settle(5)
        world.patch(kinds.DAEMON_SETS, "agent", IMAGE_2)
        for _ in range(200):
            world.settle(0.05)
            assert world.get(kinds.DAEMON_SETS, "agent")["status"]["numberAvailable"] == 3
            assert len(world.all(kinds.PODS)) <= 5
        assert {p["spec"]["containers"][0]["image"] for p in world.all(kinds.PODS)} == {"app:2"}
        assert places(world) == ["n0", "n1", "n2"]


def test_a_pod_that_its_node_refuses_is_tried_again_less_and_less_often():
    huge = template({"app": "agent"})
    huge["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100"}}
    with World(nodes=1) as world:
        world.create(kinds.DAEMON_SETS, agent(template=huge))
        world.settle(300)
        tries = list(world.faults.calls_of("create", kinds.PODS))
        assert 5 <= len(tries) <= 12
        assert world.events("FailedDaemonPod")
