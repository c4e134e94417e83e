"""The event recorder: notes for users, written to the API server without ever holding up the scheduler.

`event` only counts and appends; one task sends. What an event looks like is in `event_series`.
"""

import asyncio
from collections import defaultdict, deque
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from moorage.api.core import EventSeries
from moorage.api.errors import (
    AlreadyExists,
    Forbidden,
    NotFound,
    ServerError,
    ServiceUnavailable,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from moorage.api.plain_text import fit
from moorage.api.resources import EVENTS
from moorage.api.times import backoff
from moorage.client.event_series import NOTE_BYTES, REASON_BYTES, Series, SeriesKey, SpamFilter, make_event, reference
from moorage.client.pacing import MAX_RETRY_AFTER
from moorage.framework.ports import ApiClient, Clock, Timer
from moorage.telemetry import logs
from moorage.telemetry.logs import Throttle

log = logs.get(__name__)

SERIES_SECONDS = 360.0
"""A series closes when nothing was added to it for so long; the next occurrence is a new event."""
REFRESH_SECONDS = 60.0
"""How often the counts of open series are sent again."""
SERIES_LIMIT = 10_000
"""Open series kept in memory; beyond it the one that was quiet for longest closes early."""
TRIES = 12
"""For one event, as client-go has it: two or three minutes. Only failures that may pass are tried again."""
FIRST_PAUSE, MAX_PAUSE = 0.5, 10.0
"""Seconds between two tries, doubled each time and lengthened by up to as much again."""
DEFAULT_CONTROLLER = "default-scheduler"

_AWAY = (TransportError, TooManyRequests, ServiceUnavailable)
"""No event would fare better, so all wait behind the one that was tried. Where only the answer was lost the
event is there already: its name is fixed, so the next try finds that out."""
_PASSING = (ServerError, Unauthorized, Forbidden)
"""May pass, or be the fault of this event alone, so the others go on. A server that has just started refuses
everyone until it knows its roles."""


class ApiEventRecorder:
    """Implements the framework's EventRecorder over an ApiClient. `run` must be running for events to leave.

    An event equal to an open one (same object, reason, action, type, note and controller) adds to its series:
    the second occurrence is sent at once, further ones with the next refresh.
    """

    def __init__(
        self, client: ApiClient, clock: Clock, random: Random, *, instance: str, queue_size: int = 1000
    ) -> None:
        self.dropped = 0
        """Events that were not written: queue full, or refused by the server for good."""
        self._client = client
        self._clock = clock
        self._random = random
        self._instance = instance
        self._queue_size = queue_size
        self._queue: deque[Series] = deque()
        self._open: dict[SeriesKey, Series] = {}
        """Ordered by the last occurrence, oldest first."""
        self._aside: dict[Series, Timer] = {}
        """Those that are queued again when their pause is over."""
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        """Set while `flush` waits: pauses are short."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._stamp = 0
        self._spam = SpamFilter(clock.now)
        self._complaints: defaultdict[str, Throttle] = defaultdict(lambda: Throttle(clock.now, burst=1))
        """Message → whether it is time to write it again."""

    def event(
        self,
        regarding: Any,
        *,
        type: str,  # noqa: A002 (the port's word)
        reason: str,
        action: str,
        note: str,
        related: Any = None,
        controller: str = "",
    ) -> None:
        controller = controller or DEFAULT_CONTROLLER
        try:
            reason, action, note = fit(reason, REASON_BYTES), fit(action, REASON_BYTES), fit(note, NOTE_BYTES)
            key = (regarding.uid or regarding.key, reason, action, type, note, controller)
            series = self._open.pop(key, None)
            if series is not None and self._clock.now() - series.seen_at < SERIES_SECONDS:
                series.again(self._clock.now(), self._clock.wall())
            elif not self._spam.admits(key[0]):
                self._lose("An object causes too many events")
                return
            else:
                series = self._begin(key, regarding, related)
            self._open[key] = series
            self._keep_bounded()
            # The first two go out at once; while one waits in the queue, further ones are only counted.
            if series.sent < 2:
                self._enqueue(series)
        except Exception as error:
            self._lose("Event could not be made", err=error)

    async def run(self) -> None:
        """Sends until cancelled."""
        refresh = asyncio.create_task(self._refresh_series(), name="event series")
        try:
            while True:
                await self._wake.wait()
                await self._send_queued()
        finally:
            refresh.cancel()

    async def flush(self, seconds: float = 5.0) -> bool:
        """Waits at most `seconds` until all that is known was sent or given up; says whether it was."""
        self._queue_counts()
        self._hurry.set()
        for series in list(self._aside):
            self._again(series)
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        finally:
            self._hurry.clear()
        return True

    # Counting

    def _begin(self, key: SeriesKey, regarding: Any, related: Any) -> Series:
        _, reason, action, type_, note, controller = key
        wall = self._clock.wall()
        # Two events of one instant still need two names.
        self._stamp = max(self._stamp + 1, int(wall * 1_000_000_000))
        event = make_event(
            reference(regarding),
            reference(related) if related is not None else None,
            type=type_,
            reason=reason,
            action=action,
            note=note,
            controller=controller,
            instance=self._instance,
            wall=wall,
            stamp=self._stamp,
        )
        return Series(key, event, self._clock.now(), wall)

    def _keep_bounded(self) -> None:
        if len(self._open) > SERIES_LIMIT:
            del self._open[next(iter(self._open))]

    def _enqueue(self, series: Series) -> None:
        if series.queued or series in self._aside:
            return
        if len(self._queue) + len(self._aside) >= self._queue_size:
            self._forget(series)
            self._lose("Event queue is full")
            return
        series.queued = True
        self._queue.append(series)
        self._wake.set()
        self._idle.clear()

    def _forget(self, series: Series) -> None:
        if self._open.get(series.key) is series:
            del self._open[series.key]

    def _lose(self, message: str, **values: object) -> None:
        """One line a minute for each message: a full queue may lose thousands of events in a second."""
        self.dropped += 1
        complaints = self._complaints[message]
        if complaints.admits():
            log.warning(message, dropped=self.dropped, suppressed=complaints.take_suppressed(), **values)

    def _queue_counts(self) -> None:
        """Queues every open series of which the server does not know the present count."""
        for series in list(self._open.values()):
            if series.sent and series.count > series.sent:
                self._enqueue(series)

    async def _refresh_series(self) -> None:
        while True:
            await self._clock.sleep(REFRESH_SECONDS)
            self._queue_counts()
            self._close_quiet_series()

    def _close_quiet_series(self) -> None:
        while self._open:
            quietest = next(iter(self._open.values()))
            if self._clock.now() - quietest.seen_at < SERIES_SECONDS:
                return
            self._forget(quietest)

    # Sending

    async def _send_queued(self) -> None:
        while self._queue:
            series = self._queue.popleft()
            series.queued = False
            try:
                await self._write(series)
                series.tries = 0
            except Exception as error:
                await self._after(series, error)
        self._wake.clear()
        if not self._aside:
            self._idle.set()

    async def _after(self, series: Series, error: Exception) -> None:
        """Gives a series up, or sees to it that it is tried again."""
        series.tries += 1
        away = isinstance(error, _AWAY)
        passing = away or (isinstance(error, _PASSING) and not _is_namespace_going(error))
        if series.tries >= TRIES or not passing:
            self._give_up(series, error)
            return
        step = backoff(series.tries, FIRST_PAUSE, FIRST_PAUSE if self._hurry.is_set() else MAX_PAUSE)
        asked = min(getattr(error, "retry_after", None) or 0.0, MAX_RETRY_AFTER)
        pause = max(asked, step) + self._random.random() * step
        if away:
            series.queued = True
            self._queue.appendleft(series)
            await self._pause(pause)
        else:
            self._aside[series] = self._clock.call_later(pause, self._again, series)

    async def _pause(self, seconds: float) -> None:
        if self._hurry.is_set():
            await self._clock.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    def _again(self, series: Series) -> None:
        self._aside.pop(series).cancel()
        self._enqueue(series)

    async def _write(self, series: Series) -> None:
        count, counted = series.count, series.counted()
        if not series.sent:
            await self._create(series, counted)
        elif series.sent < count:
            await self._patch(series, counted)
        series.sent = count

    async def _create(self, series: Series, counted: EventSeries) -> None:
        event = series.event
        if series.count > 1:
            event = msgspec.structs.replace(event, series=counted)
        try:
            await self._client.create(EVENTS, event)
        except AlreadyExists:
            log.info(5, "Event was written by an earlier attempt", event=event)
            if series.count > 1:  # perhaps before it was repeated
                await self._count(series, counted)

    async def _count(self, series: Series, counted: EventSeries) -> None:
        meta = series.event.metadata
        patch = {"series": msgspec.to_builtins(counted)}
        await self._client.patch(EVENTS, meta.name, patch, namespace=meta.namespace)

    async def _patch(self, series: Series, counted: EventSeries) -> None:
        try:
            await self._count(series, counted)
        except NotFound:
            # Servers keep events for an hour; a series may last longer.
            await self._create(series, counted)

    def _give_up(self, series: Series, error: Exception) -> None:
        self._forget(series)
        if _is_namespace_going(error):
            self.dropped += 1
            log.info(5, "Event not written; its namespace is terminating", event=series.event)
        else:
            self._lose("Event not written", err=error)


def _is_namespace_going(error: Exception) -> bool:
    """Ends of namespaces are ordinary: pods die in them, and their events go with them."""
    if isinstance(error, NotFound):
        return True
    if not isinstance(error, Forbidden):
        return False
    causes = error.status.details.causes if error.status.details else ()
    return any(cause.reason == "NamespaceTerminating" for cause in causes) or (
        "being terminated" in error.status.message
    )
