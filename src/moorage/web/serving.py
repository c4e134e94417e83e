"""Serves the pages on a port of this machine."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from nicegui import Client, ui
from nicegui import app as nicegui_app
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from moorage.api.node import ZONE
from moorage.endpoints.queries import QueueQuery
from moorage.web.guard import UiGuard
from moorage.web.pages import shell
from moorage.web.pages.cluster_page import ClusterPage
from moorage.web.pages.compare_page import ComparePage
from moorage.web.pages.configuration_page import ConfigurationPage
from moorage.web.pages.node_page import NodePage
from moorage.web.pages.object_page import NewObjectPage, ObjectPage
from moorage.web.pages.objects_page import ObjectsPage
from moorage.web.pages.pod_page import PodPage
from moorage.web.pages.queue_page import QueuePage
from moorage.web.pages.what_if_page import WhatIfPage
from moorage.web.source import ClusterSource, ConfiguredSource, ObjectsSource, ResultsSource, WhatIfSource

STOP_SECONDS = 2


async def serve(
    source: Any,
    listening: socket.socket,
    token: str,
    ready: Callable[[], None] = lambda: None,
    until: Awaitable[None] | None = None,
) -> None:
    """Serve browsers that have the token, until a signal arrives or `until` ends."""
    # The millions of objects of a large cluster would delay the collection of deleted pages.
    gc.collect()
    gc.freeze()
    guard = UiGuard(_application(source), listening.getsockname()[1], token)
    config = uvicorn.Config(
        guard, log_config=None, access_log=False, timeout_graceful_shutdown=STOP_SECONDS, server_header=False
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not (server.started or serving.done()):
        await asyncio.sleep(0.01)
    if server.started:
        ready()
    if until is not None:
        await asyncio.wait({serving, asyncio.ensure_future(until)}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
    await serving


def _application(source: Any) -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    ui.add_css(shell.CSS, shared=True)
    ui.add_head_html(shell.KEYS, shared=True)
    _add_missing_page(source)
    if isinstance(source, ClusterSource):
        _add_cluster_pages(source)
    if isinstance(source, WhatIfSource):
        _add_what_if_page(source)
    if isinstance(source, ObjectsSource):
        _add_objects_pages(source)
    if isinstance(source, ConfiguredSource):
        _add_configuration_page(source)
    if isinstance(source, ResultsSource):
        _add_compare_page(source)
    ui.run_with(
        app,
        title="Moorage",
        dark=None,
        tailwind=False,
        gzip_middleware_factory=None,
        show_welcome_message=False,
        reconnect_timeout=5.0,
        message_history_length=100,
    )
    return app


def _add_missing_page(source: Any) -> None:
    async def missing(request: Request, error: Exception) -> Response:
        if not request.headers.get("accept", "").startswith("text/html"):
            return PlainTextResponse("There is nothing at this address.\n", 404)
        with Client(ui.page(""), request=request) as client:
            shell.show_missing(source, str(request.scope["path"]))
        return client.build_response(request, 404)

    nicegui_app.add_exception_handler(404, missing)


def _add_cluster_pages(source: ClusterSource) -> None:
    @ui.page("/")
    async def queue(reason: str = "", place: str = "", search: str = "", after: str = "") -> None:
        await QueuePage(source, QueueQuery(place, reason, search, after=after)).show()

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
    async def what_if(drain: str = "", like: str = "", upgrade: str = "") -> None:
        await WhatIfPage(source, drain, like, upgrade).show()


def _add_objects_pages(source: ObjectsSource) -> None:
    @ui.page("/objects")
    async def objects(kind: str = "pods", search: str = "") -> None:
        await ObjectsPage(source, kind, search).show()

    @ui.page("/new")
    async def new(kind: str = "pods") -> None:
        await NewObjectPage(source, kind).show()

    @ui.page("/object/{kind}/{namespace}/{name:path}")
    async def one(kind: str, namespace: str, name: str) -> None:
        await ObjectPage(source, kind, "" if namespace == "-" else namespace, name).show()


def _add_configuration_page(source: ConfiguredSource) -> None:
    @ui.page("/configuration")
    async def configuration() -> None:
        await ConfigurationPage(source).show()


def _add_compare_page(source: ResultsSource) -> None:
    @ui.page("/")
    @ui.page("/compare")
    async def compare(measure: str = "") -> None:
        await ComparePage(source, measure).show()
