"""Real time, from the running event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from moorage.framework.ports import Timer

_COUNTS_SUSPENSION = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux: a monotonic clock that keeps counting while the machine sleeps."""


class SystemClock:
    """Implements `framework.ports.Clock` with the time of the system."""

    # Not methods: these are called several times per pod, and a wrapper would cost more than the call.
    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call, *args)


class LeaseClock(SystemClock):
    """A clock for leases: it keeps counting while the machine is suspended."""

    def now(self) -> float:
        if _COUNTS_SUSPENSION is None:
            return time.monotonic()
        return time.clock_gettime(_COUNTS_SUSPENSION)
