"""How long to wait after a failure: growing, jittered, and forgotten after a spell of health."""

from random import Random

from mooring.framework.ports import Clock

MAX_RETRY_AFTER = 60.0
"""Seconds; a server that asks for more is asked again after this long."""


class Backoff:
    """Delays of 0.8, 1.6 … 30 s, each lengthened by up to as much again, as client-go's reflector takes them.

    The jitter keeps a thousand clients from returning to a restarted server in the same second.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        first: float = 0.8,
        cap: float = 30.0,
        factor: float = 2.0,
        reset_after: float = 120.0,
    ) -> None:
        self._clock = clock
        self._random = random
        self._first = first
        self._cap = cap
        self._factor = factor
        self._reset_after = reset_after
        self._step = first
        self._resumed_at = clock.now()

    def next(self, retry_after: float | None = None) -> float:
        """Seconds to wait now. `retry_after` is the server's wish: a lower bound, within reason."""
        now = self._clock.now()
        if now - self._resumed_at > self._reset_after:
            self._step = self._first
        asked = min(max(retry_after or 0.0, 0.0), MAX_RETRY_AFTER)
        delay = max(asked, self._step) + self._random.random() * self._step
        self._step = min(self._step * self._factor, self._cap)
        self._resumed_at = now + delay
        return delay
