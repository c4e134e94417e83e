"""The work queue: once each, never to two workers, later after failures, spaced."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from moorage.embedded.controllers.work_queue import WorkQueue
from moorage.sim.loop import VirtualClock, run

Body = Callable[[WorkQueue[str], VirtualClock], Awaitable[None]]


def on_queue(body: Body, **options: float) -> None:
    async def main() -> None:
        clock = VirtualClock()
        queue: WorkQueue[str] = WorkQueue(clock, random.Random(1), **options)
        try:
            await body(queue, clock)
        finally:
            queue.close()

    run(main(), timeout_virtual=10_000)


def test_a_key_is_given_once_however_often_it_was_added():
    async def body(queue: WorkQueue[str], clock: VirtualClock) -> None:
        for key in ("a", "b", "a"):
            queue.add(key)
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        queue.done("a")
        queue.done("b")
        assert queue.idle

    on_queue(body)


def test_what_is_added_while_it_is_worked_on_comes_again_afterwards():
    async def body(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add("a")
        key = await queue.get()
        queue.add("a")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 5.0)
        queue.done(key)
        assert await queue.get() == "a"

    on_queue(body)


def test_the_earliest_of_several_times_counts():
    async def body(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add_after("a", 10.0)
        queue.add_after("a", 3.0)
        queue.add_after("a", 7.0)
        assert await queue.get() == "a"
        assert clock.now() == 3.0
        queue.done("a")
        await asyncio.sleep(20.0)
        assert queue.idle

    on_queue(body)


def test_add_goes_before_a_time_that_was_set():
    async def body(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add_after("a", 10.0)
        queue.add("a")
        assert await queue.get() == "a"
        assert clock.now() == 0.0
        assert queue.waiting() == {}

    on_queue(body)


def test_pauses_after_failures_double_up_to_a_limit_and_are_forgotten():
    async def body(queue: WorkQueue[str], clock: VirtualClock) -> None:
        pauses = []
        for _ in range(6):
            before = clock.now()
            queue.add_failed("a")
            queue.done(await queue.get())
            pauses.append(clock.now() - before)
        assert all(low <= pause <= low * 1.1 for low, pause in zip((1, 2, 4, 8, 8, 8), pauses, strict=True))
        assert queue.failures("a") == 6
        queue.forget("a")
        assert queue.add_failed("a") <= 1.1

    on_queue(body, first_delay=1.0, max_delay=8.0)


def test_spacing_makes_one_look_of_a_burst():
    async def body(queue: WorkQueue[str], clock: VirtualClock) -> None:
        looks = []
        for _ in range(40):
            queue.add("a")
            if not queue.idle:
                queue.done(await queue.get())
                looks.append(clock.now())
            await asyncio.sleep(0.05)
        assert looks == pytest.approx([0.0, 0.5, 1.0, 1.5], abs=0.11)

    on_queue(body, spacing=0.5)


def test_two_workers_never_hold_one_key():
    async def body(queue: WorkQueue[str], clock: VirtualClock) -> None:
        held: set[str] = set()
        rng = random.Random(7)

        async def work() -> None:
            while True:
                key = await queue.get()
                assert key not in held
                held.add(key)
                await asyncio.sleep(rng.random())
                held.discard(key)
                queue.done(key)

        workers = [asyncio.create_task(work()) for _ in range(4)]
        for _ in range(500):
            queue.add(rng.choice("abcdef"))
            await asyncio.sleep(rng.random() * 0.2)
        await asyncio.sleep(10.0)
        assert queue.idle
        for worker in workers:
            worker.cancel()
        results = await asyncio.gather(*workers, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)

    on_queue(body)
