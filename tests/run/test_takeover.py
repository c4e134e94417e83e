"""A new leader's cache is as new as the lease before anything is bound, without listing all pods again."""

from __future__ import annotations

import asyncio

import pytest

from moorage.api.resources import LEASES, NODES, PODS
from moorage.run import takeover
from moorage.store import faults
from moorage.store.faults import Fault
from moorage.store.local import LocalClient
from moorage.testing import make_node, make_pod, make_pods
from tests.run.replicas import play

MANY = takeover.PAGE + 100


async def standby(world, pods, **fault):
    """A replica that has seen all pods bound, and is not leading. Its informer's watch meets the fault."""
    world.add(make_node("a", cpu="999", pods=9999), *make_pods(pods, node="a", cpu="1m"))
    replica = world.replica(elects=False)
    if fault:
        replica.faults.add(Fault(verb="watch", resource=PODS, **fault))
    await world.clock.sleep(5)
    replica.faults.clear()
    replica.faults.calls.clear()
    return replica, replica.scheduler.informers.informers[PODS]


@pytest.mark.parametrize(("pods", "watches"), [(10, 0), (MANY, 1)])
def test_a_quiet_cluster_is_not_listed_again(pods, watches):
    """Something else was written meanwhile, so that the version of the pods is older than the present one."""

    async def story(world):
        replica, informer = await standby(world, pods)
        world.store.create(NODES, {"metadata": {"name": "another"}})
        await takeover.catch_up(replica.client, informer, world.clock)
        assert len(replica.faults.calls_of("list", PODS)) == 1
        assert len(replica.faults.calls_of("watch", PODS)) == watches

    play(story)


@pytest.mark.parametrize("pods", [10, MANY])
def test_a_bind_that_the_watch_has_not_shown_is_waited_for(pods):
    async def story(world):
        replica, informer = await standby(world, pods, effect=faults.delay_events(30.0), times=None)
        late = make_pod("late", node="a")
        world.add(late)
        assert late.key not in informer.objects
        await takeover.catch_up(replica.client, informer, world.clock)
        assert late.key in informer.objects

    play(story)


@pytest.mark.parametrize("effect", [faults.server_error(), faults.gone(), faults.cut_watch(), faults.delay(60.0)])
def test_where_a_second_watch_does_not_tell_all_pods_are_listed(effect):
    async def story(world):
        replica, informer = await standby(world, MANY)
        world.store.create(NODES, {"metadata": {"name": "another"}})
        replica.faults.add(Fault(verb="watch", resource=PODS, effect=effect))
        await asyncio.wait_for(takeover.catch_up(replica.client, informer, world.clock), 20)
        assert len(replica.faults.calls_of("list", PODS)) == 2

    play(story)


@pytest.mark.parametrize(
    ("spec", "free"),
    [
        (None, True),
        ({"holderIdentity": "other", "leaseDurationSeconds": 15}, False),
        ({"holderIdentity": "", "leaseDurationSeconds": 15}, False),
        ({"holderIdentity": "", "leaseDurationSeconds": 1}, True),
    ],
)
def test_a_lease_is_free_when_it_was_released_or_never_made(spec, free):
    async def story(world):
        client = LocalClient(world.store, world.clock)
        version = ""
        if spec is not None:
            made = {"metadata": {"name": "l", "namespace": "n"}, "spec": spec}
            version = world.store.create(LEASES, made).typed.resource_version
        assert await takeover.free_version(client, "l", "n") == (version if free else None)

    play(story)


@pytest.mark.parametrize("pods", [10, MANY])
def test_a_cache_that_is_ahead_of_a_restored_server_is_listed_anew(pods):
    async def story(world):
        replica, informer = await standby(world, pods)
        backup = world.store.version
        world.add(make_pod("lost", node="a"))
        await world.clock.sleep(1)
        assert "default/lost" in informer.objects
        world.store.durability.version = backup
        world.store.failed()
        del world.store.durability.version
        await takeover.catch_up(replica.client, informer, world.clock)
        await world.clock.sleep(1)
        assert "default/lost" not in informer.objects
        assert len(informer.objects) == pods

    play(story)
