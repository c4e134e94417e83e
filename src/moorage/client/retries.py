"""Which failed requests are sent again, and after how long. No I/O.

`Patience` is for the client itself:

| failure                              | reads     | writes    | binds |
|--------------------------------------|-----------|-----------|-------|
| 429, 503 with Retry-After            | as asked  | as asked  | no    |
| another 5xx with Retry-After         | as asked  | no        | no    |
| surely not sent                      | soon, 3 x | soon, 3 x | no    |
| connection lost after sending        | soon, 3 x | no        | no    |

A write that may have happened is never repeated here: the caller has to read first. Binds are not repeated
at all: the scheduler gives the place back and tries the pod anew, and its lease may not last as long as the
wait. Informers and the event recorder wait by a `Backoff` of their own, so lists and watches are sent once.
"""

from __future__ import annotations

import enum
from random import Random

from moorage.api.errors import (
    BadAnswer,
    NotSent,
    OutcomeUnknown,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
)
from moorage.api.times import backoff
from moorage.framework.ports import Clock

ASKED = 10
"""Times that a request is repeated because the server asked for it."""
SOON = 3
FIRST_PAUSE = 0.1
"""Seconds; doubled with each repetition, and lengthened by up to as much again."""


class Repeat(enum.Enum):
    """What may be repeated."""

    NOTHING = "nothing"
    UNPROCESSED = "what was surely not processed"
    ANYTHING = "anything, since it changes nothing"


class Patience:
    """The repetitions of one request."""

    def __init__(self, repeat: Repeat, random: Random) -> None:
        self._repeat = repeat
        self._random = random
        self._asked = 0
        self._soon = 0

    def pause(self, error: Exception) -> float | None:
        """Seconds until the request is sent again; None: the error is the answer."""
        if self._repeat is Repeat.NOTHING:
            return None
        if self._is_asked_for(error):
            self._asked += 1
            wished: float = error.retry_after  # type: ignore[attr-defined]
            return wished + self._random.random() * FIRST_PAUSE if self._asked <= ASKED else None
        if self._is_soon(error):
            self._soon += 1
            pause = backoff(self._soon, FIRST_PAUSE, MAX_RETRY_AFTER)
            return pause * (1 + self._random.random()) if self._soon <= SOON else None
        return None

    def _is_asked_for(self, error: Exception) -> bool:
        if getattr(error, "retry_after", None) is None:
            return False
        if isinstance(error, TooManyRequests | ServiceUnavailable):
            return True
        return self._repeat is Repeat.ANYTHING and isinstance(error, ServerError)

    def _is_soon(self, error: Exception) -> bool:
        if isinstance(error, NotSent):
            return True
        lost = isinstance(error, OutcomeUnknown) and not isinstance(error, BadAnswer)
        return lost and self._repeat is Repeat.ANYTHING


MAX_RETRY_AFTER = 60.0
"""Seconds; a server that asks for more is asked again after this long."""


class Backoff:
    """Delays of 0.8, 1.6 … 30 s, each lengthened by up to as much again, as client-go's reflector takes them.

    The jitter keeps a thousand clients from returning to a restarted server in the same second.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        first: float = 0.8,
        cap: float = 30.0,
        factor: float = 2.0,
        reset_after: float = 120.0,
    ) -> None:
        self._clock = clock
        self._random = random
        self._first = first
        self._cap = cap
        self._factor = factor
        self._reset_after = reset_after
        self._step = first
        self._resumed_at = clock.now()

    def next(self, retry_after: float | None = None) -> float:
        """Seconds to wait now. `retry_after` is what the server asks for: a lower bound, within reason."""
        now = self._clock.now()
        if now - self._resumed_at > self._reset_after:
            self._step = self._first
        asked = min(max(retry_after or 0.0, 0.0), MAX_RETRY_AFTER)
        delay = max(asked, self._step) + self._random.random() * self._step
        self._step = min(self._step * self._factor, self._cap)
        self._resumed_at = now + delay
        return delay
