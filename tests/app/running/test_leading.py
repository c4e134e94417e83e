"""Whole replicas that share a lease: who binds, who must not any more, and what a successor makes of it.

The cases C of docs/faults.md, under virtual time.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mooring.api.resources import LEASES, NODES, PODS
from mooring.embedded import faults
from mooring.embedded.faults import Fault
from mooring.framework import PermitPlugin, PreBindPlugin, PreBindPreFlight, Status
from mooring.testing import make_node, make_nodes, make_pod, make_pods
from tests.app.running.replicas import World, play

WITH = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{enabled: [{{name: {0}}}]}}}}
"""


def in_time(calls, fence_deadline):
    return all(call.time < fence_deadline for call in calls)


def test_only_the_leader_schedules_and_the_follower_is_warm():
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
            task.cancel()  # frozen: nobody renews, nobody notices
        await world.clock.sleep(60)
        sent = len(first.faults.calls)
        world.add(make_pod("late"), make_pod("huge", cpu="100"))
        await world.clock.sleep(20)
        written = [
            call for call in list(first.faults.calls)[sent:] if call.verb not in ("list", "watch", "get")
        ]
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
        assert second.scheduler.engine.cache.get(world.pods()[0].uid) is not None, (
            "known before the first bind"
        )
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
            replica.scheduler.engine.queue.validate()
            assert len(replica.scheduler.engine.queue) == 0
            assert list(replica.scheduler.engine.cache.assumed()) == []

    for seed in range(3):
        play(story, seed)


def test_c9_a_foreign_bind_counts_at_once_and_an_overcommit_is_told():
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
        lease: Any = world.store.get(LEASES, "mooring", "kube-system").typed
        assert lease.spec.holder_identity == ""

    play(story)


class Holds(PermitPlugin):
    """Everything waits for ever."""

    name = "Holds"

    def permit(self, state, pod, node_name):
        return Status.wait(timeout=900.0)


def test_c11_a_process_killed_with_waiting_pods_is_rebuilt_from_the_api_alone():
    async def story(world: World):
        world.add(make_node("a"), make_node("b"))
        first = world.replica(config=WITH.format("Holds"), plugins=[Holds])
        await world.until(lambda: first.led_at is not None)
        world.add(*make_pods(6, cpu="500m"))
        await world.until(lambda: len(list(first.scheduler.engine.cache.assumed())) == 6)
        await first.kill()
        second = world.replica()
        await world.until(lambda: second.led_at is not None)
        await world.until(lambda: len(world.placed()) == 6)
        nominated = {pod.name: pod.status.nominated_node_name for pod in world.pods()}
        assert set(nominated.values()) <= {"", "a", "b"}
        second.scheduler.engine.cache.validate()

    play(story)


class Writes(PreBindPlugin):
    """Leaves something in the API before the bind, and hangs there the first time."""

    name = "Writes"
    hangs = True

    def pre_bind_pre_flight(self, state, pod, node_name):
        return PreBindPreFlight()

    async def pre_bind(self, state, pod, node_name):
        if Writes.hangs:
            await asyncio.Event().wait()


def test_c12_a_crash_between_reserve_and_bind_converges():
    async def story(world: World):
        Writes.hangs = True
        world.add(make_node("a"))
        first = world.replica(config=WITH.format("Writes"), plugins=[Writes])
        await world.until(lambda: first.led_at is not None)
        world.add(make_pod("p"))
        await world.clock.sleep(5)
        assert first.binds() == []
        assert len(list(first.scheduler.engine.cache.assumed())) == 1
        await first.kill()
        Writes.hangs = False
        second = world.replica(config=WITH.format("Writes"), plugins=[Writes])
        await world.until(lambda: world.placed() == {"p": "a"})
        assert list(second.scheduler.engine.cache.assumed()) == []

    play(story)


def test_c15_nothing_is_bound_before_everything_has_synced():
    async def story(world: World):
        world.add(*make_nodes(3), *make_pods(5))
        replica = world.replica(elects=False)
        replica.faults.add(Fault(verb="list", resource=NODES, effect=faults.slow_answer(30.0), times=1))
        await world.clock.sleep(29)
        assert replica.binds() == []
        await world.until(lambda: len(world.placed()) == 5)

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
