"""The ApiClient port in process, on the store: typed objects in and out, no bytes in between.

Each call gives way to the loop before the store acts and again before the answer, as a request and its answer
take time; under a seeded virtual loop everything else may come in between. A watch waits for the store's
events and hands them out typed. Faults are injected here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import suppress
from types import coroutine
from typing import Any, TypeVar, Unpack

from moorage.api import decoding, resources
from moorage.api.errors import ApiError, ObjectError
from moorage.api.meta import Object
from moorage.api.resources import AnyObject, Resource
from moorage.framework.ports import (
    Clock,
    DeleteOptions,
    ListOptions,
    Malformed,
    ObjectList,
    Patch,
    PatchOptions,
    WatchEvent,
    WatchOptions,
)
from moorage.store.faults import Call, Effect, Faults
from moorage.store.objects import Raw, Stored, copy_json, metadata_of
from moorage.store.reading import StoreEvent, StoreListing, Subscription
from moorage.store.store import Store

_BATCH = 100  # events between two turns of the loop
T = TypeVar("T")
_NOTHING = Effect()


class Stream:
    """An open watch. It ends when its time is over, when it is cut, or when the store ends it with Gone.

    `timeout` seconds after its beginning it sends a last bookmark and closes.
    """

    def __init__(
        self, resource: Resource, subscription: Subscription, clock: Clock, effect: Effect, timeout: float | None
    ) -> None:
        self._resource = resource
        self._subscription = subscription
        self._clock = clock
        self._effect = effect
        self._remaining = effect.cut_after
        self._cut = False
        self._error: Exception | None = None
        self._timed_out = False
        self._timer = clock.call_later(timeout, self._time_out) if timeout is not None else None
        self._waiter: asyncio.Future[None] | None = None
        subscription.wake = self._wake

    async def batch(self) -> list[StoreEvent]:
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

    def hand_out(self, event: StoreEvent) -> WatchEvent:
        """The event as the client sees it; counts towards a cut."""
        if self._remaining is not None:
            self._remaining -= 1
        obj = event.stored.read_as(self._resource) if event.stored is not None else None
        return WatchEvent(event.type, obj, str(event.version), event.initial_events_end)

    def ended(self) -> bool:
        """Whether the stream was cut; raises the error that it was cut with."""
        if self._remaining == 0 and not self._cut:
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


class LocalClient:
    """A client of one store. Writes accept plain dictionaries as well as records."""

    def __init__(self, store: Store, clock: Clock, faults: Faults | None = None) -> None:
        self.store = store
        self.faults = faults
        self._clock = clock
        self._streams: dict[Stream, Resource] = {}

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        def act() -> StoreListing:
            return self.store.list(resource, **options)

        return _object_list(resource, await self._call("list", resource, options.get("namespace", ""), "", act))

    async def watch(self, resource: Resource, **options: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent]:
        timeout, namespace = options.pop("timeout", None), options.get("namespace", "")
        effect = self._sent("watch", resource, namespace, "")
        await self._perform(effect, _opened)
        subscription = self.store.watch(resource, **options)  # type: ignore[misc]  # the timeout is ours
        stream = Stream(resource, subscription, self._clock, effect, timeout)
        self._streams[stream] = resource
        try:
            while batch := await stream.batch():
                for event in batch:
                    if stream.ended():
                        return
                    yield stream.hand_out(event)
        finally:
            stream.close()
            del self._streams[stream]

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        return _record(
            resource,
            await self._call("get", resource, namespace, name, lambda: self.store.get(resource, name, namespace)),
        )

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        raw = _plain(obj)
        namespace, name = _names(raw)
        return _record(
            resource,
            await self._call(
                "create", resource, namespace, name, lambda: self.store.create(resource, raw, dry_run=dry_run)
            ),
        )

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        raw = _plain(obj)
        namespace, name = _names(raw)

        def act() -> Stored:
            return self.store.replace(resource, raw, subresource=subresource)

        return _record(resource, await self._call("replace", resource, namespace, name, act, subresource))

    async def patch(self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]) -> Any:
        copied, namespace = copy_json(patch), options.get("namespace", "")

        def act() -> Stored:
            return self.store.patch(resource, name, copied, **options)

        found = await self._call("patch", resource, namespace, name, act, options.get("subresource", ""))
        return _record(resource, found)

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        def act() -> Stored:
            return self.store.delete(resource, name, **options)

        await self._call("delete", resource, options.get("namespace", ""), name, act)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        await self._call(
            "bind", resources.PODS, namespace, name, lambda: self.store.bind(name, namespace, node, uid=uid)
        )

    def cut_watches(self, resource: Resource | None = None, error: Exception | None = None) -> int:
        """Ends the open watches, of one resource or all, quietly or with an error; says how many."""
        cut = [stream for stream, watched in self._streams.items() if resource in (None, watched)]
        for stream in cut:
            stream.cut(error)
        return len(cut)

    async def _call(
        self, verb: str, resource: Resource, namespace: str, name: str, act: Callable[[], T], subresource: str = ""
    ) -> T:
        return await self._perform(self._sent(verb, resource, namespace, name, subresource), act)

    def _sent(self, verb: str, resource: Resource, namespace: str, name: str, subresource: str = "") -> Effect:
        if self.faults is None:
            return _NOTHING
        key = "/".join(filter(None, (namespace, name)))
        return self.faults.sent(Call(verb, resource, key, self._clock.now(), subresource)) or _NOTHING

    async def _perform(self, effect: Effect, act: Callable[[], T]) -> T:
        if effect is _NOTHING:
            await _turn()
            try:
                return await self._act(act)
            finally:
                await _turn()
        await self._clock.sleep(effect.request_delay)
        if effect.error is None:
            try:
                return await self._act(act)
            finally:
                await self._clock.sleep(effect.answer_delay)
        if effect.applied:
            with suppress(ApiError):  # the answer is lost, whether good or bad
                act()
        await self._clock.sleep(effect.answer_delay)
        raise effect.error

    async def _act(self, act: Callable[[], T]) -> T:
        """The store acts; its answer waits until what it shows is durable."""
        answer = act()
        if self.store.durable_version < self.store.version:
            await self.store.settled()
        return answer


@coroutine
def _turn() -> Generator[None, None, None]:
    """Gives way to the loop once: `asyncio.sleep(0)` without the frames in between."""
    yield


def _opened() -> None:
    """A watch has no answer of its own: its stream is opened after it, so that no fault can leak one."""


def _plain(obj: Any) -> Raw:
    """The JSON of an object, as a value that no caller holds."""
    if isinstance(obj, Object):
        return decoding.to_builtins(obj)
    raw: Raw = copy_json(obj if isinstance(obj, dict) else decoding.to_builtins(obj))
    return raw


def _names(raw: Raw) -> tuple[str, str]:
    meta = metadata_of(raw)
    return str(meta.get("namespace") or ""), str(meta.get("name") or "")


def _record(resource: Resource, stored: Stored) -> AnyObject:
    typed = stored.read_as(resource)
    if isinstance(typed, Malformed):
        raise ObjectError(f"{stored.resource.kind} {typed.key}", "", typed.error)
    return typed


def _object_list(resource: Resource, listing: StoreListing) -> ObjectList:
    typed = [stored.read_as(resource) for stored in listing.items]
    good = [obj for obj in typed if not isinstance(obj, Malformed)]
    bad = [obj for obj in typed if isinstance(obj, Malformed)]
    return ObjectList(good, str(listing.version), listing.next_page, bad)
