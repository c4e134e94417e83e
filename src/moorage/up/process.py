"""The child processes of `moorage up` as their parent sees them: the API server and the web UI.

The parent writes orders as a line of JSON to a child's standard input and keeps it open; when it is closed,
the parent is gone and the child ends. The API server answers `Ready` or `Refused` on standard output;
everything else goes to the log on standard error. Separate processes never take time from the scheduler.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from importlib.util import find_spec
from typing import Any, Literal

import msgspec

from moorage.api.errors import MoorageError
from moorage.serving.server import PortInUse
from moorage.telemetry import logs
from moorage.up.pools import Pool
from moorage.web.guard import address, new_token, take_port

START_SECONDS = 120.0
"""Long enough to load a large data directory and create its nodes."""
STOP_SECONDS = 10.0
LINE_LIMIT = 16 << 20
EXTRA = {"cronsim": "cronsim", "google-re2": "re2", "jsonschema": "jsonschema", "pyjwt": "jwt"}
"""The packages of the extra `up` and the modules that they provide. Only the server process imports them."""
NO_UI = "The web UI needs packages that are not installed: pip install 'moorage[ui]'"
_log = logs.get(__name__)


class Orders(msgspec.Struct, kw_only=True):
    """The cluster to serve."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 for any free port."""
    data_dir: str = ""
    """Empty to keep the cluster in memory only."""
    pools: list[Pool] = []
    """Nodes to create; existing nodes stay as they are."""
    only_if_empty: bool = False
    """Create the pools only in a cluster without nodes."""
    numa: int = 0
    """The number of NUMA zones to publish for every node; 0 for none."""
    objects: list[dict[str, Any]] = []
    """Objects to apply, in this order, before the first request is answered."""
    objects_source: str = ""
    """The origin of the objects, for messages."""
    snapshot: list[dict[str, Any]] = []
    """Objects of another cluster, loaded unchanged before the others."""
    snapshot_source: str = ""
    verbosity: int = 0
    logging_format: Literal["text", "json"] = "text"


class Ready(msgspec.Struct, tag=True, kw_only=True):
    """The API server answers requests."""

    server: str
    """https://127.0.0.1:port"""
    token: str
    ca: str
    """The certificate authority, PEM."""
    certificate: str
    key: str
    """A certificate of this authority for the scheduler's endpoints."""
    nodes: int
    first: list[str] = []
    """UIDs of all objects."""
    applied: list[str] = []
    """One line for each object, as kubectl prints it: `deployment.apps/web created`."""
    warnings: list[str] = []
    """Objects of a snapshot that could not be loaded."""


class Refused(msgspec.Struct, tag=True):
    """The API server cannot serve."""

    error: str
    port_in_use: bool = False


Answer = Ready | Refused


class ServerProcess:
    """A running API server. `ready` has its address and credentials."""

    def __init__(self, process: Process, ready: Ready) -> None:
        self._process = process
        self.ready = ready

    @classmethod
    async def start(cls, orders: Orders) -> ServerProcess:
        """Start the process. Raises a MoorageError with the server's own message if it cannot serve."""
        if missing := [package for package, module in EXTRA.items() if find_spec(module) is None]:
            which = "which is" if len(missing) == 1 else "which are"
            needs = f"the embedded cluster needs {', '.join(missing)}, {which} not installed"
            raise MoorageError(f"{needs}: pip install 'moorage[up]'")
        process = await spawn("moorage.up.server")
        try:
            ready = await asyncio.wait_for(_conversation(process, orders), START_SECONDS)
        except TimeoutError:
            await end(process)
            raise MoorageError(f"the API server was not ready after {START_SECONDS:.0f} seconds") from None
        except BaseException:
            await end(process)
            raise
        return cls(process, ready)

    async def ended(self) -> int:
        """Wait until the process has ended by itself. Returns its exit code."""
        return await self._process.wait()

    async def stop(self) -> None:
        await end(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid


async def spawn(module: str, *sockets: int) -> Process:
    """Start a child that runs a module and inherits these sockets. It ends when its standard input is closed."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I" if sys.flags.isolated else "-P",  # nothing is imported from the current folder
        "-m",
        module,
        stdin=PIPE,
        stdout=PIPE,
        limit=LINE_LIMIT,
        start_new_session=True,  # Ctrl-C reaches the parent only, which stops the child in its turn
        pass_fds=sockets,
    )


async def _conversation(process: Process, orders: Orders) -> Ready:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(orders) + b"\n")
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it ended before reading; so does its output
    line = await process.stdout.readline()
    if not line:
        code = await process.wait()
        raise MoorageError(f"the API server ended with exit code {code} before it was ready; see its log above")
    answer: Answer = msgspec.json.decode(line, type=Answer)
    if isinstance(answer, Refused):
        raise (PortInUse if answer.port_in_use else MoorageError)(answer.error)
    return answer


async def end(process: Process) -> None:
    """End a child by closing its standard input; kill it if it does not react."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
    if process.stdout is not None:
        await process.stdout.read()  # until its end: only then does the loop release the pipe


class UiOrders(msgspec.Struct, kw_only=True):
    """What the web UI shows, and to whom."""

    socket: int
    """The listening socket, which the child inherits."""
    token: str
    """The token that opens the pages."""
    scheduler: str
    """The address of the scheduler's endpoints."""
    server: str
    """The address of the API server."""
    bearer: str
    """The token for both."""
    ca: str
    first: list[str]
    """UIDs of the objects that the cluster was started with."""
    verbosity: int = 0
    logging_format: Literal["text", "json"] = "text"


class UiProcess:
    """The web UI of an embedded cluster. `start` returns at once; a browser that is faster waits. The cluster
    continues without the UI if it fails. `line` is what to print about it."""

    def __init__(self) -> None:
        self.line = ""
        self._process: Process | None = None
        self._watching: asyncio.Future[None] | None = None

    async def start(self, scheduler: str, cluster: Ready) -> None:
        if find_spec("nicegui") is None:
            self.line = NO_UI
            return
        try:
            listening = take_port()
        except MoorageError as error:
            self.line = f"No web UI: {error}"
            return
        verbosity, logging_format = logs.current()
        orders = UiOrders(
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
        self._watching = asyncio.ensure_future(self._report(self._process))

    async def _report(self, process: Process) -> None:
        code = await process.wait()
        _log.error("The web UI ended; the cluster goes on without it", code=code)

    async def stop(self) -> None:
        if self._process is not None and self._watching is not None:
            self._watching.cancel()
            await end(self._process)


async def end_of_input() -> None:
    """Return when the parent has closed the standard input of this child, or has died."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    os.set_blocking(0, False)

    def readable() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            ended.set()

    loop.add_reader(0, readable)
    await ended.wait()
