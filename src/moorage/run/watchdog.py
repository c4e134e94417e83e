"""The heartbeat of the scheduler's event loop, and the thread that notices when it stops and says in whose
code.

The loop beats, threads read. When a beat is late, the stack of the loop's thread is logged, with the plugin
in it if there is one; and once more when the process was asked to stop and the loop still does not return.
Costs nothing while all is well: no hook is wrapped or timed for it.

The first SIGTERM or SIGINT asks for the end, the next one is the end. The handlers are Python's own, not the
event loop's, which a hook that does not return would keep from running."""

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
"""Seconds between two beats. Far below every deadline that depends on it; costs a few microseconds each."""

NOTABLE = 0.001
"""Seconds; beats that are less late than this are on time."""


class Heart:
    """A loop that is blocked does not beat, and whoever reads `age` from another thread knows how long."""

    def __init__(self, now: Callable[[], float], on_late: Callable[[float], None] | None = None) -> None:
        self._now = now
        self._on_late = on_late
        """Called with the seconds by which a beat came late, where that is worth a call."""
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


_log = logs.get(__name__)

HOOKS = frozenset(
    name
    for kind in vars(points).values()
    if isinstance(kind, type) and issubclass(kind, Plugin)
    for name in vars(kind)
    if not name.startswith("_")
)
"""The methods that the scheduler calls."""
SLOW = 0.1
"""Seconds after which a hook is worth a line in the log."""
STOPPING = "Stopping waits for the scheduling loop; a second signal ends the process at once"
STEP = 0.025
STEADY = 8
"""Looks in a row that find the loop in one hook, until that is what holds it up."""
FRAMES = 25


class Watchdog:
    """Watches one heart until stopped."""

    def __init__(self, heart: Heart, metrics: SchedulerMetrics | None = None, slow: float = SLOW) -> None:
        self._heart = heart
        self._metrics = metrics
        self._slow = slow
        self.stopping = False
        """Whether the process was asked to stop, and so waits for the loop."""
        self._stopped = threading.Event()
        self._silence = (-1, False)
        """The last beat before the loop was held up, and `stopping`; one that was reported."""
        self._named = self._seen = ("", "")
        """The plugin and hook that were reported for it, and those that were seen last."""
        self._times = 0
        """How often these were seen in a row."""
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
        """Report a silence once, and again where a hook turns out to hold it: what comes first may have been
        something else, without a beat in between."""
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
    """The plugin and its hook among the frames of a stack, the innermost one; empty without any. Where none
    goes by the name of a hook, the outermost method of a plugin is what the scheduler called: a queueing
    hint, a callback, a hook of the vector classes."""
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
    """Installed when made, on the main thread and a running loop, until `remove`."""

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
        """Whether the end was asked for, by a signal or otherwise: the next one ends the process at once."""
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
    """Not through the log, which the interrupted code may just be writing to, and not if the reader of
    standard error is stuck as well."""
    try:
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"Second signal ({received.name}): ending at once\n".encode())
    finally:
        os._exit(FAILED)
