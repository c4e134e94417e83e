"""The heartbeat of the scheduling loop, the watchdog thread that reports a blocked loop, and signal handlers.

If a heartbeat is late, the watchdog logs the stack of the loop's thread, with the plugin that blocks it; and
once more if the process is asked to stop and the loop still does not return. This costs nothing while the
loop is not blocked: no hook is wrapped or timed.

The first SIGTERM or SIGINT asks the process to stop; the second one ends it at once. The handlers are
Python's own, because a blocked event loop would not run its handlers.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType

from moorage.framework import points
from moorage.framework.points import Plugin
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

INTERVAL = 0.05
"""Seconds between two beats: far below every deadline that depends on them; each costs a few microseconds."""

NOTABLE = 0.001
"""Seconds; a beat with a smaller delay counts as on time."""


class Heart:
    """The heartbeat of a loop. Other threads read its `age`, which grows while the loop is blocked."""

    def __init__(self, now: Callable[[], float], on_late: Callable[[float], None] | None = None) -> None:
        self._now = now
        self._on_late = on_late
        """Called with the delay of a late beat, in seconds."""
        self._last = now()
        self._timer: asyncio.TimerHandle | None = None
        self.thread_id = threading.get_ident()
        """The thread whose loop beats."""
        self.beats = 0

    def start(self) -> None:
        """Start on the loop to be watched."""
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


_log = logs.get(__name__)

HOOKS = frozenset(
    name
    for kind in vars(points).values()
    if isinstance(kind, type) and issubclass(kind, Plugin)
    for name in vars(kind)
    if not name.startswith("_")
)
"""The methods of plugins that the scheduler calls."""
SLOW = 0.1
"""Seconds after which a hook is logged."""
STOPPING = "Stopping waits for the scheduling loop; a second signal ends the process at once"
STEP = 0.025
STEADY = 8
"""How many times in a row the loop must be seen in a hook before that hook is blamed."""
FRAMES = 25


class Watchdog:
    """Watches a heartbeat until stopped."""

    def __init__(self, heart: Heart, metrics: SchedulerMetrics | None = None, slow: float = SLOW) -> None:
        self._heart = heart
        self._metrics = metrics
        self._slow = slow
        self.stopping = False
        """Whether the process was asked to stop, and waits for the loop."""
        self._stopped = threading.Event()
        self._silence = (-1, False)
        """The last beat before the reported blockage, and `stopping` at that time."""
        self._named = self._seen = ("", "")
        """The plugin and hook that were reported, and those that were seen last."""
        self._times = 0
        """How many times in a row they were seen."""
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _watch(self) -> None:
        while not self._stopped.wait(STEP):
            if self._heart.age() > self._slow + INTERVAL:
                self._look()

    def _look(self) -> None:
        """Report a blockage once, and again if a hook turns out to cause it: the first cause may have been
        another one, without a beat in between."""
        frame = sys._current_frames().get(self._heart.thread_id)
        silence = self._heart.beats, self.stopping
        if frame is None or self._heart.age() <= self._slow:
            return
        found = hook_of(frame)
        self._times = self._times + 1 if found == self._seen else 1
        self._seen = found
        if silence != self._silence or (found[0] and found != self._named and self._times >= STEADY):
            self._silence, self._named = silence, found
            self._report(frame, *found)

    def _report(self, frame: FrameType, plugin: str, hook: str) -> None:
        if self._metrics is not None and not self.stopping:
            self._metrics.slow_hooks.inc(plugin or "none", hook or "none")
        _log.warning(
            STOPPING if self.stopping else "The scheduling loop is held up",
            seconds=round(self._heart.age(), 3),
            plugin=plugin or "none",
            hook=hook or "none",
            stack="".join(traceback.format_stack(frame, FRAMES)),
        )


def hook_of(frame: FrameType | None) -> tuple[str, str]:
    """Return the innermost plugin and hook in a stack; empty if there is none. If no method has the name of a hook, the
    outermost method of a plugin is what the scheduler called: a queueing hint, a callback, or a vector hook."""
    called = "", ""
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, Plugin):
            called = owner.name, frame.f_code.co_name
            if called[1] in HOOKS:
                break
        frame = frame.f_back
    return called


SIGNALS = (signal.SIGTERM, signal.SIGINT)
OK, FAILED = 0, 1


class Signals:
    """Signal handlers, from creation on the main thread and a running loop until `remove`."""

    def __init__(
        self,
        on_first: Callable[[signal.Signals], object],
        watchdog: Watchdog,
        on_hangup: Callable[[], object] | None = None,
    ) -> None:
        self._on_first = on_first
        self._on_hangup = on_hangup
        self._watchdog = watchdog
        self._loop = asyncio.get_running_loop()
        self.ending = False
        """Whether the process was asked to stop, by a signal or otherwise; the next signal ends it at once."""
        self._before = {number: signal.signal(number, self._received) for number in SIGNALS}
        if on_hangup is not None:
            self._before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._hung_up)

    def remove(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def _hung_up(self, number: int, frame: FrameType | None) -> None:
        if self._on_hangup is not None:
            self._loop.call_soon_threadsafe(self._on_hangup)

    def _received(self, number: int, frame: FrameType | None) -> None:
        received = signal.Signals(number)
        if self.ending:
            _end_at_once(received)
        self.ending = True
        self._watchdog.stopping = True
        self._loop.call_soon_threadsafe(self._on_first, received)


def _end_at_once(received: signal.Signals) -> None:
    """Write without the log, which the interrupted code may be writing to, and only if standard error does
    not block."""
    try:
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"Second signal ({received.name}): exiting at once\n".encode())
    finally:
        os._exit(FAILED)
