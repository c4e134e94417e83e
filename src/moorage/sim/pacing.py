"""Virtual time at the pace of the real one, so that a run can be watched: `--speed`."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Keeps virtual time from passing more than `speed` times as fast as the real one. A run that needs
    longer for an instant catches up afterwards."""

    def __init__(
        self,
        speed: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._speed = speed
        self._now = now
        self._sleep = sleep
        self._began: float | None = None

    def __call__(self, virtual: float) -> None:
        """Waits until the virtual second is due; the first call begins to count."""
        now = self._now()
        if self._began is None:
            self._began = now
        if (ahead := self._began + virtual / self._speed - now) > 0:
            self._sleep(ahead)
