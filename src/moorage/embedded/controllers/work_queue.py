"""The queue of objects that a controller reconciles next, and groups of tasks that end together.

    add ──▶ ready ──get──▶ being worked on ──done──▶ out
             ▲                  │ added meanwhile
             │                  ▼
             └── due ◀── later (add_after, failed, spacing)

A key is in the queue once, and never given to two workers at the same time. After each failure it waits
longer, until `forget`. With `spacing`, a key is not handed out again within that many seconds: a burst of
changes then costs one reconcile, not one each. It behaves as client-go's util/workqueue.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine, Hashable
from itertools import count
from random import Random
from typing import Any, Generic, TypeVar

from moorage.api.times import backoff
from moorage.framework.ports import Clock, Timer

K = TypeVar("K", bound=Hashable)

FIRST_DELAY = 0.005
"""Seconds after the first failure; doubles with each further one."""
MAX_DELAY = 60.0
_JITTER = 0.1


class WorkQueue(Generic[K]):
    """A queue of keys in order of arrival."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        spacing: float = 0.0,
        first_delay: float = FIRST_DELAY,
        max_delay: float = MAX_DELAY,
    ) -> None:
        self._clock = clock
        self._random = random
        self._spacing = spacing
        self._first = first_delay
        self._longest = max_delay
        self._ready: dict[K, None] = {}
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._later: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = count()
        self._failures: dict[K, int] = {}
        self._rest: dict[K, float] = {}
        """Key → when it may be given out again, in the order of their working."""
        self._timer: Timer | None = None
        self._wanted = asyncio.Event()

    def __len__(self) -> int:
        """Keys that are ready or worked on; those that wait for their time are not counted."""
        return len(self._ready) + len(self._working)

    @property
    def idle(self) -> bool:
        return not self._ready and not self._working

    def waiting(self) -> dict[K, float]:
        """Key → when it becomes ready, on the clock's scale."""
        return dict(self._later)

    def add(self, key: K) -> None:
        """Queue the key."""
        if key in self._working:
            self._again.add(key)
            return
        wait = self._spaced(key)
        if wait > 0:
            self.add_after(key, wait)
        elif key not in self._ready:
            self._later.pop(key, None)
            self._ready[key] = None
            self._wanted.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Queue the key after a number of seconds. The earliest of several times counts."""
        if seconds <= 0 and self._spaced(key) <= 0:
            self.add(key)
            return
        due = self._clock.now() + max(seconds, self._spaced(key))
        if key in self._ready or self._later.get(key, due + 1.0) <= due:
            return
        self._later[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))
        if self._timer is None or self._heap[0][2] == key:
            self._set_timer()

    def add_failed(self, key: K) -> float:
        """Queue the key after a pause that grows with each failure. Return the pause."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = backoff(failures, self._first, self._longest) * (1.0 + _JITTER * self._random.random())
        self.add_after(key, delay)
        return delay

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Reset the failures of a key after a success."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Wait for the next key. The caller must call `done` afterwards."""
        while not self._ready:
            self._wanted.clear()
            await self._wanted.wait()
        key = next(iter(self._ready))
        del self._ready[key]
        self._working.add(key)
        return key

    def done(self, key: K, rest: float = 0.0) -> None:
        """Finish the work on a key. `rest` is for keys that need a longer pause than `spacing`."""
        self._working.discard(key)
        rest = max(rest, self._spacing)
        if rest:
            self._rest.pop(key, None)  # to the end: the oldest come first
            self._rest[key] = self._clock.now() + rest
            self._forget_old()
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Stop the timer. No more keys become ready."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _spaced(self, key: K) -> float:
        """Return the seconds until the key may be handed out again."""
        until = self._rest.get(key)
        return 0.0 if until is None else until - self._clock.now()

    def _forget_old(self) -> None:
        """Drop the leading times that have passed."""
        now = self._clock.now()
        while self._rest:
            key = next(iter(self._rest))
            if self._rest[key] > now:
                break
            del self._rest[key]

    def _set_timer(self) -> None:
        self.close()
        if self._heap:
            self._timer = self._clock.call_later(max(0.0, self._heap[0][0] - self._clock.now()), self._due)

    def _due(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._later.get(key) == due:
                del self._later[key]
                self._rest.pop(key, None)  # it has waited; rounding must not make it wait again
                self.add(key)
        self._set_timer()


class Together:
    """Runs a set of background tasks until one fails or all are cancelled, and raises the failure."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, **works: Coroutine[Any, Any, None]) -> None:
        """Run until cancelled, which raises, or stopped, which returns."""
        self._tasks = [asyncio.create_task(work, name=f"{self._name} {name}") for name, work in works.items()]
        try:
            await asyncio.gather(*self._tasks)
        except asyncio.CancelledError:
            if self._tasks:
                raise
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop all tasks and wait for them."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
