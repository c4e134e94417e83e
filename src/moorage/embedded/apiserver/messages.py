"""Requests in and answers out as ASGI messages: bodies within their limit and time, headers, compression."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from moorage.api.errors import ApiError
from moorage.embedded.apiserver import bodies, presentation
from moorage.embedded.http import JSON, ServerAnswer
from moorage.framework.ports import Clock
from moorage.store import refusals

Offload: TypeAlias = Callable[[Callable[[], bytes]], Awaitable[bytes]]
"""Runs a computation where it does not hold up others."""

BODY_SECONDS = 60.0
"""How long a client may take to send a body."""
SEND_SECONDS = 60.0
"""How long a client may leave its connection full before it is given up."""
_WORTH_COMPRESSING = 128 * 1024
_PIECE = 256 * 1024
"""Bytes handed to the connection at once, so that a long answer does not pile up in it."""
_COMMON = [(b"cache-control", b"no-cache, private"), (b"x-content-type-options", b"nosniff")]
_JSON_HEADERS = [(b"content-type", JSON.encode()), *_COMMON]


class ClientGone(Exception):
    """The client went away before its request was complete."""


async def read_body(receive: Any, headers: Mapping[str, str], clock: Clock) -> bytes:
    """The whole body; 413 above the limit, 408 for one that does not come."""
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > bodies.MAX_BYTES:
        raise bodies.too_large()
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if len(body) > bodies.MAX_BYTES:
        raise bodies.too_large()
    if not message.get("more_body", False):
        return body
    return await _rest_of_body(receive, body, clock)


async def _rest_of_body(receive: Any, first: bytes, clock: Clock) -> bytes:
    parts, size = [first], len(first)
    task = asyncio.current_task()
    late = False

    def give_up() -> None:
        nonlocal late
        late = True
        if task is not None:
            task.cancel()

    timer = clock.call_later(BODY_SECONDS, give_up)
    try:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > bodies.MAX_BYTES:
                raise bodies.too_large()
            more = message.get("more_body", False)
    except asyncio.CancelledError:
        if not late:
            raise
        if task is not None:
            task.uncancel()
        raise _too_slow() from None
    finally:
        timer.cancel()
    return b"".join(parts)


def _too_slow() -> ApiError:
    message = f"the body of the request did not arrive within {BODY_SECONDS:g} seconds"
    return refusals.failure(408, "Timeout", message)


async def send_answer(
    send: Any,
    answer: ServerAnswer,
    headers: Mapping[str, str],
    offload: Offload | None,
    clock: Clock,
    abort: Callable[[], object] | None,
) -> None:
    """Sends it in one piece or several, compressed if it is long and the client asks for that."""
    body = answer.body
    extra: list[tuple[bytes, bytes]] = []
    if len(body) >= _WORTH_COMPRESSING and presentation.accepts_gzip(headers.get("accept-encoding", "")):
        body = await _compress(body, offload)
        extra = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": [*_headers(answer), *extra, (b"content-length", b"%d" % len(body))],
        }
    )
    if len(body) <= _PIECE:
        await send({"type": "http.response.body", "body": body, "more_body": False})
        return
    for start in range(0, len(body), _PIECE):
        end = start + _PIECE
        message = {"type": "http.response.body", "body": body[start:end], "more_body": end < len(body)}
        await send_patiently(send, message, clock, abort)


async def send_patiently(send: Any, message: dict[str, Any], clock: Clock, abort: Callable[[], object] | None) -> None:
    """Sends what may have to wait for the client to read; one that does not read for too long is given up.

    `abort` breaks its connection; None where that cannot be.
    """
    watchdog = clock.call_later(SEND_SECONDS, abort) if abort is not None else None
    try:
        await send(message)
    finally:
        if watchdog is not None:
            watchdog.cancel()


def _headers(answer: ServerAnswer) -> list[tuple[bytes, bytes]]:
    if answer.content_type == JSON and not answer.headers:
        return _JSON_HEADERS
    named = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in answer.headers]
    return [(b"content-type", answer.content_type.encode()), *_COMMON, *named]


async def _compress(body: bytes, offload: Offload | None) -> bytes:
    def compress() -> bytes:
        return gzip.compress(body, 1, mtime=0)

    return compress() if offload is None else await offload(compress)
