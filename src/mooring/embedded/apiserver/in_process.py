"""The client's Transport without sockets: it calls an ASGI application, and can spoil the bytes in between.

It behaves as a network and a server such as uvicorn do: a request that was sent is acted on even if the
client has given up, bytes for a client that has gone vanish, a full connection makes the application wait.
All waiting is asyncio's and the clock's, so it runs under virtual time. TLS and the HTTP framing of the
connection are not modelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from urllib.parse import unquote, urlencode

from mooring.api.errors import NotSent
from mooring.client.transport import Request, Response
from mooring.embedded.apiserver.exchanging import Exchange
from mooring.embedded.apiserver.wire_faults import Effect, WireFaults
from mooring.framework.ports import Clock

Message: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

_NOTHING = Effect()


class AsgiTransport:
    """A Transport to one application.

    `headers` go with every request, such as the credentials. `host` is what the application is told it was
    called by.
    """

    def __init__(
        self,
        app: AsgiApp,
        clock: Clock,
        *,
        headers: Mapping[str, str] | None = None,
        host: str = "127.0.0.1:6443",
        faults: WireFaults | None = None,
    ) -> None:
        self.down = False
        """While set, connections are refused; those that are open stay."""
        self._app = app
        self._clock = clock
        self._headers = dict(headers or {})
        self._host = host
        self._faults = faults
        self._open: dict[Exchange, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def send(self, request: Request) -> AsyncIterator[Response]:
        effect = self._faults.sent(request, self._clock.now()) if self._faults is not None else None
        effect = effect or _NOTHING
        if self.down or effect.refused:
            await asyncio.sleep(0)  # as any other call, it gives way to the loop
            raise NotSent(f"connect to {self._host}: connection refused")
        exchange = Exchange(request.body, effect, self._clock, request.timeout)
        task = asyncio.create_task(self._serve(exchange, request))
        self._open[exchange] = task
        task.add_done_callback(lambda _: self._open.pop(exchange, None))
        try:
            await exchange.begun()
            yield exchange
        finally:
            exchange.close()

    def cut(self, *, quietly: bool = False) -> int:
        """Ends all open connections, as a server does that dies (or one that closes them); says how many."""
        for exchange in self._open:
            exchange.cut(quietly=quietly)
        return len(self._open)

    async def close(self) -> None:
        """Ends what is open; the application is told, and cancelled if it goes on all the same."""
        self.down = True
        tasks = list(self._open.values())
        for exchange in list(self._open):
            exchange.cut()
            exchange.close()
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, exchange: Exchange, request: Request) -> None:
        """The server's side of one exchange."""
        if not await exchange.arrives():
            return
        try:
            await self._app(self._scope(request), exchange.receive, exchange.send)
        except Exception as error:
            context = {"message": f"the application failed at {request.method} {request.path}"}
            asyncio.get_running_loop().call_exception_handler({**context, "exception": error})
            exchange.crashed()
        else:
            exchange.returned()

    def _scope(self, request: Request) -> dict[str, Any]:
        named = {"host": self._host, **self._headers, **request.headers}
        if request.body and not any(name.lower() == "content-length" for name in named):
            named["content-length"] = str(len(request.body))
        port = self._host.rpartition(":")[2]
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "https",
            "path": unquote(request.path),
            "raw_path": request.path.encode(),
            "query_string": urlencode(request.query).encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", int(port) if port.isdigit() else 443),
        }
