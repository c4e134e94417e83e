"""The pages on a port of this machine: which address shows what, and the server for them."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from mooring.api.errors import MooringError
from mooring.web import shell
from mooring.web.cluster_page import ZONE, ClusterPage
from mooring.web.compare_page import ComparePage
from mooring.web.configuration_page import ConfigurationPage
from mooring.web.guard import Guard
from mooring.web.node_page import NodePage
from mooring.web.pod_page import PodPage
from mooring.web.queue_page import QueuePage
from mooring.web.source import ClusterSource, ConfiguredSource, QueueQuery, ResultsSource, WhatIfSource
from mooring.web.what_if_page import WhatIfPage

HOST = "127.0.0.1"
STOP_SECONDS = 2


async def serve(source: Any, port: int, ready: Callable[[str], None]) -> None:
    """Serve until a signal ends it. `ready` gets the address with the token."""
    listening = _listen(port)
    # The million objects of a large cluster would put off the collection of pages that are gone.
    gc.collect()
    gc.freeze()
    guard = Guard(_application(source), listening.getsockname()[1])
    config = uvicorn.Config(
        guard,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        server_header=False,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not (server.started or serving.done()):
        await asyncio.sleep(0.01)
    if server.started:
        ready(f"http://localhost:{listening.getsockname()[1]}/?token={guard.token}")
    await serving


def _application(source: Any) -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    ui.add_css(shell.CSS, shared=True)
    ui.add_head_html(shell.KEYS, shared=True)
    if isinstance(source, ClusterSource):
        _add_cluster_pages(source)
    if isinstance(source, WhatIfSource):
        _add_what_if_page(source)
    if isinstance(source, ConfiguredSource):
        _add_configuration_page(source)
    if isinstance(source, ResultsSource):
        _add_compare_page(source)
    ui.run_with(
        app,
        title="Mooring",
        dark=None,
        tailwind=False,
        gzip_middleware_factory=None,
        show_welcome_message=False,
        reconnect_timeout=5.0,
        message_history_length=100,
    )
    return app


def _add_cluster_pages(source: ClusterSource) -> None:
    @ui.page("/")
    async def queue(reason: str = "", place: str = "", search: str = "", after: str = "") -> None:
        await QueuePage(source, QueueQuery(reason, place, search, after)).show()

    @ui.page("/pod/{namespace}/{name:path}")
    async def pod(namespace: str, name: str, attempt: int = 0, compare: int = 0) -> None:
        await PodPage(source, f"{namespace}/{name}", attempt, compare).show()

    @ui.page("/cluster")
    async def cluster(resource: str = "cpu", group: str = ZONE, show: str = "") -> None:
        await ClusterPage(source, resource, group, show).show()

    @ui.page("/node/{name:path}")
    async def node(name: str) -> None:
        await NodePage(source, name).show()


def _add_what_if_page(source: WhatIfSource) -> None:
    @ui.page("/what-if")
    async def what_if(drain: str = "", like: str = "") -> None:
        await WhatIfPage(source, drain, like).show()


def _add_configuration_page(source: ConfiguredSource) -> None:
    @ui.page("/configuration")
    async def configuration() -> None:
        await ConfigurationPage(source).show()


def _add_compare_page(source: ResultsSource) -> None:
    @ui.page("/")
    @ui.page("/compare")
    async def compare(measure: str = "") -> None:
        await ComparePage(source, measure).show()


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        way = "it is in use; set another --port" if error.errno == errno.EADDRINUSE else error.strerror
        raise MooringError(f"cannot listen on {HOST} port {port}: {way}") from error
    return listening
