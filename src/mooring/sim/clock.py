"""The Clock port over an event loop's own time; under a VirtualLoop that time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mooring.framework.ports import Timer

EPOCH = 1_767_225_600.0
"""2026-01-01T00:00:00Z, where virtual wall clocks start unless a test says otherwise."""


class VirtualClock:
    """`now` is the loop's time, `wall` the same counted from `epoch` (Unix seconds).

    Without a loop it takes the running one. `epoch` may be changed at any time: that is a wall clock jump.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, epoch: float = EPOCH) -> None:
        self.loop = loop or asyncio.get_running_loop()
        self.epoch = epoch

    def now(self) -> float:
        return self.loop.time()

    def wall(self) -> float:
        return self.epoch + self.loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        return self.loop.call_later(seconds, call, *args)
