"""Serving an application on a port: on the loop that runs, or in a thread with a loop of its own.

The endpoints of a scheduler have their own thread: one whose loop is blocked is still asked how it is, and
its endpoints can tell.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from moorage.api.errors import MoorageError
from moorage.serving.connections import Connection, ConnectionLimits
from moorage.telemetry import logs

_log = logs.get(__name__)

BACKLOG = 128
STOP_SECONDS = 2.0
LIMITS = ConnectionLimits(connections=256, head_bytes=64 * 1024, head_seconds=10.0, keep_alive_seconds=90)
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""What a system says that has run out."""
PER_PEER = 64
"""Connections of one address: a scraper and a few probes need less."""

MakeApp = Callable[[], Awaitable[Any]]
"""Makes the application on the thread's loop, where its clients live."""
Chore = Callable[[], Coroutine[Any, Any, None]]


class PeerLimited(Connection):
    """A connection that is closed at once when its peer has too many."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peers = [getattr(other, "client", None) for other in self.connections]
        if self.client and sum(peer is not None and peer[0] == self.client[0] for peer in peers) > PER_PEER:
            transport.abort()


class Listener:
    """A port and the connections on it. Taken when made; served from `start` to `stop`, on that loop."""

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        *,
        limits: ConnectionLimits = LIMITS,
        connection: type[Connection] = PeerLimited,
        flag: str = "--secure-port",
    ) -> None:
        self._socket = listen(host, port, flag)
        self.port: int = self._socket.getsockname()[1]
        """The real one, also when 0 was asked for."""
        self._context = context
        """None: plain HTTP."""
        self._limits = limits
        self._connection = connection
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start(self, app: Any) -> None:
        loop, limits, state = asyncio.get_running_loop(), self._limits, self._state
        config = Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=limits.keep_alive_seconds,
        )
        config.load()
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = await loop.create_server(
            lambda: self._connection(config, state, loop, limits),
            sock=self._socket,
            ssl=self._context,
            backlog=1,
            ssl_handshake_timeout=10.0 if self._context else None,
        )
        # asyncio accepts as many in a row as the backlog is long, and out of file descriptors it fails, logs
        # and sets a timer for each of them. One at a time it waits a second after each; the kernel's queue
        # keeps its length.
        self._socket.listen(BACKLOG)

    async def stop(self) -> None:
        """No new requests; answers under way have some time, then they are broken off."""
        if self._server is None:
            self._socket.close()
            return
        self._server.close()
        connections, loop = self._state.connections, asyncio.get_running_loop()
        for connection in list(connections):
            connection.shutdown()
        deadline = loop.time() + STOP_SECONDS
        while connections and loop.time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(connections):
            connection.transport.abort()
        await asyncio.sleep(0)


class ServingThread:
    """Listens from `start` on until `stop`."""

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext, make_app: MakeApp, chores: tuple[Chore, ...] = ()
    ) -> None:
        self.host = host
        self._listener = Listener(host, port, context)
        self.port = self._listener.port
        self._make_app = make_app
        self._chores = chores
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="serving", daemon=True)

    def start(self, seconds: float = 10.0) -> None:
        """Return when requests are answered."""
        self._thread.start()
        self._started.wait(seconds)
        if self._problem is not None:
            raise MoorageError(f"the endpoints cannot be served: {self._problem}") from self._problem

    def stop(self) -> None:
        """End the thread; blocks for a moment."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(STOP_SECONDS + 2.0)

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(_on_problem)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._problem = error
            _log.error("Serving ended", error=error, stack=True)
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        app = await self._make_app()
        await self._listener.start(app)
        chores = [asyncio.create_task(chore()) for chore in self._chores]
        self._started.set()
        try:
            await self._stop.wait()
        finally:
            for chore in chores:
                chore.cancel()
            await asyncio.gather(*chores, return_exceptions=True)
            await self._listener.stop()
            close = getattr(app, "close", None)
            if close is not None:
                await close()


def _on_problem(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What asyncio can report to no caller. That nothing can be accepted is a line, not a stack."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        _log.error("No connection can be accepted; the next try is in a second", error=error)
    else:
        loop.default_exception_handler(context)


def listen(host: str, port: int, flag: str) -> socket.socket:
    """`flag` is where the user set the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise MoorageError(f"cannot listen on {host} port {port}: {_why(error, flag)}") from error
    listening.setblocking(False)
    return listening


def _why(error: OSError, flag: str) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"it is in use; set another {flag}"
        case errno.EACCES:
            return f"that needs more rights; set a {flag} above 1023"
        case _:
            return f"{error.strerror}; correct --bind-address"
