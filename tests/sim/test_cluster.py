"""The cluster of simulations answers as an API server does, as far as the scheduler and plugins ask."""

import asyncio

import pytest

from moorage.api.errors import AlreadyExists, Conflict, MoorageError, NotFound
from moorage.api.meta import ObjectMeta
from moorage.api.resources import NODES, PODS, PRIORITY_CLASSES, Unstructured, custom
from moorage.api.scheduling import PriorityClass
from moorage.framework.ports import Change, PatchType
from moorage.sim import loop
from moorage.sim.cluster import DELETED, ENDED, PodLife, SimulatedCluster
from moorage.testing import make_node, make_pod

QUOTAS = custom("example.com", "v1", "quotas", "Quota")


class Log:
    def __init__(self):
        self.lines = []

    def added(self, pod):
        self.lines.append(("added", pod.name))

    def bound(self, pod):
        self.lines.append(("bound", pod.spec.node_name))

    def gone(self, pod, why, life=None):
        self.lines.append(("gone", why))


def in_world(body, **options):
    """Run `body(world)` in virtual time; returns the changes that were posted."""
    changes: list[Change] = []

    async def main():
        world = SimulatedCluster(loop.VirtualClock(), **options)
        world.post = changes.append
        world.profiles = {"default-scheduler": None}
        await body(world)

    loop.run(main())
    return changes


def test_a_bound_pod_runs_and_ends_with_its_lifetime():
    log = Log()

    async def body(world):
        world.watchers.append(log)
        world.add(make_pod("p"), PodLife(60.0))
        pod = world.pods["default/p"]
        await world.bind("p", "default", pod.uid, "n")
        assert (world.pods["default/p"].spec.node_name, world.pods["default/p"].status.phase) == ("n", "Running")
        assert world.ending == 1
        await asyncio.sleep(59.0)
        assert world.pods
        await asyncio.sleep(2.0)
        assert not world.pods
        assert world.ending == 0

    changes = in_world(body)
    assert log.lines == [("added", "p"), ("bound", "n"), ("gone", ENDED)]
    assert [(c.old is None, c.new is None) for c in changes] == [(True, False), (False, False), (False, True)]


@pytest.mark.parametrize("what", ["other uid", "bound already", "unknown"])
def test_a_bind_that_cannot_be_is_a_conflict(what):
    async def body(world):
        world.add(make_pod("p"))
        uid = world.pods["default/p"].uid
        if what == "bound already":
            world.bind_now("default/p", uid, "n")
        with pytest.raises(Conflict):
            await world.bind("q" if what == "unknown" else "p", "default", "x" if what == "other uid" else uid, "m")

    in_world(body)


def test_a_deleted_pod_takes_its_grace_to_end_when_it_runs():
    log = Log()

    async def body(world):
        world.watchers.append(log)
        for name in ("pending", "runs"):
            world.add(make_pod(name))
        world.bind_now("default/runs", world.pods["default/runs"].uid, "n")
        await world.delete(PODS, "pending", namespace="default")
        await world.delete(PODS, "runs", namespace="default")
        await world.delete(PODS, "runs", namespace="default")  # twice is once
        assert list(world.pods) == ["default/runs"]
        assert world.pods["default/runs"].is_terminating
        await asyncio.sleep(31.0)
        assert not world.pods

    in_world(body, grace=30.0)
    assert log.lines.count(("gone", DELETED)) == 2


def test_status_patches_of_the_scheduler_change_the_pod():
    async def body(world):
        world.add(make_pod("p"))
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
        patch = {"status": {"conditions": [condition], "nominatedNodeName": "n"}}
        options = {"namespace": "default", "subresource": "status"}
        changed = await world.patch(PODS, "p", patch, **options)
        assert (changed.nominated_node_name, changed.status.conditions[0].message) == ("n", "m")
        condition["message"] = "other"
        changed = await world.patch(
            PODS, "p", {"status": {"conditions": [condition], "nominatedNodeName": None}}, **options
        )
        assert (changed.nominated_node_name, [c.message for c in changed.status.conditions]) == ("", ["other"])
        with pytest.raises(Conflict):
            await world.patch(PODS, "p", {"metadata": {"uid": "x"}, "status": {}}, **options)

    in_world(body)


def test_other_patches_are_those_of_an_api_server():
    async def body(world):
        world.custom[QUOTAS.kind, QUOTAS.api_version] = QUOTAS
        world.add(make_pod("p", annotations={"a": "1"}))
        changed = await world.patch(PODS, "p", {"metadata": {"annotations": {"b": "2"}}}, namespace="default")
        assert dict(changed.annotations) == {"a": "1", "b": "2"}
        raw = {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "q"}, "spec": {"max": 3}}
        world.add(Unstructured(raw))
        patch = {"status": {"used": 1}}
        options = {"namespace": "default", "subresource": "status", "patch_type": PatchType.MERGE}
        await world.patch(QUOTAS, "q", patch, **options)
        found = await world.get(QUOTAS, "q", "default")
        assert (found.get("spec", "max"), found.get("status", "used")) == (3, 1)
        assert [item.name for item in (await world.list(QUOTAS)).items] == ["q"]

    in_world(body)


def test_versions_names_and_preconditions_are_checked():
    async def body(world):
        world.add(make_node("n"))
        with pytest.raises(AlreadyExists):
            world.add(make_node("n"))
        old = await world.get(NODES, "n")
        new = await world.replace(NODES, old)
        assert int(new.resource_version) > int(old.resource_version)
        with pytest.raises(Conflict):
            await world.replace(NODES, old)
        with pytest.raises(Conflict):
            await world.delete(NODES, "n", uid="other")
        await world.delete(NODES, "n")
        with pytest.raises(NotFound):
            await world.get(NODES, "n")
        created = await world.create(
            QUOTAS, {"metadata": {"name": "q"}, "kind": "Quota", "apiVersion": "example.com/v1"}
        )
        assert created.name == "q"

    in_world(body)


def test_the_priority_of_a_class_is_filled_in():
    async def body(world):
        with pytest.raises(MoorageError, match="there is no PriorityClass 'high'; add it to the objects"):
            world.add(make_pod("p", priority_class_name="high"))
        world.add(PriorityClass(metadata=ObjectMeta(name="high"), value=1000))
        world.add(make_pod("p", priority_class_name="high"))
        assert world.pods["default/p"].priority == 1000
        assert [found.name for found in (await world.list(PRIORITY_CLASSES)).items] == ["high"]

    in_world(body)


def test_pods_of_other_schedulers_are_adopted_by_default():
    async def body(world):
        world.add(make_pod("p", scheduler="elsewhere"))
        expected = "default-scheduler" if world.adopts_pods else "elsewhere"
        assert world.pods["default/p"].scheduler_name == expected

    for adopts in (True, False):
        in_world(body, adopts_pods=adopts)


def test_kinds_that_no_plugin_reads_are_set_aside_and_counted():
    async def body(world):
        raw = {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "q"}}
        world.add(Unstructured(raw))
        assert world.set_aside == {"Quota of example.com/v1": 1}

    assert in_world(body) == []


def test_a_watch_is_refused_with_the_way_out():
    async def body(world):
        with pytest.raises(loop.SimulationError, match=r"use handle\.on_change"):
            world.watch(PODS, resource_version="0")

    in_world(body)
