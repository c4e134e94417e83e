"""The heartbeat of the scheduling loop, the watchdog thread that reports a blocked loop, and signal handlers.

If a heartbeat is late, the watchdog logs the stack of the loop's thread, with the plugin that blocks it; and
once more if the process is asked to stop and the loop still does not return. This costs nothing while the
loop is not blocked: no hook is wrapped or timed. On a busy machine a heartbeat is also late because the
process does not get the processor. The watchdog leaves that time out: no plugin causes it.

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
import time
import traceback
from collections.abc import Callable, Mapping
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
        self.native_id = threading.get_native_id()
        """Its number in the system."""
        self.beats = 0

    def start(self) -> None:
        """Start on the loop to be watched."""
        self.thread_id, self.native_id = threading.get_ident(), threading.get_native_id()
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


ThreadTimes = tuple[float, float]
"""Seconds for which a thread has used a processor, and for which it was ready but waited for one."""


def thread_times(heart: Heart) -> ThreadTimes:
    """Return the times of the thread that beats. Systems without /proc do not tell how long it waited."""
    try:
        with open(f"/proc/self/task/{heart.native_id}/schedstat", "rb") as file:
            used, waited, _ = file.read().split()
        return int(used) / 1e9, int(waited) / 1e9
    except (OSError, ValueError):
        return _cpu_seconds(heart.thread_id), 0.0


def _cpu_seconds(thread_id: int) -> float:
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread_id))
    except (AttributeError, OSError):
        return 0.0


class LostTime:
    """How long the loop's thread has not run since the last beat because the process did not get the processor.

    Either the thread waited for a processor, or the watchdog's own thread was late while the loop's thread used
    none: then the whole process stood still, as in a virtual machine that its host has paused."""

    def __init__(self, heart: Heart, now: Callable[[], float], times: Callable[[Heart], ThreadTimes]) -> None:
        self._heart = heart
        self._now = now
        self._times = times
        self._beats = -1
        self._start: ThreadTimes = (0.0, 0.0)
        self._late = 0.0
        """Seconds by which the watchdog was late since that beat."""
        self._last = now()
        self.seconds = 0.0

    def update(self) -> None:
        """Take the times of now. The watchdog calls it once per step."""
        now, times = self._now(), self._times(self._heart)
        late, self._last = max(now - self._last - STEP, 0.0), now
        if self._heart.beats != self._beats:
            self._beats, self._start, self._late = self._heart.beats, times, 0.0
            self.seconds = 0.0
            return
        self._late += late
        used, waited = times[0] - self._start[0], times[1] - self._start[1]
        self.seconds = max(waited, self._late - used, 0.0)


class Watchdog:
    """Watches a heartbeat until stopped."""

    def __init__(
        self,
        heart: Heart,
        metrics: SchedulerMetrics | None = None,
        slow: float = SLOW,
        times: Callable[[Heart], ThreadTimes] = thread_times,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._heart = heart
        self._metrics = metrics
        self._slow = slow
        self._lost = LostTime(heart, now, times)
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
            self.step()

    def step(self) -> None:
        """Report the loop if it is blocked now."""
        self._lost.update()
        if self._held() > self._slow + INTERVAL:
            self._look()

    def _held(self) -> float:
        """Return the seconds since the last beat in which the loop could have run."""
        return self._heart.age() - self._lost.seconds

    def _look(self) -> None:
        """Report a blockage once, and again if a hook turns out to cause it: the first cause may have been
        another one, without a beat in between."""
        frame = sys._current_frames().get(self._heart.thread_id)
        silence = self._heart.beats, self.stopping
        if frame is None or self._held() <= self._slow:
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
        others: Mapping[signal.Signals, Callable[[], object]] | None = None,
    ) -> None:
        """`others` are handlers that are called on the loop and do not end the process."""
        self._on_first = on_first
        self._others = dict(others or {})
        self._watchdog = watchdog
        self._loop = asyncio.get_running_loop()
        self.ending = False
        """Whether the process was asked to stop, by a signal or otherwise; the next signal ends it at once."""
        self._before = {number: signal.signal(number, self._received) for number in SIGNALS}
        self._before |= {number: signal.signal(number, self._received_other) for number in self._others}

    def remove(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def _received_other(self, number: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._others[signal.Signals(number)])

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
