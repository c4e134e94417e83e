"""The Transport over the network, on aiohttp.

aiohttp may do nothing on its own: no redirects, no cookies, no proxies from the environment, no decompression. By
itself it sends GET, PUT and DELETE a second time when a kept connection turns out to be closed; the middleware below
turns that failure into an error of ours before aiohttp sees it, because a DELETE that was sent may have happened.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from moorage.api.errors import KeptConnectionLost, NotSent, OutcomeUnknown, TransportError
from moorage.client.credentials import Bearer, Credentials, TlsContexts
from moorage.client.transport import HttpRequest, Response
from moorage.framework.ports import Clock

CONNECTIONS = 256
"""Open at once; more requests than that wait for one to be free."""
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 30.0
"""For how long an unused connection is kept; API servers close them after 90 s."""
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 45_000}
"""A peer that has vanished is noticed within 45 s."""
HEADER_BYTES = 16 * 1024
CHUNK_BYTES = 64 * 1024

_FAILURES = (aiohttp.ClientError, OSError)


@dataclass(slots=True, eq=False)
class _Progress:
    """How far one request has come."""

    connected: bool = False
    """From here on the server may have seen it."""
    kept: bool = False
    """Whether the connection is from an earlier request."""


class AiohttpTransport:
    """Sends to one server with one set of credentials. Belongs to the loop that first uses it."""

    def __init__(self, credentials: Credentials, clock: Clock) -> None:
        self._bearer = Bearer(credentials, clock)
        self._tls = TlsContexts(clock)
        self._base = credentials.server.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        if self._base.startswith("https:"):
            self._tls.current(credentials)  # certificates that are unusable are reported now, not by a request

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncIterator[Response]:
        response = await self._open(request)
        try:
            yield _Answer(response, request)
        finally:
            # What has not been read is given up with its connection.
            response.close() if not response.content.is_eof() else response.release()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _open(self, request: HttpRequest) -> aiohttp.ClientResponse:
        token = await self._bearer.token()
        response = await self._exchange(request, token)
        # A request that was refused for its credentials was not acted on, so that it may be sent again.
        if response.status != 401 or not await self._bearer.refused(token):
            return response
        response.close()
        return await self._exchange(request, await self._bearer.token())

    async def _exchange(self, request: HttpRequest, token: str) -> aiohttp.ClientResponse:
        credentials = self._bearer.credentials
        headers = {**request.headers, "Authorization": f"Bearer {token}"} if token else request.headers
        options: dict[str, Any] = {}
        if self._base.startswith("https:"):
            options["ssl"] = self._tls.current(credentials)
            options["server_hostname"] = credentials.tls_server_name or None
        progress = _Progress()
        try:
            return await self._opened().request(
                request.method,
                self._url(request),
                headers=headers,
                data=request.body or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=request.timeout, sock_connect=CONNECT_SECONDS),
                proxy=credentials.proxy or None,
                trace_request_ctx=progress,
                **options,
            )
        except (_Failed, *_FAILURES, TimeoutError) as error:
            raise self._explain(request, error, progress) from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=CONNECTIONS, keepalive_timeout=IDLE_SECONDS, socket_factory=_make_socket
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                max_line_size=HEADER_BYTES,
                max_field_size=HEADER_BYTES,
                read_bufsize=CHUNK_BYTES,
                middlewares=(_once,),
                trace_configs=[_tracing()],
            )
        return self._session

    def _url(self, request: HttpRequest) -> URL:
        query = f"?{urlencode(request.query)}" if request.query else ""
        return URL(f"{self._base}{request.path}{query}", encoded=True)

    def _explain(self, request: HttpRequest, error: Exception, progress: _Progress) -> TransportError:
        what = f"{request.method} {request.path}"
        cause = error.__cause__ if isinstance(error, _Failed) and error.__cause__ else error
        reason = _reason(cause, request)
        if progress.connected:
            lost = progress.kept and not isinstance(cause, TimeoutError)
            kind = KeptConnectionLost if lost else OutcomeUnknown
            return kind(f"{what}: no answer from {self._base}: {reason}")
        source = self._bearer.credentials.source
        return NotSent(f"{what}: cannot connect to {self._base}: {reason}; see {source}")


class _Answer:
    """Implements `transport.Response`."""

    def __init__(self, response: aiohttp.ClientResponse, request: HttpRequest) -> None:
        self._response = response
        self._request = request

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        read = self._response.content.readany
        try:
            while chunk := await read():
                yield chunk
        except (*_FAILURES, TimeoutError) as error:
            what = f"{self._request.method} {self._request.path}"
            raise OutcomeUnknown(f"{what}: the answer broke off: {_reason(error, self._request)}") from error

    async def read(self, limit: int) -> bytes:
        chunks, size = [], self._response.content_length or 0
        if size <= limit:
            size = 0
            async for chunk in self.chunks():
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    break
        if size > limit:
            what = f"{self._request.method} {self._request.path}"
            raise TransportError(f"{what}: the answer is longer than the {limit} bytes that are read at most")
        return b"".join(chunks)


class _Failed(Exception):
    """Carries a failure past aiohttp, which would otherwise send the request again."""


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except _FAILURES as error:
        raise _Failed from error


def _tracing() -> aiohttp.TraceConfig:
    async def connected(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
        context.trace_request_ctx.connected = True

    async def kept(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
        context.trace_request_ctx.connected = context.trace_request_ctx.kept = True

    config = aiohttp.TraceConfig()
    config.on_connection_create_end.append(connected)
    config.on_connection_reuseconn.append(kept)
    return config


def _make_socket(info: Any) -> socket.socket:
    family, kind, protocol, _, _ = info
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # not every system has them all
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _reason(error: BaseException, request: HttpRequest) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        found = getattr(error, "certificate_error", error)
        return f"the server's certificate is not trusted ({found}); check certificate-authority"
    if isinstance(error, asyncio.TimeoutError):
        return f"timed out ({request.timeout or CONNECT_SECONDS:g} s)"
    if isinstance(error, aiohttp.ClientConnectorError):
        return _os_reason(error.os_error)  # its own text has the address of an object
    return str(error) or type(error).__name__


def _os_reason(error: OSError) -> str:
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
