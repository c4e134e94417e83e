"""How many requests may leave per second, and who goes first when they may not all.

A token bucket on the clock: `burst` at once, `qps` per second after that. Those that wait are served by
priority, in order of arrival within one; a tenth of the turns is left to the lower ones, so that nothing
starves. Events have a bucket of their own and leases none, so neither takes anything from binds.
"""

from __future__ import annotations

import asyncio
import enum
from collections import deque

from moorage.framework.ports import Clock, Timer

SHARE = 10
"""Every so many turns one goes to those of lower priorities, however many of a better one wait."""


class Priority(enum.IntEnum):
    """Lower goes first."""

    BIND = 0
    """Bindings, and the reads that settle their outcome: they hold capacity until they are through."""
    READ = 1
    """Lists and watches; there are few, and all decisions stand on them."""
    WRITE = 2
    """Evictions, volumes, claims: work that pods wait for."""
    STATUS = 3
    """What people and autoscalers read."""
    EVENT = 4
    """Notes; in a bucket of their own."""
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
        self._waiting: dict[Priority, deque[_Waiter]] = {priority: deque() for priority in Priority}
        self._timer: Timer | None = None
        self._turns = 0

    async def wait(self, priority: Priority) -> float:
        """Returns when a request may leave; the seconds that it took."""
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


class Limits:
    """The buckets of one client."""

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        self._main = RateLimiter(clock, qps, burst)
        self._events = RateLimiter(clock, qps, burst)

    async def wait(self, priority: Priority) -> float:
        """Seconds that the limit has cost."""
        if priority is Priority.LEASE:
            return 0.0
        return await (self._events if priority is Priority.EVENT else self._main).wait(priority)
