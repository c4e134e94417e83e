"""The client's own rate limit, under virtual time."""

import asyncio
from itertools import pairwise

import pytest

from moorage.client.pacing import SHARE, RateLimiter, RateLimits, RequestPriority
from moorage.sim import loop
from moorage.sim.loop import VirtualClock

NOW = asyncio.get_running_loop


def test_burst_first_then_so_many_a_second():
    async def main():
        limiter = RateLimiter(VirtualClock(), qps=10, burst=5)
        times = []
        for _ in range(25):
            await limiter.wait(RequestPriority.BIND)
            times.append(NOW().time())
        return times

    times = loop.run(main())
    assert times[4] == 0
    assert times[24] == pytest.approx(2.0, abs=0.01)
    assert all(later - earlier > 0.09 for earlier, later in pairwise(times[4:]))


def test_the_bucket_fills_up_but_not_beyond_the_burst():
    async def main():
        limiter = RateLimiter(VirtualClock(), qps=10, burst=5)
        await asyncio.sleep(3600)
        return [await limiter.wait(RequestPriority.BIND) for _ in range(6)]

    assert loop.run(main()) == [0, 0, 0, 0, 0, pytest.approx(0.1, abs=0.01)]


def test_no_limit_is_no_limit():
    async def main():
        limiter = RateLimiter(VirtualClock(), qps=0, burst=1)
        return sum([await limiter.wait(RequestPriority.BIND) for _ in range(1000)])

    assert loop.run(main()) == 0


async def arrivals(limits, wanted):
    """Who is let through, in order, when all come at once."""
    order = []

    async def one(name, priority):
        await limits.wait(priority)
        order.append(name)

    await asyncio.gather(*(one(name, priority) for name, priority in wanted))
    return order


def test_b21_binds_pass_before_status_patches_whoever_came_first():
    async def main():
        limits = RateLimits(VirtualClock(), qps=50, burst=1)
        wanted = [(f"status-{i}", RequestPriority.STATUS) for i in range(20)]
        wanted += [(f"bind-{i}", RequestPriority.BIND) for i in range(20)]
        return await arrivals(limits, wanted)

    order = loop.run(main())
    assert order[0] == "status-0", "the one token that was there"
    first = order[1:23]
    assert [name for name in first if name.startswith("bind")] == [f"bind-{i}" for i in range(20)]
    assert [name for name in order if name.startswith("status")] == [f"status-{i}" for i in range(20)]


def test_b21_a_thousand_binds_neither_hold_up_leases_nor_events_nor_each_other():
    async def main():
        limits = RateLimits(VirtualClock(), qps=50, burst=100)
        ends: dict[str, float] = {}

        async def many(name, count, priority):
            await asyncio.gather(*(limits.wait(priority) for _ in range(count)))
            ends[name] = NOW().time()

        await asyncio.gather(
            many("binds", 1000, RequestPriority.BIND),
            many("events", 150, RequestPriority.EVENT),
            many("leases", 8, RequestPriority.LEASE),
        )
        return ends

    ends = loop.run(main())
    assert ends["leases"] == 0
    assert ends["events"] == pytest.approx(1.0, abs=0.1)
    assert ends["binds"] == pytest.approx(18.0, abs=0.1)


def test_no_request_waits_for_ever_behind_binds():
    async def main():
        limits = RateLimits(VirtualClock(), qps=10, burst=1)
        order = await arrivals(
            limits, [(i, RequestPriority.BIND) for i in range(300)] + [("status", RequestPriority.STATUS)]
        )
        return order.index("status")

    assert loop.run(main()) <= SHARE


def test_those_who_give_up_leave_their_turn_to_others():
    async def main():
        limiter = RateLimiter(VirtualClock(), qps=1, burst=1)
        await limiter.wait(RequestPriority.BIND)
        waiting = [asyncio.create_task(limiter.wait(RequestPriority.BIND)) for _ in range(3)]
        await asyncio.sleep(0.5)
        waiting[0].cancel()
        waiting[1].cancel()
        await waiting[2]
        return NOW().time()

    assert loop.run(main()) == pytest.approx(1.0, abs=0.01)


def test_a_turn_that_was_given_and_not_used_goes_to_the_next():
    async def main():
        limiter = RateLimiter(VirtualClock(), qps=1, burst=1)
        await limiter.wait(RequestPriority.BIND)
        first, second = (asyncio.create_task(limiter.wait(RequestPriority.BIND)) for _ in range(2))
        await asyncio.sleep(0)
        # In the very moment in which the first is let through, it is cancelled.
        NOW().call_later(1.000001, first.cancel)
        await second
        return NOW().time()

    assert loop.run(main()) == pytest.approx(1.0, abs=0.01)
