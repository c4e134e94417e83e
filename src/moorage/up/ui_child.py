"""The process of the web UI of `moorage up`: reads its orders, serves, and ends with its parent."""

from __future__ import annotations

import asyncio
import socket
import sys
from dataclasses import replace

import msgspec

from moorage.client.credentials import Credentials, Pem
from moorage.telemetry import logs
from moorage.up.kubeconfig import NAME
from moorage.up.process import UiOrders, end_of_input
from moorage.web.serving import serve
from moorage.web.sources.embedded_source import EmbeddedSource, api_objects
from moorage.web.sources.node_columns import UsageColumns


def main() -> None:
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=UiOrders)
    logs.setup(orders.verbosity, orders.logging_format)
    asyncio.run(_serve(orders))


async def _serve(orders: UiOrders) -> None:
    ca = Pem(data=orders.ca.encode())
    scheduler = Credentials(orders.scheduler, "moorage up", ca=ca, token=orders.bearer, context=NAME)
    server = replace(scheduler, server=orders.server)

    async def find_server() -> Credentials:
        return server

    source = EmbeddedSource(scheduler, api_objects(server), orders.first, usage=UsageColumns(find_server))
    listening = socket.socket(fileno=orders.socket)
    await serve(source, listening, orders.token, until=end_of_input())


if __name__ == "__main__":
    main()
