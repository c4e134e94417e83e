"""One watch of the in-process client: waits for the store's events and hands them out typed."""

from __future__ import annotations

import asyncio

from mooring.api.resources import Resource
from mooring.embedded.faults import Effect
from mooring.embedded.watching import Event, Subscription
from mooring.framework.ports import Clock, WatchEvent

_BATCH = 100  # events between two turns of the loop


class Stream:
    """An open watch. It ends when its time is over, when it is cut, or when the store ends it with Gone.

    `timeout` seconds after its beginning it sends a last bookmark and closes.
    """

    def __init__(
        self,
        resource: Resource,
        subscription: Subscription,
        clock: Clock,
        effect: Effect,
        timeout: float | None,
    ) -> None:
        self._resource = resource
        self._subscription = subscription
        self._clock = clock
        self._effect = effect
        self._left = effect.cut_after
        self._cut = False
        self._error: Exception | None = None
        self._timed_out = False
        self._timer = clock.call_later(timeout, self._time_out) if timeout is not None else None
        self._waiter: asyncio.Future[None] | None = None
        subscription.wake = self._wake

    async def batch(self) -> list[Event]:
        """The next events, however long they take; none when the stream has ended."""
        waited = False
        while not self.ended():
            events = self._subscription.take(_BATCH)
            if events:
                if self._effect.event_delay or not waited:  # a burst must not lock others out of the loop
                    await self._clock.sleep(self._effect.event_delay)
                return events
            if self._timed_out:
                break
            await self._changed()
            waited = True
        return []

    def hand_out(self, event: Event) -> WatchEvent:
        """The event as the client sees it; counts towards a cut."""
        if self._left is not None:
            self._left -= 1
        obj = event.stored.read_as(self._resource) if event.stored is not None else None
        return WatchEvent(event.type, obj, str(event.version), event.initial_events_end)

    def ended(self) -> bool:
        """Whether the stream was cut; raises the error that it was cut with."""
        if self._left == 0 and not self._cut:
            self._cut, self._error = True, self._effect.cut_error
        if self._error is not None:
            raise self._error
        return self._cut

    def cut(self, error: Exception | None = None) -> None:
        """Ends the stream before its next event, quietly or with an error."""
        self._cut, self._error = True, error
        self._wake()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._subscription.close()

    def _time_out(self) -> None:
        self._timed_out = True
        self._subscription.bookmark()

    async def _changed(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
