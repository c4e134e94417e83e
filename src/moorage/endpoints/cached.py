"""What is worked out from all pods, nodes or records of a scheduler, and kept for a while.

Threads of one process take time from each other. A result is kept for two hundred times as long as it took:
however many ask, that takes half a percent of the time, and more only where it takes longer than 50 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from moorage.endpoints.loop_bridge import LoopDoor

SHARE = 200
LONGEST = 10.0
"""Seconds."""

T = TypeVar("T")
L = TypeVar("L")


class Kept(Generic[L, T]):
    """`look` runs on the scheduler's loop and must be short; `work` makes the result of what it saw, here."""

    def __init__(
        self, door: LoopDoor, now: Callable[[], float], look: Callable[[], L], work: Callable[[L], T]
    ) -> None:
        self._door = door
        self._now = now
        self._look = look
        self._work = work
        self._lock = asyncio.Lock()
        self._result: T | None = None
        self._until = float("-inf")

    async def get(self) -> T:
        """One caller works, the others wait for it."""
        async with self._lock:
            if self._result is None or self._now() >= self._until:
                looked = await self._door.ask(self._look)
                began = self._now()
                self._result = self._work(looked)
                ended = self._now()
                self._until = ended + min(SHARE * (ended - began), LONGEST)
            return self._result
