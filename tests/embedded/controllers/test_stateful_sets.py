"""StatefulSets: the next step as a table, and whole lives in a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.stateful_sets import NextStep, SetMember, WantedMember, next_step
from tests.embedded.controllers.world import World, workload

Raw = dict[str, Any]
IMAGE_2 = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}


def well(ordinal: int, revision: str = "r2") -> SetMember:
    return SetMember(ordinal, revision, ready=True, available=True)


def wanted(replicas: int = 3, **more: Any) -> WantedMember:
    return WantedMember(0, replicas, "r1", "r2", **more)


PLANS = {
    "the first pod comes alone": (wanted(), [], NextStep({0: "r2"})),
    "the next waits for the one before": (wanted(), [SetMember(0, "r2", ready=True)], NextStep()),
    "the next follows when it is available": (wanted(), [well(0)], NextStep({1: "r2"})),
    "parallel makes all": (wanted(ordered=False), [], NextStep({0: "r2", 1: "r2", 2: "r2"})),
    "below the partition the current revision": (
        wanted(ordered=False, partition=2), [], NextStep({0: "r1", 1: "r1", 2: "r2"}),
    ),
    "a finished pod is deleted first": (
        wanted(), [SetMember(0, "r2", finished=True)], NextStep({}, [0]),
    ),
    "the last goes first": (wanted(1), [well(0), well(1), well(2)], NextStep({}, [2])),
    "one at a time": (wanted(1), [well(0), well(1), SetMember(2, "r2", terminating=True)], NextStep()),
    "parallel removes all": (wanted(1, ordered=False), [well(0), well(1), well(2)], NextStep({}, [1, 2])),
    "an update begins with the last": (
        wanted(), [well(0, "r1"), well(1, "r1"), well(2, "r1")], NextStep({}, [2]),
    ),
    "an update waits for the one before": (
        wanted(ordered=False),
        [well(0, "r1"), well(1, "r1"), SetMember(2, "r2")],
        NextStep(),
    ),
    "an update stops at the partition": (
        wanted(partition=2), [well(0, "r1"), well(1, "r1"), well(2)], NextStep(),
    ),
    "more may be unavailable": (
        wanted(max_unavailable=2), [well(0, "r1"), well(1, "r1"), well(2, "r1")], NextStep({}, [2, 1]),
    ),
    "on delete leaves them": (
        wanted(rolling=False), [well(0, "r1"), well(1, "r1"), well(2, "r1")], NextStep(),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("goal", "members", "expected"), PLANS.values(), ids=PLANS)
def test_next_step(goal: WantedMember, members: list[SetMember], expected: NextStep):
    found = next_step(goal, {member.ordinal: member for member in members})
    assert (found.create, sorted(found.delete)) == (expected.create, sorted(expected.delete))


def pods(world: World) -> dict[str, str]:
    return {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in world.all(kinds.PODS)}


def test_pods_come_in_order_with_their_names_and_claims():
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    fast = {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"}
    claim["spec"]["storageClassName"] = "fast"  # type: ignore[index]
    with World() as world:
        world.create(kinds.STORAGE_CLASSES, fast)
        world.create(kinds.STATEFUL_SETS, workload(serviceName="web", volumeClaimTemplates=[claim]))
        seen: list[int] = []
        for _ in range(200):
            world.settle(0.05)
            seen.append(len(pods(world)))
        assert seen == sorted(seen)
        assert seen[-1] == 3
        assert list(pods(world)) == ["web-0", "web-1", "web-2"]
        pod = world.get(kinds.PODS, "web-1")
        assert pod["spec"]["hostname"] == "web-1"
        assert pod["spec"]["subdomain"] == "web"
        assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]
        assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
        phases = {c["metadata"]["name"]: c["status"]["phase"] for c in world.all(kinds.CLAIMS)}
        assert phases == {f"data-web-{i}": "Bound" for i in range(3)}
        world.patch(kinds.STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
        world.settle(10)
        assert list(pods(world)) == ["web-0"]
        assert len(world.all(kinds.CLAIMS)) == 3


def test_an_update_goes_down_to_the_partition_and_then_to_the_end():
    with World() as world:
        world.create(kinds.STATEFUL_SETS, workload())
        world.settle(10)
        strategy = {"rollingUpdate": {"partition": 2}}
        world.patch(kinds.STATEFUL_SETS, "web", {"spec": {**IMAGE_2["spec"], "updateStrategy": strategy}})
        world.settle(15)
        assert pods(world) == {"web-0": "app:1", "web-1": "app:1", "web-2": "app:2"}
        status = world.get(kinds.STATEFUL_SETS, "web")["status"]
        assert status["updatedReplicas"] == 1
        assert status["currentRevision"] != status["updateRevision"]
        world.delete(kinds.PODS, "web-0", grace_period=0)
        world.settle(5)
        assert pods(world)["web-0"] == "app:1"  # below the partition, the old revision comes back
        world.patch(kinds.STATEFUL_SETS, "web", {"spec": {"updateStrategy": {"rollingUpdate": None}}})
        world.settle(20)
        assert set(pods(world).values()) == {"app:2"}
        status = world.get(kinds.STATEFUL_SETS, "web")["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert status["readyReplicas"] == 3
        assert len(world.all(kinds.CONTROLLER_REVISIONS)) == 2
        since = world.clock.now()
        world.settle(100)
        assert world.writes(since) == []


def test_claims_go_with_the_set_when_the_policy_says_so():
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast", **size}}
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    with World() as world:
        world.create(
            kinds.STATEFUL_SETS,
            workload(
                replicas=2,
                podManagementPolicy="Parallel",
                volumeClaimTemplates=[claim],
                persistentVolumeClaimRetentionPolicy=policy,
            ),
        )
        world.settle(5)
        assert len(world.all(kinds.CLAIMS)) == 2
        world.patch(kinds.STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
        world.settle(10)
        assert [c["metadata"]["name"] for c in world.all(kinds.CLAIMS)] == ["data-web-0"]
        world.delete(kinds.STATEFUL_SETS, "web")
        world.settle(10)
        assert world.all(kinds.CLAIMS) == []
        assert world.all(kinds.PODS) == []
