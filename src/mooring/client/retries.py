"""Which failed requests the client sends again by itself, and after how long. No I/O.

| failure                              | reads     | writes    | binds |
|--------------------------------------|-----------|-----------|-------|
| 429, 503 with Retry-After            | as asked  | as asked  | no    |
| another 5xx with Retry-After         | as asked  | no        | no    |
| surely not sent                      | soon, 3 x | soon, 3 x | no    |
| connection lost after sending        | soon, 3 x | no        | no    |

A write that may have happened is never repeated here: the caller has to read first. Binds are not repeated
at all: the scheduler gives the place back and tries the pod anew, and its lease may not last as long as the
wait. Informers have a patience of their own (`reflector`), so lists and watches are sent once.
"""

from __future__ import annotations

import enum
from random import Random

from mooring.api.errors import (
    BadAnswer,
    NotSent,
    OutcomeUnknown,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
)

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
            pause = FIRST_PAUSE * 2 ** (self._soon - 1)
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
