"""The comparer: what differs twice is repaired and counted, what is only on its way is left alone."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from moorage.api.resources import NODES, PODS
from moorage.framework.ports import ADDED, WatchEvent
from moorage.run.comparer import LISTING, ROUND, Comparer
from moorage.testing import make_node, make_nodes, make_pod, make_pods
from tests.run.replicas import World, play


def comparer_of(replica) -> Comparer:
    informers = replica.scheduler.informers.informers
    return Comparer(
        replica.scheduler.engine, informers[PODS], informers[NODES], replica.client, replica.clock, replica.metrics
    )


async def settled(world: World, pods: int = 6):
    world.add(*make_nodes(3), *make_pods(pods, cpu="10m"))
    replica = world.replica(elects=False)
    await world.until(lambda: len(world.placed()) == pods)
    await world.clock.sleep(5)
    return replica, comparer_of(replica)


def lose_pod(engine, pod):
    engine.cache.remove_pod(pod)


def keep_gone_pod(engine, pod):
    engine.cache.assume(make_pod("ghost", uid="ghost"), "node-0")


def lose_node(engine, pod):
    engine.cache.remove_node(engine.cache.table.view(engine.cache.table.row_of("node-0")).node)


def keep_gone_node(engine, pod):
    engine.cache.add_node(make_node("gone"))


def queue_ghost(engine, pod):
    engine.queue.add(make_pod("ghost", gates=["never"]))


@pytest.mark.parametrize(
    ("break_it", "kind"),
    [
        (lose_pod, "pod_not_cached"),
        (keep_gone_pod, "pod_gone_but_cached"),
        (lose_node, "node_not_cached"),
        (keep_gone_node, "node_gone_but_cached"),
        (queue_ghost, "pod_gone_but_queued"),
    ],
)
def test_what_is_wrong_in_memory_is_found_in_two_rounds_and_repaired(break_it, kind):
    async def story(world: World):
        replica, comparer = await settled(world)
        break_it(replica.scheduler.engine, world.pods()[0])
        await comparer.round()
        assert replica.metrics.differences.samples() == {}, "once may be chance"
        await comparer.round()
        assert replica.metrics.differences.samples() == {(kind,): 1}
        await comparer.round()
        await comparer.round()
        assert replica.metrics.differences.samples() == {(kind,): 1}, "repaired"
        replica.scheduler.engine.cache.validate()
        replica.scheduler.engine.queue.pending.validate()

    play(story)


def test_a_pending_pod_that_the_queue_has_lost_is_scheduled_after_all():
    async def story(world: World):
        replica, comparer = await settled(world)
        world.add(make_pod("huge", cpu="100"))
        await world.clock.sleep(5)
        engine = replica.scheduler.engine
        engine.queue.delete(next(pod for pod in world.pods() if pod.name == "huge"))
        world.add(make_node("large", cpu="200"))
        await world.clock.sleep(5)
        assert "huge" not in world.placed()
        await comparer.round()
        await comparer.round()
        await world.until(lambda: world.placed().get("huge") == "large")
        assert replica.metrics.differences.samples() == {("pod_not_queued",): 1}

    play(story)


@pytest.mark.parametrize("seed", range(3))
def test_a_healthy_scheduler_under_load_has_no_differences(seed):
    async def story(world: World):
        replica, comparer = await settled(world)
        rounds = 0
        for number in range(30):
            world.add(make_pod(f"more-{number}", cpu="10m"))
            if number % 3 == 0:
                await comparer.round()
                rounds += 1
            await world.clock.sleep(0.3)
        assert replica.metrics.differences.samples() == {}
        assert replica.metrics.comparisons.samples() == {(): rounds}

    play(story, seed)


def test_an_event_that_the_watch_never_delivered_is_found_by_listing():
    async def story(world: World):
        replica, comparer = await settled(world)
        informer = replica.scheduler.informers.informers[PODS]
        running = world.clock.now()
        lost = informer.objects.pop("default/pod-0")
        replica.scheduler.engine.cache.remove_pod(lost)
        task = asyncio.create_task(comparer.run())
        await world.until(lambda: "default/pod-0" in informer.objects, LISTING + 5 * ROUND + 60)
        assert world.clock.now() - running >= LISTING
        await world.clock.sleep(1)
        assert replica.scheduler.engine.cache.get(lost.uid) is not None
        assert replica.metrics.differences.samples()[("mirror_outdated",)] == 1
        task.cancel()

    play(story, until=7200)


def test_an_object_whose_deletion_the_watch_never_delivered_is_found_by_listing():
    async def story(world: World):
        replica, comparer = await settled(world)
        informer = replica.scheduler.informers.informers[PODS]
        ghost = informer.objects["default/pod-0"]
        world.store.delete(PODS, "pod-0", namespace="default", grace_period=0)
        await world.until(lambda: "default/pod-0" not in informer.objects)
        informer.apply(WatchEvent(ADDED, ghost, ""))
        task = asyncio.create_task(comparer.run())
        await world.until(lambda: "default/pod-0" not in informer.objects, LISTING + 5 * ROUND + 60)
        await world.clock.sleep(1)
        assert replica.scheduler.engine.cache.get(ghost.uid) is None
        assert replica.metrics.differences.samples()[("mirror_outdated",)] == 1
        task.cancel()

    play(story, until=7200)


def test_a_list_that_shows_another_history_has_everything_listed_again():
    """A backup was restored, and the server has already handed out higher versions than before."""

    async def story(world: World):
        replica, _ = await settled(world)
        informers = replica.scheduler.informers
        engine, found = replica.scheduler.engine, informers.informers
        rewinds: list[tuple[str, str, str]] = []
        comparer = Comparer(
            engine,
            found[PODS],
            found[NODES],
            replica.client,
            replica.clock,
            replica.metrics,
            lambda resource, seen, listed: rewinds.append((str(resource), seen, listed)),
        )
        node = found[NODES].objects["node-0"]
        lost = str(world.store.version - 1)
        found[NODES].objects["node-0"] = replace(node, metadata=replace(node.metadata, resource_version=lost))
        task = asyncio.create_task(comparer.run())
        await world.clock.sleep(LISTING + 2 * ROUND)
        task.cancel()
        assert rewinds[0] == ("nodes", lost, node.resource_version)

    play(story)
