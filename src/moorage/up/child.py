"""The process of the embedded API server: reads its orders, serves, and ends when its parent does."""

from __future__ import annotations

import asyncio
import gc
import sys

import msgspec
import uvloop

from moorage.api.errors import MoorageError
from moorage.embedded.apiserver.server import PortInUse
from moorage.telemetry import logs
from moorage.up.process import Answer, Orders, Refused, end_of_input
from moorage.up.server import EmbeddedServer


def main() -> int:
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    logs.setup(orders.verbosity, orders.logging_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(orders))


async def _serve(orders: Orders) -> int:
    parent_gone = asyncio.ensure_future(end_of_input())
    server: EmbeddedServer | None = None
    try:
        server = EmbeddedServer(orders)
        _say(await server.start())
    except MoorageError as error:
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


if __name__ == "__main__":
    sys.exit(main())
