"""The heartbeat of the scheduler's event loop: beaten by the loop, read by threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

INTERVAL = 0.05
"""Seconds between two beats. Far below every deadline that depends on it; costs a few microseconds each."""

NOTABLE = 0.001
"""Seconds; beats that are less late than this are on time."""


class Heart:
    """A loop that is blocked does not beat, and whoever reads `age` from another thread knows how long."""

    def __init__(self, now: Callable[[], float], on_late: Callable[[float], None] | None = None) -> None:
        self._now = now
        self._on_late = on_late
        """Told by how many seconds a beat came late, where that is worth telling."""
        self._last = now()
        self._timer: asyncio.TimerHandle | None = None
        self.thread_id = threading.get_ident()
        """The thread whose loop beats."""
        self.beats = 0

    def start(self) -> None:
        """On the loop that is to be watched."""
        self.thread_id = threading.get_ident()
        self._last = self._now()
        self._beat(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self._now()
        late = now - self._last - INTERVAL
        if self._on_late is not None and late > NOTABLE:
            self._on_late(late)
        self._last = now
        self.beats += 1
        self._timer = loop.call_later(INTERVAL, self._beat, loop)

    def age(self) -> float:
        """Seconds since the last beat."""
        return self._now() - self._last
