"""A proxy between Moorage and the API server that answers badly on request.

Terminates TLS on both sides and works on whole requests, so that a fault can be aimed at one kind of call. It
lives in a thread with a loop of its own; tests set faults from theirs.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientConnectionError, ClientPayloadError, ClientSession, ClientTimeout, TCPConnector, web

from tests.cluster.certificates import KeyPair

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade"}


@dataclass(slots=True)
class Seen:
    """One request, as faults are aimed at it."""

    method: str
    path: str
    watch: bool
    probe: bool = False
    """A list of one object, which only reads the version of the server."""

    @property
    def bind(self) -> bool:
        return self.method == "POST" and self.path.endswith("/binding")

    @property
    def new_event(self) -> bool:
        return self.method == "POST" and self.path.endswith("/events")

    @property
    def lease(self) -> bool:
        return "/leases" in self.path


Aim = Callable[[Seen], bool]


@dataclass(slots=True)
class Fault:
    """What happens to requests that are aimed at; the first that fits counts."""

    aim: Aim
    status: int = 0
    """Answer with this instead of asking the server."""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before anything else."""
    drop: bool = False
    """Close the connection without an answer; the server never sees the request."""
    lose_answer: bool = False
    """Let the server do it, then close the connection without an answer."""
    times: int = -1
    """How often; negative: as long as it is set."""
    hits: int = 0


class FaultProxy:
    """Runs inside `with`. `server` is its own address."""

    def __init__(self, upstream: str, authority: Path, serving: KeyPair) -> None:
        self._upstream = upstream
        self._trust = ssl.create_default_context(cafile=str(authority))
        self._serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._serving.load_cert_chain(serving.cert, serving.key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fault proxy", daemon=True)
        self._ready, self._over = threading.Event(), asyncio.Event()
        self._faults: list[Fault] = []
        self._cuts = 0
        self._session: ClientSession
        self.server = ""
        self.seen: list[Seen] = []

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        assert self._ready.wait(20), "the fault proxy did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[Fault]:
        """In force inside the `with`."""
        self._faults.append(fault)
        try:
            yield fault
        finally:
            self._faults.remove(fault)

    def cut_watches(self) -> None:
        """Every open watch ends in the middle of its next line."""
        self._cuts += 1

    # In the thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._serving)
        await site.start()
        address = runner.addresses[0]
        self.server = f"https://127.0.0.1:{address[1]}"
        connector = TCPConnector(ssl=self._trust, limit=0)
        timeout = ClientTimeout(total=None)
        async with ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
            self._session = session
            self._ready.set()
            await self._over.wait()
            await runner.cleanup()
        await asyncio.sleep(0.3)  # TLS connections take a few turns of the loop to be closed

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        seen = Seen(request.method, request.path, query.get("watch", "") in ("1", "true"), query.get("limit") == "1")
        self.seen.append(seen)
        fault = self._fault_for(seen)
        if fault is not None:
            await asyncio.sleep(fault.delay)
            if fault.drop:
                return _abort(request)
            if fault.status:
                return web.json_response(_status(fault.status), status=fault.status, headers=fault.headers)
        try:
            return await self._pass(request, lose=fault is not None and fault.lose_answer)
        except (ClientConnectionError, ClientPayloadError, ConnectionError):
            return _abort(request)

    def _fault_for(self, seen: Seen) -> Fault | None:
        for fault in self._faults:
            if fault.times and fault.aim(seen):
                fault.times -= fault.times > 0
                fault.hits += 1
                return fault
        return None

    async def _pass(self, request: web.Request, *, lose: bool) -> web.StreamResponse:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP}
        body = await request.read()
        cuts = self._cuts
        async with self._session.request(
            request.method, self._upstream + request.raw_path, headers=headers, data=body or None,
            allow_redirects=False,
        ) as answer:  # fmt: skip
            if lose:
                await answer.read()
                return _abort(request)
            response = web.StreamResponse(status=answer.status)
            for key, value in answer.headers.items():
                if key.lower() not in HOP_BY_HOP:
                    response.headers[key] = value
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                if self._cuts != cuts and b"\n" in chunk and "watch=" in request.raw_path:
                    # The chunk ends one or more lines: half of it ends inside of one.
                    await response.write(chunk[: max(1, len(chunk) // 2)])
                    return _abort(request)
                await response.write(chunk)
            await response.write_eof()
            return response


def _abort(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _status(code: int) -> dict[str, object]:
    reason = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}.get(code, "")
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "code": code,
        "message": f"the fault proxy says {code}",
    }
