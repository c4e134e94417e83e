"""The API server process as its parent sees it, and the JSON line that each sends to the other.

The parent writes `Orders` to the child's standard input and keeps it open: its end is the sign that the
parent is gone. The child answers `Ready` or `Refused` on standard output. Whatever else it has to say goes to
standard error as log lines. It is a process of its own, so that serving and the stand-ins never take time
from the scheduler.
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
from moorage.up.pools import Pool

START_SECONDS = 120.0
"""For loading a large data directory and making its nodes."""
STOP_SECONDS = 10.0
LINE_LIMIT = 16 << 20
EXTRA = {"cronsim": "cronsim", "jsonschema": "jsonschema", "pyjwt": "jwt"}
"""The packages of the extra `up` and the modules that they provide. Only the server process imports them."""


class Orders(msgspec.Struct, kw_only=True):
    """What kind of cluster to serve."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any free one."""
    data_dir: str = ""
    """Empty: in memory only."""
    pools: list[Pool] = []
    """Nodes that exist already stay as they are."""
    only_if_empty: bool = False
    """Make the pools only in a cluster that has no nodes yet."""
    numa: int = 0
    """NUMA zones of every node that are published; 0: none are."""
    objects: list[dict[str, Any]] = []
    """Applied in this order before the first request is answered."""
    objects_source: str = ""
    """Where the objects came from, for messages."""
    snapshot: list[dict[str, Any]] = []
    """Objects of another cluster, put in as they were there, before the others."""
    snapshot_source: str = ""
    verbosity: int = 0
    logging_format: Literal["text", "json"] = "text"


class Ready(msgspec.Struct, tag=True, kw_only=True):
    """The API answers."""

    server: str
    """https://127.0.0.1:port"""
    token: str
    ca: str
    """The certificate authority, PEM."""
    certificate: str
    key: str
    """A certificate of it for what else listens on this machine: the scheduler's endpoints."""
    nodes: int
    first: list[str] = []
    """UIDs of all objects."""
    applied: list[str] = []
    """`deployment.apps/web created`, one line an object, as kubectl says it."""
    warnings: list[str] = []
    """What of a snapshot could not be taken."""


class Refused(msgspec.Struct, tag=True):
    """It cannot be served."""

    error: str
    port_in_use: bool = False


Answer = Ready | Refused


class PortInUse(MoorageError):
    """The port that was asked for is taken."""


class ServerProcess:
    """A running API server. `ready` says where it is and how to get in."""

    def __init__(self, process: Process, ready: Ready) -> None:
        self._process = process
        self.ready = ready

    @classmethod
    async def start(cls, orders: Orders) -> ServerProcess:
        """Raises a MoorageError with the server's own sentence when it cannot serve."""
        if missing := [package for package, module in EXTRA.items() if find_spec(module) is None]:
            which = "which is" if len(missing) == 1 else "which are"
            needs = f"the embedded cluster needs {', '.join(missing)}, {which} not installed"
            raise MoorageError(f"{needs}: pip install 'moorage[up]'")
        process = await spawn("moorage.up.child")
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
        """Waits until the process has ended by itself; its exit code."""
        return await self._process.wait()

    async def stop(self) -> None:
        await end(self._process)

    @property
    def pid(self) -> int:
        return self._process.pid


async def spawn(module: str, *sockets: int) -> Process:
    """A child that runs the module. It gets these sockets, and ends when its standard input does."""
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
        pass  # it ended before reading; the end of its output says so too
    line = await process.stdout.readline()
    if not line:
        code = await process.wait()
        raise MoorageError(
            f"the API server ended with exit code {code} before it was ready; see its log above"
        )
    answer: Answer = msgspec.json.decode(line, type=Answer)
    if isinstance(answer, Refused):
        raise (PortInUse if answer.port_in_use else MoorageError)(answer.error)
    return answer


async def end(process: Process) -> None:
    """Closing its standard input is the sign; what does not listen is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
    if process.stdout is not None:
        await process.stdout.read()  # to its end: only then does the loop let go of the pipe


async def end_of_input() -> None:
    """In the child: returns when the parent has closed our standard input, or died."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    os.set_blocking(0, False)

    def readable() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            ended.set()

    loop.add_reader(0, readable)
    await ended.wait()
