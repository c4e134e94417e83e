"""The pace of requests: rate limits with priorities, and which failed requests are sent again. No I/O.

`RateLimiter` is a token bucket on the clock: `burst` at once, `qps` per second after that. Waiting requests
are served by priority, in order of arrival within one; a tenth of the turns is left to lower priorities, so
that none starves. Events have their own bucket and leases none, so neither slows down binds.

`Patience` decides about repetitions of one request:

| failure                              | reads     | writes    | binds |
|--------------------------------------|-----------|-----------|-------|
| 429, 503 with Retry-After            | as asked  | as asked  | no    |
| another 5xx with Retry-After         | as asked  | no        | no    |
| surely not sent                      | soon, 3 x | soon, 3 x | no    |
| connection lost after sending        | soon, 3 x | no        | no    |

A write that may have happened is never repeated here: the caller has to read first. Binds are not repeated at
all: the scheduler gives the place back and tries the pod again, and its lease may not last as long as the
wait. Informers and the event recorder wait by a `Backoff`, so lists and watches are sent once.
"""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from random import Random

from moorage.api.errors import BadAnswer, NotSent, OutcomeUnknown, ServerError, ServiceUnavailable, TooManyRequests
from moorage.api.times import backoff
from moorage.framework.ports import Clock, Timer

SHARE = 10
"""Every so many turns one goes to those of lower priorities, however many of a better one wait."""
ASKED = 10
"""Times that a request is repeated because the server asked for it."""
SOON = 3
FIRST_PAUSE = 0.1
"""Seconds; doubled with each repetition, and lengthened by up to as much again."""


class RequestPriority(enum.IntEnum):
    """Lower goes first."""

    BIND = 0
    """Bindings, and the reads that settle their outcome: they hold capacity until they are through."""
    READ = 1
    """Lists and watches; there are few, and all decisions stand on them."""
    WRITE = 2
    """Evictions, volumes, claims: work that pods wait for."""
    STATUS = 3
    """Status patches, which people and autoscalers read."""
    EVENT = 4
    """Events, which have a separate bucket."""
    LEASE = 5
    """Never waits."""


class RateLimiter:
    """One bucket. `qps` of zero or less means no limit."""

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        self._clock = clock
        self._qps = qps
        self._burst = max(1, burst)
        self._tokens = float(self._burst)
        self._filled_at = clock.now()
        self._waiting: dict[RequestPriority, deque[_Waiter]] = {priority: deque() for priority in RequestPriority}
        self._timer: Timer | None = None
        self._turns = 0

    async def wait(self, priority: RequestPriority) -> float:
        """Wait until a request may be sent. Return the seconds waited."""
        if self._qps <= 0:
            return 0.0
        self._fill()
        if self._tokens >= 1 and not any(self._waiting.values()):
            self._tokens -= 1
            return 0.0
        waiter = _Waiter(self._clock.now())
        self._waiting[priority].append(waiter)
        self._arm()
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.done() and not waiter.admitted.cancelled():
                self._tokens += 1  # it was let through and does not go: the next one may
                self._release()
            raise
        return self._clock.now() - waiter.since

    def _fill(self) -> None:
        now = self._clock.now()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now

    def _arm(self) -> None:
        """A timer for the next token, while a request waits for it."""
        if self._timer is None:
            # A hair late rather than early: a token that is not quite there would cost another timer.
            missing = max(0.0, 1.0 - self._tokens) / self._qps + 1e-6
            self._timer = self._clock.call_later(missing, self._due)

    def _due(self) -> None:
        self._timer = None
        self._fill()
        self._release()

    def _release(self) -> None:
        while self._tokens >= 1 and (waiter := self._next()) is not None:
            self._tokens -= 1
            waiter.admitted.set_result(None)
        if any(self._waiting.values()):
            self._arm()

    def _next(self) -> _Waiter | None:
        for queue in self._waiting.values():
            while queue and queue[0].admitted.done():
                queue.popleft()  # cancelled while it waited
        queues = [queue for queue in self._waiting.values() if queue]
        if not queues:
            return None
        first, *others = queues
        self._turns += 1
        if others and self._turns % SHARE == 0:
            first = min(others, key=lambda queue: queue[0].since)
        return first.popleft()


class _Waiter:
    __slots__ = ("admitted", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class RateLimits:
    """The buckets of one client."""

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        self._main = RateLimiter(clock, qps, burst)
        self._events = RateLimiter(clock, qps, burst)

    async def wait(self, priority: RequestPriority) -> float:
        """Wait for a token of the bucket. Return the seconds waited."""
        if priority is RequestPriority.LEASE:
            return 0.0
        return await (self._events if priority is RequestPriority.EVENT else self._main).wait(priority)


class Repeat(enum.Enum):
    """What may be repeated."""

    NOTHING = "nothing"
    UNPROCESSED = "what was surely not processed"
    ANYTHING = "anything, since it changes nothing"


class Patience:
    """Decides about the repetitions of one request."""

    def __init__(self, repeat: Repeat, random: Random) -> None:
        self._repeat = repeat
        self._random = random
        self._asked = 0
        self._soon = 0

    def pause(self, error: Exception) -> float | None:
        """Return the seconds until the request is sent again, None if it is not repeated."""
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

    def reset(self) -> None:
        """Begin with the first delay again."""
        self._step = self._first

    def next(self, retry_after: float | None = None) -> float:
        """Return the seconds to wait now, at least the `retry_after` of the server (within a limit)."""
        now = self._clock.now()
        if now - self._resumed_at > self._reset_after:
            self._step = self._first
        asked = min(max(retry_after or 0.0, 0.0), MAX_RETRY_AFTER)
        delay = max(asked, self._step) + self._random.random() * self._step
        self._step = min(self._step * self._factor, self._cap)
        self._resumed_at = now + delay
        return delay
