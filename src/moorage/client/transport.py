"""The door to an HTTP server: one request out, status, headers and byte chunks back.

`Transport` knows nothing of Kubernetes: no paths, no JSON, no retries, no limits; those are `http_client`'s. Two
implementations: `aiohttp_transport` for the network, and the in-process one of `embedded`, which calls the ASGI
application and can cut, delay or lose bytes, so that framing, paging, retries and limits run under virtual time too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. `path` starts with a slash and is quoted already; the server is the transport's."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout: float | None = None
    """Seconds for the whole exchange, connecting and reading the answer included; None: no limit."""


class Response(Protocol):
    """The beginning of an answer; the body is read as it comes."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in any case find their value."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces of any size, framing left to the reader. Raises `OutcomeUnknown` when the
        connection ends before the body does."""
        ...

    async def read(self, limit: int) -> bytes:
        """The whole body; `TransportError` when it is longer than `limit` bytes."""
        ...


class Transport(Protocol):
    """Sends requests to one server, with its credentials. May be used by many tasks at once."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[Response]:
        """Opens the exchange; leaving the context gives up the rest of the body.

        Raises `NotSent` when the server surely has not seen the request (connection refused, name unknown, TLS refused)
        and `OutcomeUnknown` when it may have (reset or timed out after sending), as `KeptConnectionLost` where a
        connection of an earlier request ended. Redirects are not followed: a 3xx is an answer like any other.
        """
        ...

    async def close(self) -> None: ...
