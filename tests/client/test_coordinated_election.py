"""Coordinated leader election: the API server names the leader, and replicas answer its pings. KEP-4355."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from moorage.api.errors import NotFound
from moorage.api.resources import LEASES, Unstructured
from moorage.api.times import format_time
from moorage.client.candidacy import LEASE_CANDIDATES, RENEW_SECONDS, Candidacy, is_pinged
from moorage.client.election import Election
from moorage.client.lease import Fence, LeaseCandidate, Terms
from moorage.sim import loop as virtual
from moorage.sim.loop import VirtualClock
from moorage.store.local import LocalClient
from moorage.store.store import Store

NAME, NAMESPACE = "moorage", "kube-system"
TERMS = Terms()


class Coordinator:
    """A store, and the part of the API server that names leaders, by hand."""

    def __init__(self) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.store = Store(self.clock.wall, random.Random(0))
        self.client = LocalClient(self.store, self.clock)

    def moment(self) -> str:
        return format_time(self.clock.wall(), micro=True)

    def name_leader(self, identity: str, **more: Any) -> None:
        """Write the lease as the controller of the API server does."""
        spec = {
            "holderIdentity": identity,
            "leaseDurationSeconds": 15,
            "renewTime": self.moment(),
            "strategy": "OldestEmulationVersion",
            **more,
        }
        meta = {"name": NAME, "namespace": NAMESPACE}
        try:
            found = self.store.get(LEASES, NAME, NAMESPACE).raw
            self.store.replace(LEASES, {**found, "spec": {**found["spec"], **spec}})
        except NotFound:
            self.store.create(LEASES, {"metadata": meta, "spec": spec})

    def lease(self) -> Any:
        return self.store.get(LEASES, NAME, NAMESPACE).raw["spec"]

    def candidate(self, identity: str) -> Any:
        return self.store.get(LEASE_CANDIDATES, identity, NAMESPACE).raw["spec"]

    def ping(self, identity: str) -> None:
        found = self.store.get(LEASE_CANDIDATES, identity, NAMESPACE).raw
        changed = {**found, "spec": {**found["spec"], "pingTime": self.moment()}}
        self.store.replace(LEASE_CANDIDATES, changed)


class Standing:
    """One replica in the election."""

    def __init__(self, world: Coordinator, identity: str) -> None:
        self.said: list[str] = []
        self.fence = Fence(world.clock.now, TERMS)
        candidate = LeaseCandidate(identity, NAME, NAMESPACE, TERMS, coordinated=True)
        self.election = Election(world.client, world.clock, random.Random(1), candidate, self.fence, self)
        self.task = asyncio.get_running_loop().create_task(self.election.run())

    def leading(self, lease: Any) -> None:
        self.said.append("leading")

    def lost(self, reason: str) -> None:
        self.said.append("lost")

    def observed(self, holder: str) -> None:
        pass

    def conflicted(self) -> None:
        pass


def play(story: Any) -> None:
    async def main() -> None:
        await story(Coordinator())

    virtual.run(main(), timeout_virtual=7200)


def candidacy(world: Coordinator, identity: str = "host_1") -> asyncio.Task[None]:
    made = Candidacy(world.client, world.clock, identity=identity, lease=NAME, namespace=NAMESPACE, version="1.37.0")
    return asyncio.get_running_loop().create_task(made.run())


def test_no_replica_creates_or_takes_the_lease_by_itself():
    async def story(world: Coordinator) -> None:
        replica = Standing(world, "host_1")
        await world.clock.sleep(60)
        assert replica.said == []
        world.name_leader("host_2")
        await world.clock.sleep(300)
        assert replica.said == [], "not even a lease that is over"
        assert world.lease()["holderIdentity"] == "host_2"
        replica.task.cancel()

    play(story)


def test_the_named_replica_leads_and_renews():
    async def story(world: Coordinator) -> None:
        replica = Standing(world, "host_1")
        world.name_leader("host_1")
        await world.clock.sleep(10)
        assert replica.said == ["leading"]
        before = world.lease()["renewTime"]
        await world.clock.sleep(60)
        assert replica.fence.allows()
        assert world.lease()["renewTime"] > before
        assert world.lease()["strategy"] == "OldestEmulationVersion", "the strategy of the API server stays"
        replica.task.cancel()

    play(story)


def test_a_preferred_holder_ends_the_term_of_the_leader():
    async def story(world: Coordinator) -> None:
        replica = Standing(world, "host_1")
        world.name_leader("host_1")
        await world.clock.sleep(10)
        world.name_leader("host_1", preferredHolder="host_2")
        await world.clock.sleep(5)
        assert replica.said == ["leading", "lost"]
        assert not replica.fence.allows()

    play(story)


def test_a_leader_whose_lease_is_deleted_does_not_create_it_again():
    async def story(world: Coordinator) -> None:
        replica = Standing(world, "host_1")
        world.name_leader("host_1")
        await world.clock.sleep(10)
        world.store.delete(LEASES, NAME, namespace=NAMESPACE)
        await world.clock.sleep(30)
        assert replica.said == ["leading", "lost"]

    play(story)


def test_a_replica_announces_itself_and_answers_pings():
    async def story(world: Coordinator) -> None:
        task = candidacy(world)
        await world.clock.sleep(1)
        found = world.candidate("host_1")
        assert (found["leaseName"], found["binaryVersion"], found["emulationVersion"], found["strategy"]) == (
            NAME,
            "1.37.0",
            "1.37.0",
            "OldestEmulationVersion",
        )
        await world.clock.sleep(10)
        world.ping("host_1")
        await world.clock.sleep(2)
        found = world.candidate("host_1")
        assert found["renewTime"] >= found["pingTime"]
        task.cancel()

    play(story)


def test_a_candidate_that_is_deleted_is_created_again_and_all_are_renewed_now_and_then():
    async def story(world: Coordinator) -> None:
        task = candidacy(world)
        await world.clock.sleep(1)
        world.store.delete(LEASE_CANDIDATES, "host_1", namespace=NAMESPACE)
        await world.clock.sleep(5)
        before = world.candidate("host_1")["renewTime"]
        await world.clock.sleep(RENEW_SECONDS + 5)
        assert world.candidate("host_1")["renewTime"] > before
        task.cancel()

    play(story)


def test_a_ping_counts_until_it_is_answered():
    def made(**spec: str) -> Unstructured:
        return Unstructured({"spec": spec})

    early, late = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:01.000000Z"
    assert not is_pinged(made(renewTime=early))
    assert is_pinged(made(pingTime=late, renewTime=early))
    assert is_pinged(made(pingTime=late))
    assert not is_pinged(made(pingTime=early, renewTime=late))
