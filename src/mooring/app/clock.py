"""Real time, through the running event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from mooring.framework.ports import Timer


class SystemClock:
    """Implements `framework.ports.Clock`."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[..., object], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call, *args)
