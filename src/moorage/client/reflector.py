"""Follows one resource of the API server: a list, then watches, and the way back after each failure.

             ┌──── version gone, or three suspect watches ────┐
             ▼                                                │
    LIST ── complete ──▶ WATCH ── ended by the server ──▶ WATCH from the last version
      │                    │
      └─ failed            └─ failed, or ended at once
         back off, LIST       back off, WATCH from the last version

Versions: the first list asks for "0" (anything the server has in its cache), later ones for the last version seen, so
that time never runs backwards; only when the server no longer has that one, or not yet, is the current state read with
"". If the current state has a lower version than one seen before, the server was restored from a backup: the sink is
notified and takes the listing as it is. `relist` is for other parts of the client that have noticed it (`probing`).

What is done with the objects belongs to the sink (`informers`), what counts as which failure to `lists`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Protocol

from moorage.api.errors import BadRequest, Gone, Invalid, MoorageError, NotFound
from moorage.api.resources import Resource, by_plural
from moorage.client import lists
from moorage.client.lists import ChunkedLister, Overdue, ShortWatch
from moorage.client.pacing import Backoff
from moorage.framework.ports import BOOKMARK, DELETED, ApiClient, Clock, WatchEvent
from moorage.telemetry import logs
from moorage.telemetry.logs import Throttle

IDLE = 120.0
"""Seconds of silence after which a watch is begun anew, on a server that has sent bookmarks: those come every
minute, so the other end is probably gone. TCP keepalive notices that sooner, but ends at the next proxy."""


class Hearing:
    """When a watch is given up: at its end in any case, and after a silence once `heard` was called."""

    def __init__(self, deadline: asyncio.Timeout) -> None:
        self._deadline = deadline
        self._end = deadline.when() or 0.0
        self._heard = 0.0
        self._ended = False

    def heard(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._heard >= 1.0 and not self._ended:  # not for every event: a timer costs more than an event
            self._heard = now
            self._deadline.reschedule(min(self._end, now + IDLE))

    def end(self) -> None:
        """Give the watch up now."""
        if not self._ended and not self._deadline.expired():
            self._ended = True
            self._deadline.reschedule(asyncio.get_running_loop().time())

    def was_silent(self) -> bool:
        """Of a watch that has been given up: before its end."""
        return (self._deadline.when() or 0.0) < self._end


log = logs.get(__name__)

WATCH_SECONDS = (300.0, 600.0)
"""Each watch asks the server to end it after a random time in this range, which spreads the re-watches."""
GRACE = 30.0
"""Seconds after which a watch that the server should have ended is given up."""
SHORT_WATCH = 1.0
"""A watch that ends sooner than this without progress counts as a failure."""
SUSPECT_WATCHES = 3
"""After so many 500s or short watches in a row the version itself is suspect, and a list follows."""
RELIST_PAUSE = 60.0
"""Seconds since the last listing after which a lost version is followed by another without backing off."""
ABSENT_PAUSE = (60.0, 120.0)
"""Seconds between questions for a kind of Kubernetes that the server does not have: it comes with the next version."""
CUSTOM_PAUSE = (1.0, 1.8)
"""Those for a custom kind, which is there as soon as its definition is. Definitions are not watched: that
would need a right to read them all."""
ABSENT = "the API server does not have this kind"
WAKE_SPREAD = 0.3
"""Seconds within which the reflectors that waited for the server return to it."""
SLICE = 500
"""Events applied before the loop gets a turn."""
BACKLOG = 5_000
"""Changes that may wait for the receiver; then reading stops until it has caught up."""
CATCH_UP = 0.01
"""Seconds between two looks at a receiver that has fallen behind."""


class Sink(Protocol):
    """What becomes of the objects."""

    def serve(self, known: bool) -> None:
        """The server does not have the kind, or has it again; said before the listing that follows."""
        ...

    def preview(self, obj: Any) -> None:
        """An object of a listing that is still coming in, which `replace` completes."""
        ...

    async def rewound(self, seen: str, found: str) -> None:
        """The server is at version `found` although `seen` came before; said before the listing that follows, which
        waits for this to return."""
        ...

    async def replace(self, items: Sequence[Any]) -> None:
        """A complete listing; what is not in it is gone. `Malformed` stands for unreadable objects."""
        ...

    def accepts(self, event: WatchEvent) -> bool:
        """Whether an event is about an object of this resource; others are left out."""
        ...

    def apply(self, event: WatchEvent) -> None:
        """One accepted event."""
        ...


async def close_stream(stream: AsyncIterator[WatchEvent]) -> None:
    """End a watch that is not read to its end, connection included."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


class Reflector:
    """The loop over one resource. `run` ends only by cancellation."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        sink: Sink,
        *,
        clock: Clock,
        random: Random,
        field_selector: str = "",
        label_selector: str = "",
        page_size: int = 500,
        use_streaming_list: bool = False,
        backlog: Callable[[], int] = lambda: 0,
    ) -> None:
        self.resource = resource
        self.version = ""
        """The last version seen; a watch continues after it."""
        self.last_error = ""
        """Empty while all is well."""
        self.is_current = False
        """Whether a listing was as new as the moment at which it began, not only as the server's cache."""
        self.relisting = False
        """Whether `relist` was called and the listing is not complete yet."""
        self.held_up = 0.0
        """Seconds, all in all, that reading has stopped for the receiver to catch up."""
        self._client = client
        self._sink = sink
        self._clock = clock
        self._random = random
        self._backoff = Backoff(clock, random)
        self._outage = Backoff(clock, random)
        """For failures that say nothing about the version; it begins anew as soon as the server works again."""
        self._was_cut_off = False
        """Whether the last failure was that the server could not be reached."""
        self._waking: asyncio.Future[None] | None = None
        """Set while a pause after such a failure may be cut short."""
        self._complaints = Throttle(clock.now)
        self._selectors = {"field_selector": field_selector, "label_selector": label_selector}
        self._lister = ChunkedLister(client, resource, page_size, self._selectors)
        self._streaming = use_streaming_list
        self._backlog = backlog
        self._bookmarked = False
        """Whether this server sends bookmarks."""
        self._listed = False
        """Whether `version` belongs to a complete listing that only needs a watch to stay current."""
        self._version_lost = False
        """The server does not have `version`: read the current state."""
        self._listed_at = 0.0
        self._suspect_watches = 0
        self._absences = 0
        self._known = True
        self._hearing: Hearing | None = None
        """Of the open watch."""
        self._restarted = False
        """`relist` was called after the last list began."""

    def relist(self) -> None:
        """List the current state again, whatever its version is. An open watch is given up."""
        self.version = ""
        self._listed, self._version_lost, self._restarted, self.relisting = False, True, True, True
        if self._hearing is not None:
            self._hearing.end()

    async def run(self) -> None:
        while True:
            try:
                await self._step()
            except Exception as error:
                await self._pause(self._after(error))

    @property
    def is_cut_off(self) -> bool:
        """Whether it waits to reach the server again."""
        return self._waking is not None

    def wake(self) -> None:
        """The server has answered another request: stop waiting for it."""
        if self._waking is not None:
            self._clock.call_later(self._random.random() * WAKE_SPREAD, _set, self._waking)
            self._waking = None  # a second failure is waited for in full

    async def _pause(self, seconds: float) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(seconds, _set, over)
        self._waking = over if self._was_cut_off else None
        try:
            await over
        finally:
            timer.cancel()
            self._waking = None

    async def _step(self) -> None:
        if self._listed:
            await self._watch()
            return
        self._restarted = False
        try:
            await (self._streaming_list() if self._streaming else self._list())
        except NotFound:
            self._absences += 1
            # Known objects are given up at the second answer: the first may come from a server in upgrade.
            if self._listed or (self.version and self._absences < 2):
                raise
            await self._do_without()

    # Listing

    async def _list(self) -> None:
        try:
            items, version = await self._lister.snapshot(self._list_version())
        except Exception as error:
            if self._version_lost or not lists.version_lost(error):
                raise
            self._version_lost = True
            return
        if self._restarted:
            return  # the list may have begun before the server was restored
        self.is_current = self._version_lost
        await self._take(items, version)

    def _list_version(self) -> str:
        return "" if self._version_lost else self.version or "0"

    async def _take(self, items: Sequence[Any], version: str) -> None:
        self._serve(True)
        if lists.is_older(version, self.version):
            await self._sink.rewound(self.version, version)
        await self._sink.replace(items)
        if self._restarted:
            return
        self.version = version
        self.relisting = False
        self.last_error = ""
        self._listed, self._version_lost = True, False
        self._listed_at = self._clock.now()
        self._suspect_watches = self._absences = 0
        self._works()
        log.info(3, "Listed", resource=self.resource, count=len(items), version=version)

    async def _do_without(self) -> None:
        """The server lacks the kind: the scheduler starts without it, and looks again now and then."""
        self._serve(False)
        await self._sink.replace([])
        self.version, self.relisting, self.last_error = "", False, ABSENT
        known = by_plural(self.resource.plural, self.resource.group) is not None
        await self._clock.sleep(self._random.uniform(*(ABSENT_PAUSE if known else CUSTOM_PAUSE)))

    def _serve(self, known: bool) -> None:
        if known is self._known:
            return
        self._known = known
        if known:
            log.info(0, "The API server now serves this kind", resource=self.resource)
        else:
            log.warning("The API server does not serve this kind; treating it as empty", resource=self.resource)
        self._sink.serve(known)

    # Watching

    async def _watch(self) -> None:
        began, version = self._clock.now(), self.version
        async with self._stream(version) as (stream, hearing):
            await self._follow(stream, hearing)
        if self.version == version and self._clock.now() - began < SHORT_WATCH:
            raise ShortWatch(f"the watch of {self.resource} ended at once, without events")
        self.last_error = ""
        self._works()

    async def _follow(self, stream: AsyncIterator[WatchEvent], hearing: Hearing) -> None:
        taken = 0
        async for event in stream:
            if self._restarted:
                return
            if event.type == BOOKMARK:
                self._bookmarked = True
                if lists.is_older(event.resource_version, self.version):
                    went = f"from {self.version} to {event.resource_version}"
                    raise lists.Rewound(f"the server's version of {self.resource} went back {went}")
            elif self._sink.accepts(event):
                self._sink.apply(event)
            else:
                continue
            if self._bookmarked:
                hearing.heard()
            # After the event was applied: what fails before is asked for again.
            self.version = event.resource_version or self.version
            self.last_error = ""
            self._suspect_watches = 0
            self._works()
            taken += 1
            if taken % SLICE == 0:
                await self._give_way()

    async def _give_way(self) -> None:
        """A flood of events that are all there already never suspends. When the receiver does not keep up
        either, it is the connection that fills, and in the end the server that gives the watch up."""
        await asyncio.sleep(0)
        began = self._clock.now()
        while self._backlog() > BACKLOG:
            await self._clock.sleep(CATCH_UP)
        self.held_up += self._clock.now() - began

    async def _streaming_list(self) -> None:
        """The listing as a watch: objects are collected until the server says that all were sent; only then
        is missing what has not come. Then the stream simply goes on."""
        try:
            version = self._list_version_streamed()
            async with self._stream(version, initial=True) as (stream, hearing):
                await self._collect(stream)
                await self._follow(stream, hearing)
        except Exception as error:
            if self._listed:
                raise
            if isinstance(error, BadRequest | Invalid):
                log.info(2, "Streaming lists are not supported; listing in pages", resource=self.resource)
                self._streaming = False
            elif lists.version_lost(error) and not self._version_lost:
                self._version_lost = True
            else:
                raise

    def _list_version_streamed(self) -> str:
        return "" if self._version_lost else self.version

    async def _collect(self, stream: AsyncIterator[WatchEvent]) -> None:
        found: dict[str, Any] = {}
        async for event in stream:
            if event.type == BOOKMARK and event.initial_events_end:
                self.is_current = True
                await self._take(list(found.values()), event.resource_version)
                return
            if event.type == BOOKMARK or not self._sink.accepts(event):
                continue
            if event.type == DELETED:
                found.pop(event.object.key, None)
            else:
                found[event.object.key] = event.object
                self._sink.preview(event.object)
            if len(found) % SLICE == 0:
                await self._give_way()
        raise ShortWatch(f"the streaming list of {self.resource} ended before it was complete")

    @asynccontextmanager
    async def _stream(
        self, version: str, initial: bool = False
    ) -> AsyncIterator[tuple[AsyncIterator[WatchEvent], Hearing]]:
        seconds = self._random.uniform(*WATCH_SECONDS)
        stream = self._client.watch(
            self.resource, resource_version=version, timeout=seconds, send_initial_events=initial, **self._selectors
        )
        try:
            async with asyncio.timeout(seconds + GRACE) as deadline:
                self._hearing = hearing = Hearing(deadline)
                if self._bookmarked and not initial:
                    hearing.heard()
                yield stream, hearing
        except TimeoutError as error:
            if not deadline.expired():
                raise
            if self._restarted:
                return
            if not hearing.was_silent():
                raise Overdue(f"the server did not end the watch of {self.resource} in time") from error
            # Perhaps there was nothing to say. If the server is gone, the next watch finds out.
            log.info(2, "The watch was silent; starting a new one", resource=self.resource, seconds=IDLE)
        finally:
            self._hearing = None
            await close_stream(stream)

    def _works(self) -> None:
        """The server has served a list or a part of a watch."""
        self._was_cut_off = False
        self._outage.reset()

    # Failures

    def _after(self, error: Exception) -> float:
        """Decides from where to go on, and says after how many seconds."""
        self.last_error = lists.describe(error)
        if not isinstance(error, MoorageError):
            log.error("Informer failed with a bug; continuing", error=error, stack=True, resource=self.resource)
        elif self._complaints.admits():
            log.warning(
                "Watch failed" if self._listed else "List failed",
                resource=self.resource,
                err=self.last_error,
                suppressed=self._complaints.take_suppressed(),
            )
        returns, self._was_cut_off = self._was_cut_off, lists.is_unreachable(error)
        if self._listed:
            self._after_watch(error)
            if lists.version_lost(error):
                if returns:
                    return self._random.random() * WAKE_SPREAD  # the server is back
                if self._clock.now() - self._listed_at > RELIST_PAUSE:
                    return self._random.random()  # the server is well; only time has passed
        backoff = self._outage if lists.is_passing(error) else self._backoff
        return backoff.next(getattr(error, "retry_after", None))

    def _after_watch(self, error: Exception) -> None:
        if lists.version_lost(error):
            # 410 means too old, so a list at that version is still right; too large means from the future.
            self._listed, self._version_lost = False, not isinstance(error, Gone)
        elif lists.is_suspect(error):
            self._suspect_watches += 1
            self._listed = self._suspect_watches < SUSPECT_WATCHES
        elif not lists.is_passing(error):
            self._listed = False


def _set(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
