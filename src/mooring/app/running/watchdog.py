"""Notices a scheduling loop that stands still, and says in whose code.

A thread looks at the heartbeat. When it is late, the stack of the loop's thread is logged, with the plugin in
it if there is one. Costs nothing while all is well: no hook is wrapped or timed for it.
"""

from __future__ import annotations

import sys
import threading
import traceback
from types import FrameType

from mooring.app.running.heart import INTERVAL, Heart
from mooring.framework import points
from mooring.framework.points import Plugin
from mooring.telemetry import logs
from mooring.telemetry.metrics import SchedulerMetrics

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
STEP = 0.025
FRAMES = 25


class Watchdog:
    """Watches one heart until stopped."""

    def __init__(self, heart: Heart, metrics: SchedulerMetrics, slow: float = SLOW) -> None:
        self._heart = heart
        self._metrics = metrics
        self._slow = slow
        self._stopped = threading.Event()
        self._reported = -1
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _watch(self) -> None:
        while not self._stopped.wait(STEP):
            beat = self._heart.beats
            if self._heart.age() > self._slow + INTERVAL and beat != self._reported:
                self._reported = beat
                self._report()

    def _report(self) -> None:
        frame = sys._current_frames().get(self._heart.thread_id)
        if frame is None or self._heart.age() <= self._slow:
            return
        plugin, hook = hook_of(frame)
        self._metrics.slow_hooks.inc(plugin or "none", hook or "none")
        _log.warning(
            "The scheduling loop is held up",
            seconds=round(self._heart.age(), 3),
            plugin=plugin or "none",
            hook=hook or "none",
            stack="".join(traceback.format_stack(frame, FRAMES)),
        )


def hook_of(frame: FrameType | None) -> tuple[str, str]:
    """The plugin and its hook among the frames of a stack, the innermost one; empty without any."""
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, Plugin) and frame.f_code.co_name in HOOKS:
            return owner.name, frame.f_code.co_name
        frame = frame.f_back
    return "", ""
