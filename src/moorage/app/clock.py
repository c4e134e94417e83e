"""Real time, through the running event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from moorage.framework.ports import Timer

_COUNTS_SUSPENSION = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux: a monotonic clock that runs on while the machine sleeps."""


class SystemClock:
    """Implements `framework.ports.Clock`."""

    # The functions themselves: several times per pod, a method around them costs more than they do.
    now = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call, *args)


class LeaseClock(SystemClock):
    """For leases: a machine that was suspended must not believe that no time has passed."""

    def now(self) -> float:
        if _COUNTS_SUSPENSION is None:
            return time.monotonic()
        return time.clock_gettime(_COUNTS_SUSPENSION)
