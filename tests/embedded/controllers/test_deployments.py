"""Deployments and ReplicaSets in a whole cluster."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.controllers import kinds
from tests.embedded.controllers.world import World, template, workload

Raw = dict[str, Any]
IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}


def running(world: World, labels: str = "app=web") -> list[Raw]:
    return [
        pod
        for pod in world.all(kinds.PODS, labels)
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def status(world: World, name: str = "web") -> Raw:
    return dict(world.get(kinds.DEPLOYMENTS, name).get("status") or {})


def reason(world: World, kind: str) -> str:
    return next(str(c["reason"]) for c in status(world)["conditions"] if c["type"] == kind)


def images(world: World) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in world.all(kinds.PODS)}


def test_a_deployment_becomes_pods_that_run_and_then_nothing_is_written():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=4))
        world.settle(5)
        assert len(running(world)) == 4
        found = status(world)
        assert (found["observedGeneration"], found["availableReplicas"]) == (1, 4)
        assert reason(world, "Progressing") == "NewReplicaSetAvailable"
        (owned,) = world.all(kinds.REPLICA_SETS)
        digest = owned["metadata"]["labels"]["pod-template-hash"]
        assert owned["metadata"]["name"] == f"web-{digest}"
        assert all(pod["metadata"]["labels"]["pod-template-hash"] == digest for pod in running(world))
        since = world.clock.now()
        world.settle(200)
        assert world.writes(since) == []
        (scaled,) = world.events("ScalingReplicaSet")
        assert scaled["note"] == f"Scaled up replica set web-{digest} from 0 to 4"
        assert scaled["reportingController"] == "deployment-controller"
        assert len(world.events("SuccessfulCreate")) == 4


@pytest.mark.parametrize("seed", range(3))
def test_a_rolling_update_stays_between_its_limits(seed: int):
    spec: Raw = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}}
    with World(seed=seed) as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=6, **spec))
        world.settle(5)
        world.patch(kinds.DEPLOYMENTS, "web", IMAGE_2)
        for _ in range(300):
            world.settle(0.05)
            active = [p for p in world.all(kinds.PODS) if "deletionTimestamp" not in p["metadata"]]
            ready = [p for p in active if _is_ready(p)]
            assert len(active) <= 8
            assert len(ready) >= 5
        assert images(world) == {"app:2"}
        assert status(world)["updatedReplicas"] == 6
        assert reason(world, "Progressing") == "NewReplicaSetAvailable"


def _is_ready(pod: Raw) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def test_recreate_starts_the_new_after_the_last_old_is_gone():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(strategy={"type": "Recreate"}))
        world.settle(5)
        world.patch(kinds.DEPLOYMENTS, "web", IMAGE_2)
        for _ in range(100):
            world.settle(0.05)
            assert len(images(world)) <= 1
        assert images(world) == {"app:2"}
        assert len(running(world)) == 3


def test_undo_brings_the_old_set_back_under_a_new_revision():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload())
        world.settle(5)
        first = world.all(kinds.REPLICA_SETS)[0]["metadata"]["name"]
        world.patch(kinds.DEPLOYMENTS, "web", IMAGE_2)
        world.settle(10)
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"template": template()}})
        world.settle(10)
        sets = {one["metadata"]["name"]: one for one in world.all(kinds.REPLICA_SETS)}
        assert len(sets) == 2
        assert sets[first]["spec"]["replicas"] == 3
        notes = sets[first]["metadata"]["annotations"]
        assert notes["deployment.kubernetes.io/revision"] == "3"
        assert notes["deployment.kubernetes.io/revision-history"] == "1"
        own = world.get(kinds.DEPLOYMENTS, "web")["metadata"]["annotations"]
        assert own["deployment.kubernetes.io/revision"] == "3"


def test_a_paused_deployment_is_scaled_but_not_rolled_out():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload())
        world.settle(5)
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"paused": True, **IMAGE_2["spec"]}})
        world.settle(5)
        assert images(world) == {"app:1"}
        assert reason(world, "Progressing") == "DeploymentPaused"
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"replicas": 5}})
        world.settle(5)
        assert images(world) == {"app:1"}
        assert len(running(world)) == 5
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"paused": False}})
        world.settle(15)
        assert images(world) == {"app:2"}
        assert reason(world, "Progressing") == "NewReplicaSetAvailable"


def test_a_rollout_that_makes_no_progress_says_so_after_its_deadline():
    never = {"metadata": {"annotations": {"moorage.dev/ready-seconds": "never"}}}
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(progressDeadlineSeconds=60))
        world.settle(5)
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"template": never}})
        world.settle(50)
        assert reason(world, "Progressing") == "ReplicaSetUpdated"
        world.settle(30)
        assert reason(world, "Progressing") == "ProgressDeadlineExceeded"
        assert len([p for p in world.all(kinds.PODS) if _is_ready(p)]) == 3
        since = world.clock.now()
        world.settle(100)
        assert world.writes(since) == []


def test_scaling_in_the_middle_of_a_rollout_ends_with_the_new_number():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=10))
        world.settle(5)
        world.patch(kinds.DEPLOYMENTS, "web", IMAGE_2)
        world.settle(0.8)
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
        world.settle(0.5)
        world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"replicas": 12}})
        world.settle(30)
        assert len(running(world)) == 12
        assert images(world) == {"app:2"}


def test_old_revisions_beyond_the_limit_are_dropped():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(replicas=1, revisionHistoryLimit=2))
        for number in range(2, 7):
            world.settle(6)
            containers = [{"name": "main", "image": f"app:{number}"}]
            world.patch(kinds.DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})
        world.settle(10)
        numbers = [
            one["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for one in world.all(kinds.REPLICA_SETS)
        ]
        assert sorted(numbers) == ["4", "5", "6"]


def test_min_ready_seconds_hold_availability_back():
    with World() as world:
        world.create(kinds.DEPLOYMENTS, workload(minReadySeconds=30))
        world.settle(10)
        found = status(world)
        assert found["readyReplicas"] == 3
        assert "availableReplicas" not in found
        world.settle(30)
        assert status(world)["availableReplicas"] == 3


def test_deleted_and_lost_pods_are_replaced():
    with World() as world:
        world.create(kinds.REPLICA_SETS, workload())
        world.settle(5)
        victim = running(world)[0]["metadata"]["name"]
        world.delete(kinds.PODS, victim, grace_period=0)
        world.settle(5)
        names = [pod["metadata"]["name"] for pod in running(world)]
        assert len(names) == 3
        assert victim not in names


def test_orphans_are_adopted_and_strangers_released():
    with World() as world:
        bare = template()
        meta = {"name": "mine", "namespace": "default", **bare["metadata"]}
        world.create(kinds.PODS, {"metadata": meta, "spec": bare["spec"]})
        world.create(kinds.REPLICA_SETS, workload(replicas=2))
        world.settle(5)
        owners = world.get(kinds.PODS, "mine")["metadata"]["ownerReferences"]
        assert [o["name"] for o in owners] == ["web"]
        assert len(running(world)) == 2
        world.patch(kinds.PODS, "mine", {"metadata": {"labels": {"app": "debug"}}})
        world.settle(5)
        assert "ownerReferences" not in world.get(kinds.PODS, "mine")["metadata"]
        assert len(running(world)) == 2


def test_the_cheapest_pod_goes_first():
    cost = "controller.kubernetes.io/pod-deletion-cost"
    with World() as world:
        world.create(kinds.REPLICA_SETS, workload(replicas=3))
        world.settle(5)
        for number, pod in enumerate(running(world)):
            notes = {"metadata": {"annotations": {cost: str(10 - number)}}}
            world.patch(kinds.PODS, pod["metadata"]["name"], notes)
        dearest = running(world)[0]["metadata"]["name"]
        world.patch(kinds.REPLICA_SETS, "web", {"spec": {"replicas": 1}})
        world.settle(5)
        assert [pod["metadata"]["name"] for pod in running(world)] == [dearest]


def test_a_replication_controller_works_the_same_way():
    raw = workload("old")
    raw["spec"]["selector"] = {"app": "old"}
    with World() as world:
        world.create(kinds.REPLICATION_CONTROLLERS, raw)
        world.settle(5)
        assert len(running(world, "app=old")) == 3
        assert world.get(kinds.REPLICATION_CONTROLLERS, "old")["status"]["readyReplicas"] == 3
