"""One open watch over HTTP, and the pace at which all watches are notified.

A watch sends the store's events as lines of JSON:

    events taken ──▶ lines ──▶ send() ── waits while the client does not read
         │
         ├─ time is over, or the server stops ──▶ the body ends
         ├─ fell behind the history ────────────▶ ERROR line with 410, the body ends
         └─ the client is gone, or does not read for too long ──▶ given up

Watches are notified at once, unless that would take the processor from those who write. Notifying one watch
costs about the same however much there is to send: a turn of its task, a TLS record, a system call. With many
watches a write is followed by hundreds of these, and the next write waits for them.

    quiet ──news: notified at once──▶ notifying ──end of the turn──┬─ few were notified ──▶ quiet
                                                                   └─ many ──▶ holding, longer for more
    holding ──news: kept──▶ holding ──time is over──▶ all that wait are notified together; none waits: quiet

So notifying takes about a quarter of a processor at most, and news for a hundred watches come up to 20 ms
late. Nothing is skipped: a watch that is notified takes everything there is, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from moorage.api.errors import ApiError
from moorage.embedded.apiserver.messages import send_patiently
from moorage.embedded.apiserver.presentation import Presenter
from moorage.framework.ports import BOOKMARK, Clock, Timer
from moorage.store.reading import StoreEvent, Subscription

Wake: TypeAlias = Callable[[], object]

FEW = 10
"""So many are notified without a pause: it would be hardly longer than the millisecond that timers take."""
SECONDS_EACH = 0.000_2
"""Four times what notifying one costs."""
Receive: TypeAlias = Callable[[], Any]
Send: TypeAlias = Callable[[Any], Any]
_BATCH = 200
"""Events in one go: enough to spread the cost of sending, few enough not to fill a slow client's buffer."""
BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK = 2.0
"""Seconds before the end of a watch. Who asks for a short one learns soon that nothing has changed."""
_HEADERS = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-cache, private"),
    (b"x-content-type-options", b"nosniff"),
]


class Pacer:
    """Shared by all watches of a server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notified = 0
        """In this turn of the loop."""
        self._holding = False
        self._waiting: dict[Wake, None] = {}

    def news(self, wake: Wake) -> None:
        """Calls it, now or soon; once, however often there were news meanwhile."""
        if self._holding:
            self._waiting[wake] = None
            return
        if not self._notified:
            self._clock.call_later(0, self._end_turn)
        self._notified += 1
        wake()

    def _end_turn(self) -> None:
        notified, self._notified = self._notified, 0
        self._hold_after(notified)

    def _hold_after(self, notified: int) -> None:
        self._holding = notified > FEW
        if self._holding:
            self._clock.call_later(notified * SECONDS_EACH, self._notify_waiting)

    def _notify_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for wake in waiting:
            wake()
        self._hold_after(len(waiting))


class WatchStream:
    """Runs once. `abort` breaks the connection of a client that does not read; None where that cannot be."""

    def __init__(
        self,
        subscription: Subscription,
        presenter: Presenter,
        clock: Clock,
        pacer: Pacer,
        *,
        bookmarks: bool,
        timeout: float,
        abort: Callable[[], object] | None = None,
    ) -> None:
        self._subscription = subscription
        self._presenter = presenter
        self._clock = clock
        self._bookmarks = bookmarks
        self._abort = abort
        self._ending = False
        """Nothing more is waited for; what there is, is still sent."""
        self._client_gone = False
        """The client is no longer there."""
        self._woken = False
        """There may be something to take since we took the last time."""
        self._waiter: asyncio.Future[None] | None = None
        self._timers: list[Timer] = [clock.call_later(timeout, self._time_out)]
        subscription.wake = partial(pacer.news, self._wake)
        if bookmarks:
            last = timeout - LAST_BOOKMARK
            self._arm_bookmark(last if 0 < last < BOOKMARK_SECONDS else BOOKMARK_SECONDS)

    async def run(self, receive: Receive, send: Send) -> None:
        listener = asyncio.create_task(self._listen(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await send({"type": "http.response.body", "body": b"", "more_body": True})  # flushes the headers
            while not self._client_gone:
                lines, more = self._next_lines()
                if lines:
                    await self._send(send, lines)
                if not more:
                    break
                if not self._woken and not self._ending:
                    await self._changed()
            if not self._client_gone:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.discard()
            listener.cancel()

    def end(self) -> None:
        """Ends the watch after the events that are there already."""
        self._ending = True
        self._wake()

    def _next_lines(self) -> tuple[bytes, bool]:
        """The next bytes to send, and whether more may follow."""
        try:
            events = self._subscription.take(_BATCH)
        except ApiError as error:
            return self._presenter.error(error), False
        self._woken = len(events) == _BATCH
        lines = b"".join([self._presenter.event(event) for event in events if self._wanted(event)])
        return lines, bool(events) or not self._ending

    def _wanted(self, event: StoreEvent) -> bool:
        return self._bookmarks or event.type != BOOKMARK

    async def _send(self, send: Send, lines: bytes) -> None:
        message = {"type": "http.response.body", "body": lines, "more_body": True}
        await send_patiently(send, message, self._clock, self._abort)

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._client_gone = True
        self._wake()

    def _time_out(self) -> None:
        if self._bookmarks:
            self._subscription.bookmark()
        self.end()

    def _arm_bookmark(self, seconds: float = BOOKMARK_SECONDS) -> None:
        def bookmark() -> None:
            self._subscription.bookmark()
            self._arm_bookmark()

        self._timers[1:] = [self._clock.call_later(seconds, bookmark)]

    async def _changed(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def discard(self) -> None:
        """Lets go of the store; for a stream that is over or was never run."""
        for timer in self._timers:
            timer.cancel()
        self._subscription.close()
