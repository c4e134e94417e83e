"""Leader election on the store under virtual time: takeover, conflicts, hand-made edits, and one rule above
all: never two that may bind at once, whatever is lost, delayed, paused or skewed."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from moorage.api import decoding
from moorage.api.core import Lease
from moorage.api.errors import NotFound
from moorage.api.resources import LEASES
from moorage.client.election import Election
from moorage.client.lease import Fence, LeaseCandidate, Terms
from moorage.sim import loop as virtual
from moorage.sim.loop import VirtualClock
from moorage.store import faults
from moorage.store.faults import Fault, Faults
from moorage.store.local import LocalClient
from moorage.store.store import Store

TERMS = Terms()
NAME, NAMESPACE = "moorage", "kube-system"


class OwnClock:
    """A replica's own clocks: the monotonic one runs at its own rate from its own zero, the wall jumps."""

    def __init__(self, base: VirtualClock, rate: float = 1.0, offset: float = 0.0) -> None:
        self._base = base
        self._rate = rate
        self._offset = offset
        self.jump = 0.0
        self.frozen_until = 0.0
        """A stopped process: its clock runs on, its code does not."""

    def now(self) -> float:
        return self._offset + self._base.now() * self._rate

    def wall(self) -> float:
        return self._base.wall() + self.jump

    async def sleep(self, seconds: float) -> None:
        await self._base.sleep(seconds / self._rate)
        while self._base.now() < self.frozen_until:
            await self._base.sleep(self.frozen_until - self._base.now())

    def call_later(self, seconds: float, call: Any, *args: Any) -> Any:
        return self._base.call_later(seconds / self._rate, call, *args)


@dataclass
class Replica:
    """One candidate with clock, connection and heart of its own. Its history is kept in `story`."""

    world: World
    identity: str
    clock: OwnClock
    client: LocalClient
    beating: bool = True
    story: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.candidate = LeaseCandidate(self.identity, NAME, NAMESPACE, TERMS)
        self.fence = Fence(self.clock.now, TERMS)
        self.election = Election(
            self.client, self.clock, self.world.random, self.candidate, self.fence, self, lambda: self.beating
        )
        self.task: asyncio.Task[None] | None = None

    def start(self) -> Replica:
        self.task = asyncio.get_running_loop().create_task(self.election.run(), name=self.identity)
        return self

    async def kill(self) -> None:
        """As SIGKILL: nothing is released; only a request that is on its way may still arrive."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.fence.close()
        self._note("killed")

    @property
    def is_running(self) -> bool:
        return self.task is not None and not self.task.done()

    # Listener

    def leading(self, lease: Lease) -> None:
        self._note("leading")

    def lost(self, reason: str) -> None:
        self._note(f"lost: {reason}")

    def observed(self, holder: str) -> None:
        self._note(f"observed {holder}")

    def conflicted(self) -> None:
        self._note("conflict")

    def _note(self, what: str) -> None:
        self.story.append((round(self.world.clock.now(), 3), what))

    def times(self, what: str) -> list[float]:
        return [at for at, text in self.story if text.startswith(what)]


class World:
    def __init__(self, seed: int = 0) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.random = random.Random(seed)
        self.store = Store(self.clock.wall, random.Random(seed))
        self.replicas: list[Replica] = []

    def replica(self, rate: float = 1.0, offset: float = 0.0) -> Replica:
        client = LocalClient(self.store, self.clock, Faults(random.Random(self.random.random())))
        identity = f"host_{len(self.replicas)}"
        made = Replica(self, identity, OwnClock(self.clock, rate, offset), client)
        self.replicas.append(made)
        return made.start()

    def allowed(self) -> list[str]:
        return [replica.identity for replica in self.replicas if replica.fence.allows()]

    def lease(self) -> Lease:
        found = self.store.get(LEASES, NAME, NAMESPACE).typed
        assert isinstance(found, Lease)
        return found

    def edit(self, **spec: Any) -> None:
        raw = decoding.to_builtins(self.lease())
        raw["spec"] = {**raw.get("spec", {}), **spec}
        self.store.replace(LEASES, raw)

    async def watch_rule(self) -> None:
        """At most one may write, at every moment."""
        while True:
            allowed = self.allowed()
            assert len(allowed) <= 1, f"at {self.clock.now()}: {allowed} may all bind"
            await self.clock.sleep(0.1)


def play(story, seed=0, until=3600.0):
    async def main():
        world = World(seed)
        rule = asyncio.create_task(world.watch_rule())
        try:
            result = await story(world)
            if rule.done():
                await rule
            return result
        finally:
            rule.cancel()

    return virtual.run(main(), seed=seed, timeout_virtual=until)


def test_the_first_of_three_leads_and_the_others_wait():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(0.5)
        world.replica()
        world.replica()
        await world.clock.sleep(300)
        assert world.allowed() == [first.identity]
        assert world.lease().spec.holder_identity == first.identity
        assert world.lease().spec.lease_transitions == 0

    play(story)


@pytest.mark.parametrize("seed", range(20))
def test_c7_takeover_after_a_kill_within_lease_and_two_retries(seed):
    """The end of the lease is counted from the candidate's last look, which is one pause old at most."""

    async def story(world):
        first = world.replica()
        await world.clock.sleep(0.5)
        second = world.replica()
        await world.clock.sleep(30 + seed * 0.37)
        await first.kill()
        killed = world.clock.now()
        while not second.fence.allows():
            await world.clock.sleep(0.01)
        assert world.clock.now() - killed <= 15 + 2 * 2 * 1.2
        assert world.lease().spec.lease_transitions == 1

    play(story, seed)


def test_a_release_is_taken_at_the_next_look():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(1)
        second = world.replica()
        await world.clock.sleep(20)
        first.task.cancel()
        assert await first.election.release()
        assert world.allowed() == []
        assert world.lease().spec.holder_identity == ""
        await world.clock.sleep(2 * 2.2 + 0.1)
        assert world.allowed() == [second.identity]

    play(story)


def test_c1_wall_clocks_that_jump_change_nothing():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(0.5)
        world.replica()
        for hours in (1, -1, 24 * 365):
            first.clock.jump = hours * 3600.0
            world.replicas[1].clock.jump = -hours * 3600.0
            await world.clock.sleep(60)
            assert world.allowed() == [first.identity]

    play(story)


def test_c3_a_leader_that_cannot_renew_stops_after_the_renew_deadline_and_before_the_lease_ends():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(20.5)
        renewed = world.clock.now() - 2.0
        first.client.faults.add(Fault(effect=faults.not_sent(), times=None))
        await world.clock.sleep(9.0)
        while not first.times("lost"):
            await world.clock.sleep(0.1)
        lost_at = first.times("lost")[0]
        assert renewed + 9.9 <= lost_at < renewed + 15
        assert not first.fence.allows()
        assert first.task.done()

    play(story)


def test_an_outage_shorter_than_the_renew_deadline_loses_nothing():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(20)
        fault = first.client.faults.add(Fault(effect=faults.server_error(503), times=None))
        await world.clock.sleep(7.5)
        first.client.faults.clear()
        await world.clock.sleep(60)
        assert fault.hits >= 3
        assert world.allowed() == [first.identity]

    play(story)


def test_c6_a_conflict_is_read_and_decided():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(5)
        raw = decoding.to_builtins(world.lease())
        raw["metadata"]["annotations"] = {"somebody": "was here"}
        world.store.replace(LEASES, raw)
        await world.clock.sleep(10)
        assert first.times("conflict"), "the renewal met another version"
        assert world.allowed() == [first.identity]

    play(story)


@pytest.mark.parametrize(
    "meddle",
    [
        pytest.param(lambda world: world.store.delete(LEASES, NAME, namespace=NAMESPACE), id="deleted"),
        pytest.param(lambda world: world.edit(holderIdentity=""), id="holder cleared"),
        pytest.param(lambda world: world.edit(holderIdentity=None), id="holder removed"),
        pytest.param(lambda world: world.edit(leaseDurationSeconds=1), id="duration shortened"),
        pytest.param(lambda world: world.edit(renewTime="1999-01-01T00:00:00.000000Z"), id="renewed in 1999"),
    ],
)
def test_c5_a_lease_that_another_client_edits_stays_with_its_leader(meddle):
    async def story(world):
        first = world.replica()
        await world.clock.sleep(0.5)
        world.replica()
        world.replica()
        await world.clock.sleep(20)
        meddle(world)
        for _ in range(30):
            await world.clock.sleep(1)
            assert world.allowed() == [first.identity]
        assert world.lease().spec.holder_identity == first.identity

    play(story)


def test_c5_a_lease_edited_to_another_name_is_given_up_at_once():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(0.5)
        second = world.replica()
        await world.clock.sleep(20)
        world.edit(holderIdentity=second.identity)
        await world.clock.sleep(2.5)
        assert first.times("lost")
        assert world.allowed() == []
        await world.clock.sleep(20)
        assert world.allowed() == [second.identity], "who is named takes it when the old time is over"

    play(story)


def test_of_two_that_start_without_a_lease_one_wins():
    async def story(world):
        first, second = world.replica(), world.replica()
        await world.clock.sleep(60)
        assert len(world.allowed()) == 1
        assert {bool(first.times("leading")), bool(second.times("leading"))} == {True, False}

    for seed in range(20):
        play(story, seed)


def test_a_lost_answer_to_the_acquiring_write_is_understood():
    async def story(world):
        first = world.replica()
        first.client.faults.add(Fault(verb="create", effect=faults.lost_answer(1.0)))
        await world.clock.sleep(10)
        assert world.allowed() == [first.identity]

    play(story)


def test_a_lease_whose_namespace_is_not_there_is_named_in_the_log(caplog):
    async def story(world):
        first = world.replica()
        missing = faults.not_found(f'namespaces "{NAMESPACE}" not found')
        first.client.faults.add(Fault(verb="create", effect=missing))
        await world.clock.sleep(5)
        assert not first.times("conflict")
        assert "Cannot reach the lease" in caplog.text

    play(story)


def test_c13_a_loop_that_hangs_is_not_renewed_and_another_takes_over():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(0.5)
        second = world.replica()
        await world.clock.sleep(20)
        first.beating = False
        await world.clock.sleep(12.1)
        assert world.allowed() == []
        await world.clock.sleep(10)
        assert world.allowed() == [second.identity]

    play(story)


def test_a_loop_that_comes_back_in_time_keeps_the_lease():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(20)
        first.beating = False
        await world.clock.sleep(6)
        first.beating = True
        await world.clock.sleep(60)
        assert world.allowed() == [first.identity]

    play(story)


def test_c2_a_process_that_was_stopped_for_a_minute_may_write_nothing_when_it_wakes():
    async def story(world):
        first = world.replica()
        await world.clock.sleep(0.5)
        second = world.replica()
        await world.clock.sleep(20)
        first.clock.frozen_until = world.clock.now() + 60
        sent = len(first.client.faults.calls)
        await world.clock.sleep(59)
        assert world.allowed() == [second.identity]
        await world.clock.sleep(5)
        assert first.times("lost")
        assert len(first.client.faults.calls) == sent, "it wrote nothing, not even to the lease"
        assert world.allowed() == [second.identity]

    play(story)


HAZARDS = (
    lambda r: faults.lost_answer(r.uniform(0, 8)),
    lambda r: faults.lost_request(r.uniform(0, 8)),
    lambda r: faults.delay(r.uniform(0, 30)),
    lambda r: faults.slow_answer(r.uniform(0, 30)),
    lambda r: faults.server_error(503),
    lambda r: faults.conflict(),
    lambda r: faults.not_sent(),
    lambda r: faults.too_many_requests(1),
)


def meddle(world, r):
    """What an operator may do to the lease by hand, at a bad moment."""
    running = [replica for replica in world.replicas if replica.is_running]
    if not running or any(replica.candidate.lease is None for replica in running):
        return  # a newcomer that has never seen the lease cannot know that it existed
    try:
        match r.randrange(4):
            case 0:
                world.store.delete(LEASES, NAME, namespace=NAMESPACE)
            case 1:
                world.edit(holderIdentity="")
            case 2:
                world.edit(leaseDurationSeconds=2)  # 1 and no holder would be a release
            case 3:
                world.edit(holderIdentity=r.choice(running).identity)
    except NotFound:
        pass


@pytest.mark.parametrize("seed", range(40))
def test_never_two_that_may_bind_at_once(seed):
    """Three replicas, clocks of different rates, lost and late messages, kills, restarts and meddling."""

    async def story(world):
        r = random.Random(seed)
        print("seed", seed)
        for _ in range(3):
            world.replica(rate=r.uniform(0.9, 1.1), offset=r.uniform(0, 1e6))
            await world.clock.sleep(r.uniform(0, 3))
        led = 0.0
        while world.clock.now() < 600:
            running = [replica for replica in world.replicas if replica.is_running]
            victim = r.choice(running) if running else None
            match r.randrange(7):
                case 0 | 1 | 2 if victim is not None:
                    victim.client.faults.add(Fault(effect=r.choice(HAZARDS)(r), times=r.randrange(1, 5)))
                case 3 if victim is not None:
                    await victim.kill()
                case 4 if victim is not None:
                    victim.beating = not victim.beating
                case 5:
                    meddle(world, r)
                case 6 if victim is not None:
                    victim.clock.frozen_until = world.clock.now() + r.uniform(0, 40)
            before = world.clock.now()
            await world.clock.sleep(r.uniform(0, 12))
            led += (world.clock.now() - before) if world.allowed() else 0.0
            while sum(replica.is_running for replica in world.replicas) < 3 and _known(world):
                world.replica(rate=r.uniform(0.9, 1.1), offset=r.uniform(0, 1e6))
        # Healed: one of them leads soon.
        for replica in world.replicas:
            replica.client.faults.clear()
            replica.beating = True
        await world.clock.sleep(90)
        if not any(replica.is_running for replica in world.replicas):
            world.replica()
            await world.clock.sleep(30)
        assert len(world.allowed()) == 1, "somebody leads again"
        assert led > 30, "the chaos left time to lead"

    play(story, seed, until=7200)


def _known(world):
    """A new candidate must see that another one leads: a candidate that finds no lease takes it."""
    try:
        return bool(world.lease())
    except NotFound:
        return not world.allowed()
