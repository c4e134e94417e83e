"""Slow attempts: a pod whose attempts hold up the scheduler is tried behind all others, ever less often.

An attempt is slow if it keeps the scheduling loop from other pods for half a second, because of what the pod asks for
or because a plugin blocks. The attempt itself ends when its time is up (`runtime.stopwatch`). Each slow attempt is
reported by an event that names pod and plugin, and counted by plugin. `queue.slowness` decides when the pod is tried
again.
"""

from __future__ import annotations

from moorage.framework.ports import EventRecorder
from moorage.queue.slowness import MIN_SLOW_ATTEMPTS, wait_seconds
from moorage.runtime.attempt import Attempt
from moorage.runtime.stopwatch import AttemptStopwatch
from moorage.telemetry import logs

_log = logs.get(__name__)

SLOW_SECONDS = 0.5
"""An attempt that takes longer is slow. Pods of large clusters with scalar plugins stay far below it."""
NONE = "none"
"""The plugin and point of an attempt in which no single call stands out."""
SHARE = 0.2
"""The share of an attempt from which on a call stands out."""


class SlowAttempts:
    """Judges how long attempts took."""

    def __init__(self, recorder: EventRecorder, stopwatch: AttemptStopwatch) -> None:
        self._recorder = recorder
        self._stopwatch = stopwatch

    def judge(self, attempt: Attempt, seconds: float, *, placed: bool) -> None:
        """Note whether an attempt was slow, in the pod's entry of the queue, an event, a metric and the log."""
        info, watch = attempt.info, self._stopwatch
        measured = watch.started == attempt.started
        if measured:
            seconds -= watch.waited
        if seconds < SLOW_SECONDS:
            info.slow_attempts = 0
            return
        info.slow_attempts += 1
        info.slow_seconds = seconds
        plugin, point, worst = NONE, NONE, 0.0
        if measured and watch.worst >= SHARE * seconds:
            plugin, point, worst = watch.plugin, watch.point, watch.worst
        if (meter := attempt.profile.meter) is not None:
            meter.metrics.slow_attempts.inc(plugin, point)
        _log.warning(
            "An attempt was slow",
            pod=info.key,
            seconds=round(seconds, 3),
            plugin=plugin,
            point=point,
            attempts=info.slow_attempts,
        )
        where = f', of which {point} of plugin "{plugin}" took {worst:.1f}s' if worst else ""
        self._recorder.event(
            info.pod,
            type="Warning",
            reason="SlowScheduling",
            action="Scheduling",
            note=f"Attempt {info.attempts} to schedule the pod took {seconds:.1f}s{where}." + _next(attempt, placed),
            controller=attempt.profile.name,
        )


def _next(attempt: Attempt, placed: bool) -> str:
    if placed:
        return ""
    info = attempt.info
    behind = " and behind all other pods" if info.slow_attempts >= MIN_SLOW_ATTEMPTS else ""
    return f" The pod is tried again in {wait_seconds(info):.0f}s at the earliest{behind}."
