"""The ApiClient port over HTTP: builds the request, waits for its turn, sends, reads the answer.

requests (pure) ──▶ limiter ──▶ fence ──▶ transport ──▶ responses, watches (pure)
                       ▲                     │ failed
                       └─── retries (pure) ◀─┘
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Protocol, Unpack

from moorage.api.errors import ApiError, MoorageError
from moorage.api.resources import EVENTS, LEASES, PODS, AnyObject, Resource
from moorage.client import requests, responses, watches
from moorage.client.pacing import Patience, RateLimits, Repeat, RequestPriority
from moorage.client.responses import Answer
from moorage.client.transport import HttpRequest, Response, Transport
from moorage.client.watches import Lines
from moorage.framework.ports import (
    ApiClient,
    Clock,
    DelegatingClient,
    DeleteOptions,
    ListOptions,
    Malformed,
    ObjectList,
    Patch,
    PatchOptions,
    WatchEvent,
    WatchOptions,
)
from moorage.telemetry.tracing import Tracing


class RequestObserver(Protocol):
    """Called on the loop; must return soon and not raise."""

    def answered(self, verb: str, method: str, code: str, seconds: float) -> None:
        """One request and its answer; `code` is `<error>` when none came, as client-go counts it."""
        ...

    def waited(self, verb: str, seconds: float) -> None:
        """How long the client's own limit held a request up."""
        ...

    def repeated(self, verb: str, method: str, code: str) -> None:
        """A request is going to be sent again."""
        ...


class Unobserved:
    """Counts nothing."""

    def answered(self, verb: str, method: str, code: str, seconds: float) -> None: ...

    def waited(self, verb: str, seconds: float) -> None: ...

    def repeated(self, verb: str, method: str, code: str) -> None: ...


OBJECT_LIMIT = 16 * 2**20
"""Bytes of one object, also as a line of a watch; API servers take at most 3 MiB."""
LIST_LIMIT = 512 * 2**20
ERROR_LIMIT = 2**20
ERROR_SECONDS = 5.0
"""How long the body of a refusal may take. A watch may last for minutes, but not the refusal of one."""
SLICE = 200
"""Items of a list read before the loop gets a turn: about two milliseconds."""
NO_ANSWER = "<error>"

Fence = Callable[[], float]
"""Asked right before a write is sent: how many seconds it may take. Raises NotSent when none may be sent."""


@dataclass(frozen=True, slots=True)
class _Call:
    verb: str
    request: HttpRequest
    priority: RequestPriority
    repeat: Repeat
    limit: int = OBJECT_LIMIT
    fenced: bool = False


class HttpClient:
    """Implements `framework.ports.ApiClient`. One client may be used by many tasks of one loop."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        random: Random,
        *,
        limits: RateLimits,
        user_agent: str,
        fence: Fence | None = None,
        observer: RequestObserver | None = None,
    ) -> None:
        self.fence = fence
        """For leaders: see `Fence`. Events and leases are sent without asking."""
        self._transport = transport
        self._clock = clock
        self._random = random
        self._limits = limits
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._observer = observer or Unobserved()

    async def close(self) -> None:
        await self._transport.close()

    # Reading

    async def list(self, resource: Resource, **options: Unpack[ListOptions]) -> ObjectList:
        request = requests.list_objects(resource, **options)
        body = await self._call(_Call("LIST", request, RequestPriority.READ, Repeat.NOTHING, LIST_LIMIT))
        envelope = responses.read_list(resource, body, request)
        items, malformed = responses.list_parts(await _read_items(resource, envelope.items or []))
        meta = envelope.metadata
        return ObjectList(items, meta.resource_version, meta.continue_, malformed)

    async def watch(self, resource: Resource, **options: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent]:
        request = requests.watch_objects(resource, **options)
        read, lines = watches.reader(resource), Lines(OBJECT_LIMIT)
        async with self._begin(_Call("WATCH", request, RequestPriority.READ, Repeat.NOTHING)) as response:
            async for chunk in response.chunks():
                for line in lines.feed(chunk):
                    yield read(line)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        request = requests.get(resource, name, namespace)
        # Pods are read to settle the outcome of a bind.
        priority = RequestPriority.BIND if resource == PODS else _priority(resource, RequestPriority.READ)
        return await self._object(resource, _Call("GET", request, priority, Repeat.ANYTHING))

    # Writing

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        request = requests.create(resource, obj, dry_run=dry_run)
        return await self._object(resource, self._write("POST", resource, request))

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        request = requests.replace(resource, obj, subresource=subresource)
        return await self._object(resource, self._write("PUT", resource, request, subresource))

    async def patch(self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]) -> Any:
        request = requests.patch(resource, name, patch, **options)
        call = self._write("PATCH", resource, request, options.get("subresource", ""))
        return await self._object(resource, call)

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        request = requests.delete(resource, name, **options)
        responses.check_done(await self._call(self._write("DELETE", resource, request)), request)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        request = requests.bind(name, namespace, uid, node)
        call = _Call("POST", request, RequestPriority.BIND, Repeat.NOTHING, fenced=True)
        responses.check_done(await self._call(call), request)

    # The way of a call

    def _write(self, verb: str, resource: Resource, request: HttpRequest, subresource: str = "") -> _Call:
        usual = RequestPriority.STATUS if subresource == "status" else RequestPriority.WRITE
        priority = _priority(resource, usual)
        if priority is RequestPriority.LEASE:
            return _Call(verb, request, priority, Repeat.NOTHING)
        return _Call(verb, request, priority, Repeat.UNPROCESSED, fenced=priority is not RequestPriority.EVENT)

    async def _object(self, resource: Resource, call: _Call) -> Any:
        return responses.read_object(resource, await self._call(call), call.request)

    async def _call(self, call: _Call) -> bytes:
        """The body of the answer to a call, repeated as far as that is safe."""
        patience = Patience(call.repeat, self._random)
        while True:
            try:
                async with self._begin(call) as response:
                    return await response.read(call.limit)
            except MoorageError as error:
                pause = patience.pause(error)
                if pause is None:
                    raise
                self._observer.repeated(call.verb, call.request.method, _code(error))
            await self._clock.sleep(pause)

    @asynccontextmanager
    async def _begin(self, call: _Call) -> AsyncIterator[Response]:
        """The beginning of a successful answer; everything else is raised."""
        self._observer.waited(call.verb, await self._limits.wait(call.priority))
        request = self._ready(call)
        began = self._clock.now()
        code = NO_ANSWER
        try:
            async with self._transport.send(request) as response:
                code = str(response.status)
                if not 200 <= response.status < 300:
                    answer = Answer(response.status, response.headers, await _read_error(response))
                    raise responses.failure(answer, request, self._clock.wall())
                responses.check_encoding(response.headers, request)
                yield response
        finally:
            self._observer.answered(call.verb, request.method, code, self._clock.now() - began)

    def _ready(self, call: _Call) -> HttpRequest:
        """The request as it leaves, after the last check. Nothing is awaited between this and the sending."""
        request = replace(call.request, headers={**self._headers, **call.request.headers})
        if call.fenced and self.fence is not None:
            seconds = self.fence()
            request = replace(request, timeout=min(seconds, request.timeout or seconds))
        return request


async def _read_error(response: Response) -> bytes:
    """Read the body of a refusal; status and headers say enough if it does not arrive."""
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            return await response.read(ERROR_LIMIT)
    except TimeoutError:
        return b""


async def _read_items(resource: Resource, raw: list[Any]) -> list[AnyObject | Malformed]:
    read = responses.item_reader(resource)
    items: list[AnyObject | Malformed] = []
    for start in range(0, len(raw), SLICE):
        items += map(read, raw[start : start + SLICE])
        await asyncio.sleep(0)
    return items


def _priority(resource: Resource, usual: RequestPriority) -> RequestPriority:
    if resource == EVENTS:
        return RequestPriority.EVENT
    return RequestPriority.LEASE if resource == LEASES else usual


def _code(error: Exception) -> str:
    return str(error.code) if isinstance(error, ApiError) else NO_ANSWER


class TracedClient(DelegatingClient):
    """Reads are passed on as they are."""

    def __init__(self, client: ApiClient, tracing: Tracing) -> None:
        super().__init__(client)
        self._tracing = tracing

    def before(self, verb: str, resource: Resource, subresource: str = "") -> None:
        """Everything may pass."""

    async def create(self, resource: Resource, obj: Any, *, dry_run: bool = False) -> Any:
        with self._span("create", resource):
            return await super().create(resource, obj, dry_run=dry_run)

    async def replace(self, resource: Resource, obj: Any, *, subresource: str = "") -> Any:
        with self._span("update", resource, subresource):
            return await super().replace(resource, obj, subresource=subresource)

    async def patch(self, resource: Resource, name: str, patch: Patch, **options: Unpack[PatchOptions]) -> Any:
        with self._span("patch", resource, options.get("subresource", ""), name):
            return await super().patch(resource, name, patch, **options)

    async def delete(self, resource: Resource, name: str, **options: Unpack[DeleteOptions]) -> None:
        with self._span("delete", resource, name=name):
            await super().delete(resource, name, **options)

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        with self._span("create", PODS, "binding", name):
            await super().bind(name, namespace, uid, node)

    def _span(
        self, verb: str, resource: Resource, subresource: str = "", name: str = ""
    ) -> AbstractContextManager[None]:
        what = f"{resource}/{subresource}" if subresource else str(resource)
        return self._tracing.write(f"{verb} {what}", {"moorage.object": name} if name else {})
