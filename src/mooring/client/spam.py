"""How many different events one object may cause: a token bucket per object, as client-go's recorder has.

A pod whose message changes with every attempt would otherwise fill the API server by itself. Repetitions of
one event are a series and need no token.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

BURST = 25
SECONDS_PER_TOKEN = 300.0
REMEMBERED = 4096
"""Objects; the one that was quiet for longest is forgotten first, and has a full bucket again."""


class SpamFilter:
    """Buckets by object."""

    def __init__(
        self, now: Callable[[], float], burst: int = BURST, seconds: float = SECONDS_PER_TOKEN
    ) -> None:
        self._now = now
        self._burst = burst
        self._seconds = seconds
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Object → (tokens, when that was)."""

    def admits(self, uid: str) -> bool:
        """Whether the object may cause one more event; takes a token if so."""
        now = self._now()
        tokens, since = self._buckets.pop(uid, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - since) / self._seconds)
        admitted = tokens >= 1
        self._buckets[uid] = (tokens - 1 if admitted else tokens, now)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return admitted
