"""Whole replicas that share a lease: who binds, who must not any more, and what a successor makes of it.

The cases C of docs/faults.md, under virtual time.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from moorage.api.resources import LEASES, NODES, PODS
from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS as CLAIMS
from moorage.api.resources import PERSISTENT_VOLUMES as VOLUMES
from moorage.framework import PermitPlugin, Status
from moorage.plugins.volumes import BIND_COMPLETED, SELECTED_NODE
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.testing import make_node, make_nodes, make_pod, make_pods
from moorage.testing.volumes import make_pv, make_pvc, make_storage_class
from tests.run.replicas import World, play

WITH = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{enabled: [{{name: {0}}}]}}}}
"""


def in_time(calls, fence_deadline):
    return all(call.time < fence_deadline for call in calls)


def test_only_the_leader_schedules_and_the_standby_is_warm():
    async def story(world: World):
        world.add(*make_nodes(3), *make_pods(20, cpu="100m"))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        second = world.replica()
        await world.until(lambda: len(world.placed()) == 20)
        await world.clock.sleep(30)
        assert second.binds() == []
        assert len(second.scheduler.engine.cache) == 20, "a follower's cache is current"

    play(story)


@pytest.mark.parametrize("seed", range(4))
def test_c7_the_leader_is_killed_in_the_middle_and_everything_is_bound_exactly_once(seed):
    async def story(world: World):
        world.add(*make_nodes(10, pods=400))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        first.faults.add(Fault(verb="bind", effect=faults.slow_answer(0.05), times=None))
        second = world.replica()
        await world.clock.sleep(5)
        world.add(*make_pods(300, cpu="10m"))
        await world.until(lambda: len(world.placed()) >= 100)
        before = world.placed()
        await first.kill()
        took = await world.until(lambda: second.led_at is not None)
        assert took <= 15 + 2 * 2 * 2.2 + 2
        await world.until(lambda: len(world.placed()) == 300)
        assert {name: world.placed()[name] for name in before} == before, "nothing was moved"
        second.scheduler.engine.cache.validate()

    play(story, seed)


def test_c3_a_leader_that_cannot_reach_the_lease_sends_nothing_after_the_renew_deadline():
    async def story(world: World):
        world.add(*make_nodes(3))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        await world.clock.sleep(10)
        first.faults.add(Fault(resource=LEASES, effect=faults.not_sent(), times=None))
        cut = world.clock.now()
        for number in range(60):
            world.add(make_pod(f"p-{number}"))
            await world.clock.sleep(0.5)
        assert first.lost_because
        assert first.binds(), "while the lease held it went on"
        assert max(call.time for call in first.binds()) < cut + 10
        assert len(world.placed()) < 60

    play(story)


def test_c2_frozen_for_a_minute_and_not_one_write_afterwards():
    """The fence asks the clock, not the election: even if the election's own task is never run again."""

    async def story(world: World):
        world.add(*make_nodes(2))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        for task in first.tasks:
            task.cancel()  # frozen: the lease is not renewed, and the replica does not notice
        await world.clock.sleep(60)
        sent = len(first.faults.calls)
        world.add(make_pod("late"), make_pod("huge", cpu="100"))
        await world.clock.sleep(20)
        written = [call for call in list(first.faults.calls)[sent:] if call.verb not in ("list", "watch", "get")]
        assert written == []
        assert world.placed() == {}

    play(story)


def test_c4_a_lease_lost_during_a_bind_leaves_the_outcome_to_the_successor():
    async def story(world: World):
        world.add(make_node("a"))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        first.faults.add(Fault(verb="bind", effect=faults.lost_answer(5.0), times=None))
        world.add(make_pod("p"))
        await world.until(lambda: first.binds())
        first.beating = False
        second = world.replica()
        await world.until(lambda: second.led_at is not None)
        assert world.placed() == {"p": "a"}
        assert second.scheduler.engine.cache.get(world.pods()[0].uid) is not None, "known before the first bind"
        assert second.binds() == []

    play(story)


def test_a_new_leader_waits_for_what_its_watch_has_not_shown_yet():
    """The watch of the successor lags behind; a quorum read tells it so, and nothing is overcommitted."""

    async def story(world: World):
        world.add(make_node("a", cpu="1"), make_node("b", cpu="1"))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        second = world.replica()
        await world.clock.sleep(5)
        second.client.cut_watches(PODS)
        second.faults.add(Fault(verb="watch", resource=PODS, effect=faults.delay(60.0), times=None))
        await world.clock.sleep(5)
        world.add(make_pod("one", cpu="800m"))
        await world.until(lambda: len(world.placed()) == 1)
        await first.kill()
        await world.until(lambda: second.fence.allows())
        world.add(make_pod("two", cpu="800m"))
        assert second.led_at is None
        await world.clock.sleep(20)
        assert second.led_at is None, "it holds the lease and does not schedule yet"
        await world.until(lambda: len(world.placed()) == 2, 200)
        assert set(world.placed().values()) == {"a", "b"}

    play(story)


def test_c8_two_of_one_name_without_election_bind_each_pod_once():
    async def story(world: World):
        world.add(*make_nodes(4, pods=200))
        replicas = [world.replica(elects=False), world.replica(elects=False)]
        await world.clock.sleep(2)
        world.add(*make_pods(100, cpu="10m"))
        await world.until(lambda: len(world.placed()) == 100)
        await world.clock.sleep(30)
        for replica in replicas:
            replica.scheduler.engine.cache.validate()
            replica.scheduler.engine.queue.pending.validate()
            assert len(replica.scheduler.engine.queue) == 0
            assert list(replica.scheduler.engine.cache.assumed()) == []

    for seed in range(3):
        play(story, seed)


def test_c9_a_foreign_bind_counts_at_once_and_an_overcommit_is_reported():
    async def story(world: World):
        world.add(make_node("a", cpu="1"))
        replica = world.replica(elects=False)
        await world.clock.sleep(2)
        replica.faults.add(Fault(verb="watch", resource=PODS, effect=faults.delay_events(2.0), times=None))
        replica.client.cut_watches(PODS)
        await world.clock.sleep(5)
        world.add(make_pod("foreign", cpu="800m", scheduler="somebody-else"), make_pod("ours", cpu="800m"))
        await world.clock.sleep(1.9)
        world.store.bind("foreign", "default", "a")  # the other scheduler, before our watch shows anything
        await world.until(lambda: len(world.placed()) == 2)
        await world.clock.sleep(10)
        assert replica.metrics.overcommits.samples() == {("cpu",): 1}
        (event,) = world.events("NodeOvercommitted")
        assert event.regarding.name == "foreign"
        assert "ours" not in event.note, "names of other pods are not told"
        world.add(make_pod("third", cpu="300m"))
        await world.clock.sleep(5)
        assert "third" not in world.placed(), "both count"

    play(story)


def test_binds_that_fit_are_no_overcommit():
    async def story(world: World):
        world.add(make_node("a", cpu="2"))
        replica = world.replica(elects=False)
        await world.clock.sleep(2)
        world.add(make_pod("foreign", cpu="800m", scheduler="somebody-else"), make_pod("ours", cpu="800m"))
        world.store.bind("foreign", "default", "a")
        await world.clock.sleep(10)
        assert len(world.placed()) == 2
        assert replica.metrics.overcommits.samples() == {}

    play(story)


def test_c10_a_stop_with_fifty_binds_under_way_drains_them_before_the_lease_is_given_back():
    async def story(world: World):
        world.add(*make_nodes(5))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        first.faults.add(Fault(verb="bind", effect=faults.slow_answer(3.0), times=None))
        world.add(*make_pods(50, cpu="10m"))
        await world.until(lambda: len(first.binds()) == 50)
        await first.stop()
        assert len(world.placed()) == 50
        released = first.faults.calls_of("replace", LEASES)[-1].time
        assert released >= max(call.time for call in first.binds()) + 3.0
        lease: Any = world.store.get(LEASES, "moorage", "kube-system").typed
        assert lease.spec.holder_identity == ""

    play(story)


class Holds(PermitPlugin):
    """Everything waits for ever."""

    name = "Holds"

    def permit(self, state, pod, node_name):
        return Status.wait(timeout=900.0)


def test_c11_a_process_killed_with_waiting_pods_is_rebuilt_from_the_api_alone():
    """Each pod goes where the killed one was taking it, though a better node has come."""

    async def story(world: World):
        world.add(make_node("a"), make_node("b"))
        first = world.replica(config=WITH.format("Holds"), plugins=[Holds])
        await world.until(lambda: first.led_at is not None)
        world.add(*make_pods(6, cpu="500m"))
        await world.until(lambda: len([p for p in world.pods() if p.status.nominated_node_name]) == 6)
        assumed = {cached.pod.name: cached.node_name for cached in first.scheduler.engine.cache.assumed()}
        await first.kill()
        assert world.placed() == {}
        world.add(make_node("attractive", cpu="64", memory="256Gi"))
        second = world.replica()
        await world.until(lambda: second.led_at is not None)
        await world.until(lambda: len(world.placed()) == 6)
        assert set(assumed.values()) == {"a", "b"}
        assert world.placed() == assumed
        second.scheduler.engine.cache.validate()

    play(story)


def test_c11_a_nomination_by_preemption_outlives_the_process_that_made_it():
    """Killed after the victim was deleted. Its resources are reserved for the nominated pod, although
    the successor comes to a rival of the same priority first."""

    async def story(world: World):
        world.add(make_node("a", cpu="2"), make_pod("victim", cpu="1500m", node="a", phase="Running"))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        world.add(make_pod("important", cpu="1800m", priority=1000))
        await world.until(lambda: "a" in {pod.status.nominated_node_name for pod in world.pods()})
        await world.until(lambda: any(pod.is_terminating for pod in world.pods()))
        await first.kill()
        world.add(make_pod("another", cpu="400m", priority=1000))
        second = world.replica()
        await world.until(lambda: second.led_at is not None)
        await world.clock.sleep(60)
        tried = [record.pod for record in second.scheduler.engine.records]
        assert tried[0] == "default/another"
        assert world.placed() == {"victim": "a"}, "it would fit beside the victim"
        assert second.faults.calls_of("delete", PODS) == [], "nobody else has to go"
        world.store.delete(PODS, "victim", namespace="default", grace_period=0)
        await world.until(lambda: "important" in world.placed())
        await world.clock.sleep(60)
        assert world.placed() == {"important": "a"}
        second.scheduler.engine.cache.validate()

    play(story)


CUTS = {
    "before the volume is written": Fault(verb="patch", resource=VOLUMES, effect=faults.lost_request(3600.0)),
    "when the volume is written": Fault(verb="patch", resource=CLAIMS, effect=faults.lost_request(3600.0)),
    "when the answer is on its way": Fault(verb="patch", resource=CLAIMS, effect=faults.lost_answer(3600.0)),
    "when all is written": Fault(verb="bind", effect=faults.lost_request(3600.0)),
}
HOST = "kubernetes.io/hostname"


@pytest.mark.parametrize("when", CUTS)
def test_c12_a_crash_between_reserve_and_bind_converges(when):
    """The pod has a claim for a volume that exists and one for a volume that is to be made. What the killed
    process has written is found again, and nothing is taken twice, though another node has become better."""

    async def story(world: World):
        world.add(
            make_storage_class("wait", provisioner="kubernetes.io/no-provisioner", wait=True),
            make_storage_class("dynamic", provisioner="driver", wait=True),
            *(make_node(name) for name in "ab"),
            *(make_pv(f"disk-{name}", storage_class="wait", nodes={HOST: [name]}) for name in "ab"),
            make_pvc("disk", storage_class="wait"),
            make_pvc("made", storage_class="dynamic"),
        )
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        fault = first.faults.add(dataclasses.replace(CUTS[when], times=None))
        world.add(make_pod("p", cpu="100m", claims=["disk", "made"]))
        if fault.verb == "bind":
            await world.until(lambda: SELECTED_NODE in claim(world, "made").annotations)
            serve_claims(world)
        await world.until(lambda: fault.hits)
        (chosen,) = (cached.node_name for cached in first.scheduler.engine.cache.assumed())
        written = taken(world)
        await first.kill()
        world.add(*(make_pod(f"load-{i}", cpu="500m", node=chosen, phase="Running") for i in range(4)))
        second = world.replica()
        await world.until(lambda: SELECTED_NODE in claim(world, "made").annotations)
        await world.until(lambda: taken(world))
        serve_claims(world)
        await world.until(lambda: "p" in world.placed())
        node = world.placed()["p"]
        assert taken(world) == {f"disk-{node}": "disk", f"made-{node}": "made"}
        assert not written or node == chosen
        await world.clock.sleep(30)
        assert list(second.scheduler.engine.cache.assumed()) == []
        second.scheduler.engine.cache.validate()

    play(story)


def claim(world: World, name: str) -> Any:
    return world.store.get(CLAIMS, name, "default").typed


def taken(world: World) -> dict[str, str]:
    """Volume → the claim that it is promised to."""
    found: list[Any] = [stored.typed for stored in world.store.list(VOLUMES).items]
    return {volume.name: volume.spec.claim_ref.name for volume in found if volume.spec.claim_ref is not None}


def serve_claims(world: World) -> None:
    """As the controllers do: make a volume for the node that was chosen, and bind claims to volumes."""
    node = claim(world, "made").annotations[SELECTED_NODE]
    if f"made-{node}" not in taken(world):
        made = claim(world, "made")
        world.add(make_pv(f"made-{node}", storage_class="dynamic", nodes={HOST: [node]}, claim=made))
    for volume, name in taken(world).items():
        patch = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
        world.store.patch(CLAIMS, name, patch, namespace="default")
        bound = {"status": {"phase": "Bound"}}
        world.store.patch(CLAIMS, name, bound, namespace="default", subresource="status")


@pytest.mark.slow
@pytest.mark.parametrize("late", [NODES, PODS])
def test_c15_nothing_is_bound_before_everything_has_synced(late):
    """3,000 nodes are full and two are not: whoever binds before he has seen all pods takes a full one."""

    async def story(world: World):
        nodes = make_nodes(3002, cpu="1")
        free = {nodes[700].name, nodes[1900].name}
        full = [node.name for node in nodes if node.name not in free]
        world.add(*nodes)
        world.add(*(make_pod(f"old-{name}", cpu="900m", node=name, phase="Running") for name in full))
        world.add(*(make_pod(f"new-{i}", cpu="800m") for i in range(5)))
        replica = world.replica(elects=False)
        replica.faults.add(Fault(verb="list", resource=late, effect=faults.slow_answer(30.0), times=1))
        await world.clock.sleep(29)
        assert replica.led_at is None
        assert replica.binds() == []
        await world.until(lambda: len(replica.binds()) == 2)
        await world.clock.sleep(60)
        new = {name: node for name, node in world.placed().items() if name.startswith("new-")}
        assert sorted(new.values()) == sorted(free)
        assert len(replica.binds()) == 2

    play(story)


def test_losing_the_lease_stops_status_patches_and_deletions_too():
    async def story(world: World):
        world.add(make_node("a", cpu="1"), make_pod("victim", cpu="800m", node="a", phase="Running"))
        first = world.replica()
        await world.until(lambda: first.led_at is not None)
        first.fence.close()
        world.add(make_pod("important", cpu="800m", priority=1000))
        await world.clock.sleep(60)
        assert [call for call in first.faults.calls if call.verb in ("delete", "patch", "bind")] == []

    play(story)
