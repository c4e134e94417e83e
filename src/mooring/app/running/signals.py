"""SIGTERM and SIGINT in a process that runs plugins: the first asks for the end, the next one is the end.

The handlers are Python's own, not the event loop's: a hook that does not return keeps the loop from running
its handlers, while Python runs these between two instructions of the hook.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections.abc import Callable
from types import FrameType

from mooring.app.running.watchdog import Watchdog

SIGNALS = (signal.SIGTERM, signal.SIGINT)
OK, FAILED = 0, 1


class Signals:
    """Installed when made, on the main thread and a running loop, until `remove`."""

    def __init__(self, on_first: Callable[[signal.Signals], object], watchdog: Watchdog) -> None:
        self._on_first = on_first
        self._watchdog = watchdog
        self._loop = asyncio.get_running_loop()
        self.ending = False
        """Whether the end was asked for, by a signal or otherwise: the next one ends the process at once."""
        self._before = {number: signal.signal(number, self._received) for number in SIGNALS}

    def remove(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def _received(self, number: int, frame: FrameType | None) -> None:
        received = signal.Signals(number)
        if self.ending:
            _end_at_once(received)
        self.ending = True
        self._watchdog.stopping = True
        self._loop.call_soon_threadsafe(self._on_first, received)


def _end_at_once(received: signal.Signals) -> None:
    """Not through the log, which the interrupted code may just be writing to, and not if the reader of
    standard error is stuck as well."""
    try:
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"Second signal ({received.name}): ending at once\n".encode())
    finally:
        os._exit(FAILED)
