"""A steady rate for writes: whoever comes early waits for its turn."""

from __future__ import annotations

from mooring.framework.ports import Clock

_BURST_SECONDS = 0.2
"""So much of a second's share may come at once."""


class Pace:
    """At most `rate` turns a second, apart from short bursts."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self._clock = clock
        self._gap = 1.0 / rate
        self._next = clock.now()

    async def turn(self) -> None:
        now = self._clock.now()
        self._next = max(self._next, now - _BURST_SECONDS) + self._gap
        wait = self._next - now
        if wait > 0:
            await self._clock.sleep(wait)
