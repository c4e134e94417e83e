"""Calls from the endpoints' thread into the scheduler's event loop, and a cache of their expensive results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

ANSWER_SECONDS = 1.0
"""How long the endpoints wait for the scheduler's loop."""
CACHE_FACTOR = 200
"""A result is kept for 200 times as long as it took. However many clients ask, computing it takes half a
percent of the time, and more only if it takes longer than 50 ms."""
MAX_CACHE_SECONDS = 10.0

T = TypeVar("T")
L = TypeVar("L")


class NotNow(Exception):
    """The scheduler's loop did not answer in time."""


class LoopBridge:
    """Runs functions on the scheduler's loop from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float = ANSWER_SECONDS) -> None:
        self._loop = loop
        self._seconds = seconds

    async def call(self, function: Callable[[], T]) -> T:
        """Return the result of a short function. Raises NotNow if it does not come in time."""

        async def answer() -> T:
            return function()

        asked = asyncio.run_coroutine_threadsafe(answer(), self._loop)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(asked)
        except TimeoutError:
            asked.cancel()
            raise NotNow("the scheduling loop did not answer in time; try again") from None

    async def run(self, work: Callable[[], Awaitable[T]], seconds: float) -> T:
        """Return the result of longer work. Raises NotNow after `seconds`; the work continues."""

        async def answer() -> T:
            return await work()

        begun = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer(), self._loop))
        try:
            return await asyncio.wait_for(asyncio.shield(begun), seconds)
        except TimeoutError:
            raise NotNow(f"not finished after {seconds:.0f} s; ask again later for the result") from None


class Cached(Generic[L, T]):
    """A result computed from all pods, nodes or records, and kept for a while.

    `look` runs on the scheduler's loop and must be short; `work` computes the result on the endpoints' thread.
    """

    def __init__(
        self, bridge: LoopBridge, now: Callable[[], float], look: Callable[[], L], work: Callable[[L], T]
    ) -> None:
        self._bridge = bridge
        self._now = now
        self._look = look
        self._work = work
        self._lock = asyncio.Lock()
        self._result: T | None = None
        self._until = float("-inf")

    async def get(self) -> T:
        """Return the result. If it has expired, one caller computes it and the others wait."""
        async with self._lock:
            if self._result is None or self._now() >= self._until:
                looked = await self._bridge.call(self._look)
                began = self._now()
                self._result = self._work(looked)
                ended = self._now()
                self._until = ended + min(CACHE_FACTOR * (ended - began), MAX_CACHE_SECONDS)
            return self._result
