"""Keeps one repeated complaint from filling the log: at most a few lines a period, the rest is counted."""

from collections.abc import Callable


class Throttle:
    """Admits `burst` calls in each period of `seconds`; `now` is a monotonic reading."""

    __slots__ = ("_admitted", "_burst", "_now", "_period", "_since", "_suppressed")

    def __init__(self, now: Callable[[], float], seconds: float = 60.0, burst: int = 5) -> None:
        self._now = now
        self._period = seconds
        self._burst = burst
        self._since = now()
        self._admitted = 0
        self._suppressed = 0

    def admits(self) -> bool:
        now = self._now()
        if now - self._since >= self._period:
            self._since, self._admitted = now, 0
        if self._admitted < self._burst:
            self._admitted += 1
            return True
        self._suppressed += 1
        return False

    def take_suppressed(self) -> int:
        """How many were refused since this was asked last; belongs into the next line that is written."""
        taken, self._suppressed = self._suppressed, 0
        return taken
