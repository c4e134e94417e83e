"""A time limit for calls on a virtual loop: a hook that does not return ends the run, with its name in the error."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType

from moorage.run.watchdog import hook_of
from moorage.sim.loop import VirtualLoop

HOOK_LIMIT = 30.0
"""Seconds of real time that one call may take; hooks take microseconds."""
LOOKS = 10
"""How many times the limit is checked during its time."""
DEBUGGERS = ("bdb", "pdb", "IPython", "pydevd", "_pydevd_bundle")


class NeverReturns(KeyboardInterrupt):
    """Raised inside the hook. It is a KeyboardInterrupt, because only that ends an event loop and is not
    treated as a failure of the plugin, after which the pod would be tried again."""


class HookLimit:
    """A context for a run of the loop that raises NeverReturns if one callback takes longer than the limit.

    It uses SIGALRM, so it works only in the main thread, and not while another timer runs (pytest-timeout)."""

    def __init__(self, loop: VirtualLoop, seconds: float | None) -> None:
        self._loop = loop
        self._seconds = seconds or 0.0
        self._armed = False

    def __enter__(self) -> None:
        on_main = threading.current_thread() is threading.main_thread()
        if not self._seconds or not on_main or signal.getitimer(signal.ITIMER_REAL)[0]:
            return
        self._seen, self._since = self._loop.progress, time.monotonic()
        self._before = signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, self._seconds / LOOKS, self._seconds / LOOKS)
        self._armed = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._armed:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before or signal.SIG_DFL)

    def _look(self, number: int, frame: FrameType | None) -> None:
        progress, now = self._loop.progress, time.monotonic()
        if progress != self._seen or _is_debugged(frame):
            self._seen, self._since = progress, now
        elif now - self._since >= self._seconds:
            plugin, hook = hook_of(frame)
            who = f"plugin {plugin!r}: {hook}" if plugin else "a call of the scheduler"
            raise NeverReturns(f"{who} has not returned after {self._seconds:g} s of real time")


def _is_debugged(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in DEBUGGERS:
            return True
        frame = frame.f_back
    return False
