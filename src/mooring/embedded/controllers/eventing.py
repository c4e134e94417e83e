"""Events of the stand-ins, held to the measure that client-go's spam filter sets.

Per object and reporter a burst of 25, then one in five minutes; over all objects a rate, so that twenty
thousand pods starting at once do not write sixty thousand events. What is held back is counted, not kept.
"""

from __future__ import annotations

from typing import Any

from mooring.framework.ports import Clock, EventRecorder

BURST = 25
REFILL_SECONDS = 300.0
OBJECTS = 4096
"""Objects whose measure is remembered."""


class Bucket:
    """Tokens that come back with time."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, burst: float, rate: float, now: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class Events:
    """Reports for one group of stand-ins."""

    def __init__(
        self, recorder: EventRecorder, clock: Clock, *, burst: float = 500.0, rate: float = 50.0
    ) -> None:
        self.held_back = 0
        self._recorder = recorder
        self._clock = clock
        self._all = Bucket(burst, rate, clock.now())
        self._objects: dict[tuple[str, str], Bucket] = {}

    def normal(self, controller: str, regarding: Any, reason: str, note: str, action: str = "") -> None:
        self._event("Normal", controller, regarding, reason, note, action)

    def warning(self, controller: str, regarding: Any, reason: str, note: str, action: str = "") -> None:
        self._event("Warning", controller, regarding, reason, note, action)

    def _event(self, kind: str, controller: str, regarding: Any, reason: str, note: str, action: str) -> None:
        now = self._clock.now()
        if not self._bucket(controller, regarding.uid, now).take(now) or not self._all.take(now):
            self.held_back += 1
            return
        self._recorder.event(
            regarding, type=kind, reason=reason, action=action or reason, note=note, controller=controller
        )

    def _bucket(self, controller: str, uid: str, now: float) -> Bucket:
        key = (controller, uid)
        bucket = self._objects.pop(key, None) or Bucket(BURST, 1.0 / REFILL_SECONDS, now)
        self._objects[key] = bucket
        if len(self._objects) > OBJECTS:
            del self._objects[next(iter(self._objects))]
        return bucket
