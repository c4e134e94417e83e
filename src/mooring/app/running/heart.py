"""The heartbeat of the scheduler's event loop: beaten by the loop, read by threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

INTERVAL = 0.05
"""Seconds between two beats. Far below every deadline that depends on it; costs a few microseconds each."""


class Heart:
    """A loop that is blocked does not beat, and whoever reads `age` from another thread knows how long."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last = now()
        self._timer: asyncio.TimerHandle | None = None
        self.thread_id = threading.get_ident()
        """The thread whose loop beats."""
        self.beats = 0

    def start(self) -> None:
        """On the loop that is to be watched."""
        self.thread_id = threading.get_ident()
        self._beat(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._last = self._now()
        self.beats += 1
        self._timer = loop.call_later(INTERVAL, self._beat, loop)

    def age(self) -> float:
        """Seconds since the last beat."""
        return self._now() - self._last
