"""Serves the embedded API server on a port of this machine."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import ssl
from collections.abc import Callable

from moorage.embedded.apiserver.app import ApiServer
from moorage.embedded.apiserver.authentication import own_hosts
from moorage.serving.connections import Connection, ConnectionLimits
from moorage.serving.server import CannotListen, Listener

BACKLOG = 1024
STOP_SECONDS = 5.0


def new_token() -> str:
    """Return 256 random bits."""
    return secrets.token_urlsafe(32)


async def offload(compute: Callable[[], bytes]) -> bytes:
    """Run work that releases the interpreter lock, such as compression, in a thread of the loop's pool."""
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
        """The requested port; the real one after `reserve` or `start`."""
        self._app = app
        self._tls = tls
        self._limits = limits or ConnectionLimits()
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self._tls is None else 'https'}://{name}:{self.port}"

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return self._listener.connections if self._listener is not None else 0

    def reserve(self) -> Listener:
        """Take the port without answering yet. Raises CannotListen."""
        if self._listener is None:
            self._listener = Listener(
                self.host,
                self.port,
                self._tls,
                limits=self._limits,
                connection=Connection,
                flag="--port",
                backlog=BACKLOG,
            )
            self.port = self._listener.port
        return self._listener

    async def start(self) -> None:
        """Answer requests. Raises CannotListen."""
        listener = self.reserve()
        if self._app.guard.hosts is None:
            self._app.guard.hosts = own_hosts(self.port)
        await listener.start(self._app)

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Take no more requests, end the watches, give running answers some time, then abort them."""
        if self._listener is not None:
            await self._listener.stop(seconds, before=self._app.close)


def _check_host(host: str, public: bool, tls: ssl.SSLContext | None) -> None:
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise CannotListen(f"{host!r} is not an IP address; use 127.0.0.1 or ::1") from None
    if loopback:
        return
    if not public:
        raise CannotListen(f"{host} is reachable from other machines; use 127.0.0.1, or set `public`")
    if tls is None:
        raise CannotListen(f"{host} is reachable from other machines and needs TLS; without TLS use 127.0.0.1")
