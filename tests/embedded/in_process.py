"""The client's Transport without sockets: it calls an ASGI application, and can spoil the bytes.

    application ──send()──▶ buffer ──chunks(): delayed, split, cut or stalled──▶ client
         ▲                    │
         └── waits while full ┘

It behaves as a network and a server such as uvicorn do: a request that was sent is acted on even if the
client has given up, bytes for a client that has gone vanish, a full connection makes the application wait.
All waiting is asyncio's and the clock's, so it runs under virtual time. TLS and the HTTP framing of the
connection are not modelled.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Any, TypeAlias
from urllib.parse import unquote, urlencode

from starlette.datastructures import Headers

from moorage.api.errors import NotSent, OutcomeUnknown, TransportError
from moorage.client.transport import HttpRequest, Response
from moorage.framework.ports import Clock
from tests.embedded.wire_faults import Canned, Effect, WireFaults

_FORBIDDEN = re.compile(b"[\x00-\x08\x0a-\x1f\x7f]")
_FULL = 64 * 1024
"""Bytes that a connection takes without being read; above, the application waits."""
Message: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
_NOTHING = Effect()


class Exchange:
    """The Response of the client and the receive and send of the application."""

    def __init__(self, body: bytes, effect: Effect, clock: Clock, timeout: float | None) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._request_body: bytes | None = body
        self._effect = effect
        self._clock = clock
        self._buffer: deque[bytes] = deque()
        self._buffered = 0
        self._rest = b""
        self._given = 0
        self._sizes = cycle(effect.split or (0,))
        self._complete = False
        self._closed = False
        self._error: Exception | None = None
        self._news = asyncio.Event()
        """Set whenever the client's side has something new to look at."""
        self._space = asyncio.Event()
        """Set whenever the application's side has: space in the buffer, or the client's end."""
        self._timer = None
        if timeout is not None:
            self._timer = clock.call_later(timeout, self._fail, f"no answer within {timeout:g} s")

    # The application's side

    async def arrives(self) -> bool:
        """Waits for the request to reach the server; False if it never does."""
        effect = self._effect
        if effect.canned is not None:
            self._answer(effect.canned)
            return False
        if effect.request_lost:
            self._lose("the request was lost")
            return False
        await self._clock.sleep(effect.request_delay)
        return True

    async def receive(self) -> MutableMapping[str, Any]:
        if self._request_body is not None:
            body, self._request_body = self._request_body, None
            return {"type": "http.request", "body": body, "more_body": False}
        while not self._closed:
            self._space.clear()
            await self._space.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if self._closed or self._effect.answer_lost:
            return
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            if any(_FORBIDDEN.search(value) for _, value in headers):
                raise RuntimeError("a header value has control characters; servers refuse to send it")
            self.headers = Headers(raw=headers)
            self.status = message["status"]
        else:
            self._take(message.get("body", b""), last=not message.get("more_body", False))
        self._news.set()
        while self._buffered > _FULL and not self._closed:
            self._space.clear()
            await self._space.wait()

    def returned(self) -> None:
        """The application is done."""
        if self._effect.answer_lost:
            self._lose("the answer was lost")
        elif not self._complete:
            self._fail("the server closed the connection before the end of its answer")

    def crashed(self) -> None:
        """The application raised: as a server, answer with 500 or break off."""
        if self.status or self._effect.answer_lost:
            self.returned()
        else:
            self._answer(Canned(500, b"Internal Server Error", {"content-type": "text/plain"}))

    # The client's side

    async def begun(self) -> None:
        """Waits for status and headers."""
        await self._pause(self._effect.answer_delay)
        while not self.status:
            await self._next_news()

    async def chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._next_chunk()) is not None:
            yield chunk

    async def read(self, limit: int) -> bytes:
        body = b"".join([chunk async for chunk in self.chunks()])
        if len(body) > limit:
            raise TransportError(f"the answer has {len(body)} bytes, more than the {limit} allowed")
        return body

    def cut(self, *, quietly: bool = False) -> None:
        if quietly and self.status:
            self._complete = True
            self._news.set()
        else:
            self._fail("the connection was reset")

    def close(self) -> None:
        """The client leaves; the application is notified, and what it still sends vanishes."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._space.set()

    async def _next_chunk(self) -> bytes | None:
        """The next piece as the fault makes it; None at the end of the body."""
        marks = [mark for mark in (self._effect.cut_after, self._effect.stall_after) if mark is not None]
        limit = min(marks) - self._given if marks else None
        if limit == 0:
            await self._spoil()
            return None
        chunk = await self._piece()
        if chunk is not None:
            chunk = chunk[:limit]
            self._given += len(chunk)
        return chunk

    async def _piece(self) -> bytes | None:
        """What the application sent in one go, or as much of it as the split allows."""
        if not self._rest:
            while not self._buffer:
                if self._complete:
                    return None
                await self._next_news()
            await self._pause(self._effect.chunk_delay)
            self._rest = self._buffer.popleft()
            self._buffered -= len(self._rest)
            self._space.set()
        size = next(self._sizes) or len(self._rest)
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece

    async def _spoil(self) -> None:
        """What happens at the mark; returns if the body seems to end there."""
        if self._effect.stall_after is None:
            if self._effect.cut_quietly:
                return
            raise OutcomeUnknown("the connection was cut")
        while True:
            await self._next_news()

    async def _next_news(self) -> None:
        self._check()
        self._news.clear()
        await self._news.wait()
        self._check()

    async def _pause(self, seconds: float) -> None:
        """Sleeps, unless the exchange fails first."""
        if not seconds:
            return
        due = self._clock.now() + seconds
        timer = self._clock.call_later(seconds, self._news.set)
        try:
            while self._clock.now() < due:
                await self._next_news()
        finally:
            timer.cancel()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _take(self, body: bytes, *, last: bool) -> None:
        if body:
            self._buffer.append(body)
            self._buffered += len(body)
        self._complete = self._complete or last

    def _answer(self, canned: Canned) -> None:
        self.headers = Headers(dict(canned.headers))
        self.status = canned.status
        self._take(canned.body, last=True)
        self._news.set()

    def _lose(self, why: str) -> None:
        if self._effect.noticed_after is not None:
            self._clock.call_later(self._effect.noticed_after, self._fail, why)

    def _fail(self, why: str) -> None:
        if self._error is None and not (self._complete and not self._buffer):
            self._error = OutcomeUnknown(why)
        self._news.set()


class AsgiTransport:
    """A Transport to one application.

    `headers` go with every request, such as the credentials. `host` is the name that the application was
    called by.
    """

    def __init__(
        self,
        app: AsgiApp,
        clock: Clock,
        *,
        headers: Mapping[str, str] | None = None,
        host: str = "127.0.0.1:6443",
        faults: WireFaults | None = None,
    ) -> None:
        self.down = False
        """While set, connections are refused; those that are open stay."""
        self._app = app
        self._clock = clock
        self._headers = dict(headers or {})
        self._host = host
        self._faults = faults
        self._open: dict[Exchange, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncIterator[Response]:
        effect = self._faults.sent(request, self._clock.now()) if self._faults is not None else None
        effect = effect or _NOTHING
        if self.down or effect.refused:
            await asyncio.sleep(0)  # as any other call, it gives way to the loop
            raise NotSent(f"connect to {self._host}: connection refused")
        exchange = Exchange(request.body, effect, self._clock, request.timeout)
        task = asyncio.create_task(self._serve(exchange, request))
        self._open[exchange] = task
        task.add_done_callback(lambda _: self._open.pop(exchange, None))
        try:
            await exchange.begun()
            yield exchange
        finally:
            exchange.close()

    def cut(self, *, quietly: bool = False) -> int:
        """Ends all open connections, as a server does that dies (or one that closes them); says how many."""
        for exchange in self._open:
            exchange.cut(quietly=quietly)
        return len(self._open)

    async def close(self) -> None:
        """Ends what is open; the application is notified, and cancelled if it goes on all the same."""
        self.down = True
        tasks = list(self._open.values())
        for exchange in list(self._open):
            exchange.cut()
            exchange.close()
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, exchange: Exchange, request: HttpRequest) -> None:
        """The server's side of one exchange."""
        if not await exchange.arrives():
            return
        try:
            await self._app(self._scope(request), exchange.receive, exchange.send)
        except Exception as error:
            context = {"message": f"the application failed at {request.method} {request.path}"}
            asyncio.get_running_loop().call_exception_handler({**context, "exception": error})
            exchange.crashed()
        else:
            exchange.returned()

    def _scope(self, request: HttpRequest) -> dict[str, Any]:
        named = {"host": self._host, **self._headers, **request.headers}
        if request.body and not any(name.lower() == "content-length" for name in named):
            named["content-length"] = str(len(request.body))
        port = self._host.rpartition(":")[2]
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "https",
            "path": unquote(request.path),
            "raw_path": request.path.encode(),
            "query_string": urlencode(request.query).encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", int(port) if port.isdigit() else 443),
        }
