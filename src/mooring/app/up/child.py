"""The process of the embedded API server: reads its orders, serves, and ends when its parent does."""

from __future__ import annotations

import asyncio
import gc
import os
import sys

import msgspec
import uvloop

from mooring.api.errors import MooringError
from mooring.app.up.process import Answer, Orders, Refused
from mooring.app.up.server import EmbeddedServer
from mooring.embedded.apiserver.server import PortInUse
from mooring.telemetry import logs


def main() -> int:
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    logs.setup(orders.verbosity, orders.logging_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(orders))


async def _serve(orders: Orders) -> int:
    parent_gone = asyncio.ensure_future(_end_of_input())
    server: EmbeddedServer | None = None
    try:
        server = EmbeddedServer(orders)
        _say(await server.start())
    except MooringError as error:
        _say(Refused(str(error), port_in_use=isinstance(error, PortInUse)))
        if server is not None:
            await server.stop()
        return 1
    _calm_collector()
    await parent_gone
    await server.stop()
    return 0


def _calm_collector() -> None:
    """Objects of the store are plain JSON that refers to nothing in a circle: looking through all of them
    again and again finds nothing, and stops the server for long."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 1000)


def _say(answer: Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


async def _end_of_input() -> None:
    """Returns when the parent has closed our standard input, or died."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    os.set_blocking(0, False)

    def readable() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            ended.set()

    loop.add_reader(0, readable)
    await ended.wait()


if __name__ == "__main__":
    sys.exit(main())
