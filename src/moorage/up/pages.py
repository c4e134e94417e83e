"""The web UI of an embedded cluster: a process beside the scheduler, as its parent sees it.

The port is taken and the token made by the parent, so the address is known before the pages are there; a
browser that is faster waits. Without the UI the cluster goes on.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from importlib.util import find_spec
from typing import Literal

import msgspec

from moorage.api.errors import MoorageError
from moorage.telemetry import logs
from moorage.up.process import Ready, end, spawn
from moorage.web.sources.address import address, new_token, take_port

MISSING = "The web UI needs packages that are not installed: pip install 'moorage[ui]'"

_log = logs.get(__name__)


class PagesOrders(msgspec.Struct, kw_only=True):
    """What to show, and to whom: one line of JSON on standard input."""

    socket: int
    """Inherited; it listens."""
    token: str
    """Opens the pages."""
    scheduler: str
    """The scheduler's endpoints."""
    server: str
    """The API server."""
    bearer: str
    """The token for both."""
    ca: str
    first: list[str]
    """UIDs of the objects that the cluster was started with."""
    verbosity: int = 0
    logging_format: Literal["text", "json"] = "text"


class Pages:
    """`start` returns at once. `line` is what to say about the pages."""

    def __init__(self) -> None:
        self.line = ""
        self._process: Process | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def start(self, scheduler: str, cluster: Ready) -> None:
        if find_spec("nicegui") is None:
            self.line = MISSING
            return
        try:
            listening = take_port()
        except MoorageError as error:
            self.line = f"Without the web UI: {error}"
            return
        verbosity, logging_format = logs.current()
        orders = PagesOrders(
            socket=listening.fileno(),
            token=new_token(),
            scheduler=scheduler,
            server=cluster.server,
            bearer=cluster.token,
            ca=cluster.ca,
            first=cluster.first,
            verbosity=verbosity,
            logging_format=logging_format,
        )
        with listening:
            self._process = await spawn("moorage.up.ui_child", orders.socket)
            self.line = f"Or open {address(listening, orders.token)}"
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(orders) + b"\n")
        self._waiting = asyncio.ensure_future(self._report(self._process))

    async def _report(self, process: Process) -> None:
        code = await process.wait()
        _log.error("The web UI ended; the cluster goes on without it", code=code)

    async def stop(self) -> None:
        if self._process is not None and self._waiting is not None:
            self._waiting.cancel()
            await end(self._process)
