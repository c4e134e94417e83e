"""One connection of a client: uvicorn's HTTP protocol with additional limits.

If there are too many connections, new ones are closed at once. A request head that is too large is answered
with 431. A connection is aborted if the head does not arrive in time, or if the client does not read its
answer. The scope tells the application the user of the connection, and how to abort it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from moorage.serving.certificates import User, user_of

_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b"
)
_LINGER_SECONDS = 1.0
"""How long the rest of a refused request is read and discarded."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one server."""

    connections: int = 8_192
    """Open connections."""
    head_bytes: int = 64 * 1024
    """Request line and headers."""
    head_seconds: float = 20.0
    """From the first byte of a head, or from connecting, to its last byte."""
    send_seconds: float = 60.0
    """How long a client may stop reading its answer, which stays in memory meanwhile."""
    keep_alive_seconds: int = 120
    """Between requests; longer than clients keep idle connections, so that the clients close them."""


class _Corked:
    """Delays the head of an answer until its body: one TLS record and one system call for both."""

    __slots__ = ("_head", "_transport", "close", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self.close = transport.close
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._head is None:
            self._head = data
        elif self._head:
            self._transport.write(self._head + data)
            self._head = b""
        elif data:
            self._transport.write(data)


class Connection(HttpToolsProtocol):
    def __init__(
        self, config: Config, state: ServerState, loop: asyncio.AbstractEventLoop, limits: ConnectionLimits
    ) -> None:
        super().__init__(config, state, {}, loop)
        self._limits = limits
        self._user: User | None = None
        self._head_bytes = 0
        self._head_since: float | None = loop.time()
        """When the incomplete head began; None between heads."""
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        """Runs while the client does not read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._refused = True
            transport.abort()
            return
        self._user = user_of(transport.get_extra_info("peercert"))
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._stalled = self.loop.call_later(self._limits.send_seconds, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._head_since is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        # Heads that arrive in one read are measured in on_headers_complete.
        if self._head_since is not None and self._head_bytes > self._limits.head_bytes:
            self._refuse()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        if self._head_since is None:
            self._head_since = self.loop.time()
        scope: Any = self.scope
        scope["moorage.user"] = self._user
        scope["moorage.abort"] = self.transport.abort

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum([len(name) + len(value) + 4 for name, value in self.headers])
        if size > self._limits.head_bytes:
            self._refuse()
            return
        self._head_since = None
        super().on_headers_complete()
        # uvicorn writes no body for HEAD, so a delayed head would never be sent.
        if not self.expect_100_continue and self.scope["method"] != "HEAD":
            corked: Any = _Corked(self.transport)
            self.cycle.transport = corked

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def _refuse(self) -> None:
        if not self._refused:
            self._refused = True
            text = b"the request line and headers have more than %d bytes\n" % self._limits.head_bytes
            self.transport.write(_REFUSAL % (len(text), text))
            # Closing with unread data would reset the connection, and the client would lose the answer.
            self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _watch_head(self) -> None:
        """Abort a connection whose head is late; one timer per connection instead of one per request."""
        since, limit = self._head_since, self._limits.head_seconds
        if since is not None and self.loop.time() - since >= limit:
            self.transport.abort()
            return
        self._timer = self.loop.call_later(limit / 2, self._watch_head)
