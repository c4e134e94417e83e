"""HTTP listeners for all servers of Moorage: the endpoints, the extender and the embedded API server.

A Listener serves on the running loop; a ServingThread has a thread and a loop for it. The endpoints of a
scheduler use a thread, so that they still answer while the scheduling loop is blocked.
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
"""Errors of a system that has run out of a resource."""
PER_PEER = 64
"""Connections of one address: a scraper and a few probes need fewer."""

MakeApp = Callable[[], Awaitable[Any]]
"""Makes the application on the loop of the thread, where its clients live."""
Chore = Callable[[], Coroutine[Any, Any, None]]


class CannotListen(MoorageError):
    """The port cannot be served; the message says why and what to do."""


class PortInUse(CannotListen):
    """Another process has the port."""


class PeerLimited(Connection):
    """A connection that is closed at once if its peer has too many."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peers = [getattr(other, "client", None) for other in self.connections]
        if self.client and sum(peer is not None and peer[0] == self.client[0] for peer in peers) > PER_PEER:
            transport.abort()


class Listener:
    """A port and its connections. The constructor takes the port; `start` answers on the running loop."""

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        *,
        limits: ConnectionLimits = LIMITS,
        connection: type[Connection] = PeerLimited,
        flag: str = "--secure-port",
        backlog: int = BACKLOG,
    ) -> None:
        """`context` None serves plain HTTP. `flag` is where the user set the port."""
        self._socket = listen(host, port, flag, backlog)
        self.port: int = self._socket.getsockname()[1]
        """The real port, also if 0 was requested."""
        self._context = context
        self._limits = limits
        self._connection = connection
        self._backlog = backlog
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._state.connections)

    async def start(self, app: Any) -> None:
        loop, limits, state = asyncio.get_running_loop(), self._limits, self._state
        config = Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=limits.keep_alive_seconds,
        )
        config.load()
        # Otherwise every malformed request would be a line in the log.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = await loop.create_server(
            lambda: self._connection(config, state, loop, limits),
            sock=self._socket,
            ssl=self._context,
            backlog=1,
            ssl_handshake_timeout=limits.head_seconds if self._context else None,
        )
        # asyncio accepts as many connections in a row as the backlog is long. Without file descriptors, each
        # of them fails, is logged and sets a timer. With a backlog of 1 it waits a second after each failure;
        # the queue of the kernel keeps its length.
        self._socket.listen(self._backlog)

    async def stop(self, seconds: float = STOP_SECONDS, before: Callable[[], None] | None = None) -> None:
        """Take no more requests, wait for running ones, then abort them. `before` is called when no new
        connection is accepted any more, to end answers without an end."""
        if self._server is None:
            self._socket.close()
            return
        self._server.close()
        self._server = None
        if before is not None:
            before()
        state, loop = self._state, asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            # Each time again: connections whose handshake was running appear later.
            for connection in list(state.connections):
                connection.shutdown()
            await asyncio.sleep(0.01)
            if not (state.connections or state.tasks) or loop.time() >= deadline:
                break
        self.abort_connections()
        tasks = list(state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets the aborted transports report their end

    def abort_connections(self) -> None:
        """Close all open connections at once, without sending the rest of their answers."""
        for connection in list(self._state.connections):
            connection.transport.abort()


class ServingThread:
    """Listens in a thread, from `start` to `stop`."""

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
        """Start the thread. Returns when requests are answered."""
        self._thread.start()
        self._started.wait(seconds)
        if self._problem is not None:
            raise MoorageError(f"cannot serve the endpoints: {self._problem}") from self._problem

    def stop(self) -> None:
        """Stop the thread; blocks for a moment."""
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
    """Log what asyncio can report to no caller; a lack of file descriptors without a stack."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        _log.error("No connection can be accepted; trying again in a second", error=error)
    else:
        loop.default_exception_handler(context)


def listen(host: str, port: int, flag: str, backlog: int = BACKLOG) -> socket.socket:
    """Take a port; `flag` is where the user set it. Raises CannotListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(backlog)
    except OSError as error:
        listening.close()
        kind = PortInUse if error.errno == errno.EADDRINUSE else CannotListen
        raise kind(f"cannot listen on {host} port {port}: {_why(error, flag)}") from error
    listening.setblocking(False)
    return listening


def _why(error: OSError, flag: str) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"it is in use; set another {flag}"
        case errno.EACCES:
            return f"permission denied; set a {flag} above 1023"
        case errno.EADDRNOTAVAIL:
            return "this machine does not have that address"
        case _:
            return error.strerror or str(error)
