"""The host of a scheduler: a task that ends, in whatever way, ends the process and fails its health check."""

from __future__ import annotations

import asyncio

import pytest

from moorage.run.endpoints import tasks_check
from moorage.run.host import SchedulerHost
from moorage.run.watchdog import FAILED


async def fails() -> None:
    raise SystemError("boom")


async def returns() -> None:
    await asyncio.sleep(0)


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (fails, "comparer: boom"),
        (returns, "the task comparer returned"),
        (cancels_itself, "the task comparer was cancelled"),
    ],
)
def test_a_task_that_ends_ends_the_process(work, reason):
    async def scenario() -> None:
        host = SchedulerHost()
        check = tasks_check(lambda: host.failure)
        host.run(work(), "comparer")
        assert check.run() == ""
        assert await host.until_ended() == FAILED
        assert check.run() == reason

    asyncio.run(scenario())


def test_a_task_that_is_meant_to_return_ends_nothing():
    async def scenario() -> None:
        host = SchedulerHost()
        host.run(returns(), "start", returns=True)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not host.stopping
        assert host.failure == ""

    asyncio.run(scenario())
