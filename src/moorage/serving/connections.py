"""One connection of a client: uvicorn's HTTP protocol, with the limits that it lacks.

Too many connections are closed at once, a request head that is too large is answered with 431, and one that
does not come is given up, as is a client that does not read its answer. What the application needs to know of
its connection goes into the scope.
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
"""How long the rest of a refused request is read and thrown away."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one server bears of its network."""

    connections: int = 8_192
    """Open at once."""
    head_bytes: int = 64 * 1024
    """Request line and headers."""
    head_seconds: float = 20.0
    """From the first byte of a head, or from connecting, to its last byte."""
    send_seconds: float = 60.0
    """For a client that does not read its answer to begin again: what is to be sent is kept until then."""
    keep_alive_seconds: int = 120
    """Between requests; longer than clients keep idle connections, so that they are the ones to close."""


class _Corked:
    """Holds the head of an answer back until its body comes: one TLS record and one system call for both."""

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
        """When the head began that is not complete yet."""
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
        # Heads that come in one read are measured field by field below.
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
        if not self.expect_100_continue:
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
            # Closing with unread data would reset the connection and take the answer away from the client.
            self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _watch_head(self) -> None:
        """One timer per connection instead of one per request."""
        since, limit = self._head_since, self._limits.head_seconds
        if since is not None and self.loop.time() - since >= limit:
            self.transport.abort()
            return
        self._timer = self.loop.call_later(limit / 2, self._watch_head)
