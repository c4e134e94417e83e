"""How long a watch may be silent before it is begun anew."""

from __future__ import annotations

import asyncio

IDLE = 120.0
"""Seconds of silence after which a watch is begun anew, on a server that has sent bookmarks: those come every
minute, so the other end is probably gone. TCP keepalive notices that sooner, but ends at the next proxy."""


class Hearing:
    """When a watch is given up: at its end in any case, and after a silence once `heard` was called."""

    def __init__(self, deadline: asyncio.Timeout) -> None:
        self._deadline = deadline
        self._end = deadline.when() or 0.0
        self._heard = 0.0

    def heard(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._heard >= 1.0:  # not for every event: a timer costs more than an event
            self._heard = now
            self._deadline.reschedule(min(self._end, now + IDLE))

    def was_silent(self) -> bool:
        """Of a watch that has been given up: before its end."""
        return (self._deadline.when() or 0.0) < self._end
