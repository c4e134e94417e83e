"""Serving the application on a port: starts inside a running loop, knows its real port, stops cleanly."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import secrets
import socket
import ssl
from collections.abc import Callable

from uvicorn.config import Config
from uvicorn.server import ServerState

from moorage.api.errors import MoorageError
from moorage.embedded.apiserver.app import ApiServer
from moorage.embedded.apiserver.authentication import own_hosts
from moorage.serving.connections import Connection, ConnectionLimits

_BACKLOG = 1024
_STOP_SECONDS = 5.0


class CannotListen(MoorageError):
    """The server cannot be started; the message says why and what to do."""


class PortInUse(CannotListen):
    """Another process has the port."""


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


async def offload(compute: Callable[[], bytes]) -> bytes:
    """In a thread of the loop's pool; for work that lets go of the interpreter lock, as compression does."""
    return await asyncio.get_running_loop().run_in_executor(None, compute)


class HttpServer:
    """One listening port. `tls` None serves plain HTTP, on loopback only.

    `host` must be a loopback address unless `public` is set, which needs TLS.
    """

    def __init__(
        self,
        app: ApiServer,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        public: bool = False,
        limits: ConnectionLimits | None = None,
    ) -> None:
        _check_host(host, public, tls)
        self.host = host
        self.port = port
        """The port asked for; the real one once the server has started."""
        self._app = app
        self._tls = tls
        self._limits = limits or ConnectionLimits()
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._listening: socket.socket | None = None

    @property
    def url(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self._tls is None else 'https'}://{name}:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._state.connections)

    def reserve(self) -> socket.socket:
        """Takes the port without answering yet; CannotListen if that is not possible."""
        if self._listening is None:
            self._listening = self._bind()
            self.port = self._listening.getsockname()[1]
        return self._listening

    async def start(self) -> None:
        """Listens; CannotListen if that is not possible."""
        loop = asyncio.get_running_loop()
        config = Config(
            self._app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=self._limits.keep_alive_seconds,
        )
        config.load()
        # Every malformed request would be a line; our own log says what matters.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        listening = self.reserve()
        if self._app.guard.hosts is None:
            self._app.guard.hosts = own_hosts(self.port)
        self._server = await loop.create_server(
            lambda: Connection(config, self._state, loop, self._limits),
            sock=listening,
            ssl=self._tls,
            backlog=_BACKLOG,
        )

    async def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Takes no more requests, ends the watches, gives answers under way some time, then breaks off."""
        if self._server is None:
            if self._listening is not None:
                self._listening.close()
            return
        self._server.close()
        self._app.close()
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            # Each time anew: those whose handshake was under way come later.
            for connection in list(self._state.connections):
                connection.shutdown()
            await asyncio.sleep(0.01)
            if not self._state.connections and not self._state.tasks:
                break
        for connection in list(self._state.connections):
            connection.transport.abort()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets the aborted transports report their end
        self._server = None

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.host, self.port))
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise _cannot_listen(self.host, self.port, error) from error
        listening.setblocking(False)
        return listening


def _check_host(host: str, public: bool, tls: ssl.SSLContext | None) -> None:
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise CannotListen(f"{host!r} is no address; write 127.0.0.1 or ::1") from None
    if loopback:
        return
    if not public:
        raise CannotListen(
            f"{host} can be reached from other machines; use 127.0.0.1, or ask for it expressly"
        )
    if tls is None:
        raise CannotListen(
            f"{host} can be reached from other machines and needs TLS; use 127.0.0.1 without it"
        )


def _cannot_listen(host: str, port: int, error: OSError) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return PortInUse(f"port {port} on {host} is in use; choose another one, or 0 for any that is free")
    if error.errno == errno.EACCES:
        return CannotListen(f"port {port} on {host} needs more rights; choose one above 1023")
    if error.errno == errno.EADDRNOTAVAIL:
        return CannotListen(f"this machine has no address {host}; use 127.0.0.1")
    return CannotListen(f"cannot listen on {host} port {port}: {error.strerror}; choose another port")
