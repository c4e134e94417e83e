"""The way from the endpoints' thread to the scheduler's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

ANSWER_SECONDS = 1.0
"""How long the endpoints wait for the scheduler's loop before they do without."""

T = TypeVar("T")


class NotNow(Exception):
    """The scheduler's loop did not answer in time."""


class LoopDoor:
    """Asks the scheduler's loop from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float = ANSWER_SECONDS) -> None:
        self._loop = loop
        self._seconds = seconds

    async def ask(self, question: Callable[[], T]) -> T:
        """The answer, reckoned on that loop; NotNow when it does not come in time."""

        async def answer() -> T:
            return question()

        asked = asyncio.run_coroutine_threadsafe(answer(), self._loop)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(asked)
        except TimeoutError:
            asked.cancel()
            raise NotNow("the scheduling loop did not answer in time; try again") from None

    async def run(self, work: Callable[[], Awaitable[T]], seconds: float) -> T:
        """The result of work on that loop, which goes on when it takes longer: NotNow."""

        async def answer() -> T:
            return await work()

        begun = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer(), self._loop))
        try:
            return await asyncio.wait_for(asyncio.shield(begun), seconds)
        except TimeoutError:
            raise NotNow(f"it is not finished after {seconds:.0f} s; ask later what became of it") from None
