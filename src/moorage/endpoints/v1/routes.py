"""The routes of /moorage/v1: which view answers a path, and how answers and refusals become responses.

A POST passes the guard of `serving.access` only if configuration changes are allowed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from moorage.api.plain_text import without_broken
from moorage.endpoints import queries
from moorage.endpoints.loop_bridge import NotNow
from moorage.endpoints.queries import ROOT, Q, Reason, read_query
from moorage.endpoints.v1.configuration import ConfigurationView
from moorage.endpoints.v1.views import SchedulerViews
from moorage.serving.access import HEADERS

CONFIGURATION = f"{ROOT}/configuration"
Serve = Callable[[Request], Awaitable[Response]]


def routes(views: SchedulerViews, configuration: ConfigurationView) -> list[Route]:
    """Return all routes."""
    return [
        Route(f"{ROOT}/records", _serve(queries.RecordsQuery, views.records)),
        Route(f"{ROOT}/queue", _serve(queries.QueueQuery, views.queue)),
        Route(f"{ROOT}/attempts", _serve(queries.AttemptsQuery, views.attempts)),
        Route(f"{ROOT}/attempts/{{sequence:int}}", _serve(queries.AttemptQuery, views.attempt)),
        Route(f"{ROOT}/nodes", _serve(queries.NodesQuery, views.nodes)),
        Route(f"{ROOT}/nodes/{{name}}", _serve(queries.NodeQuery, views.node)),
        Route(f"{ROOT}/summary", _serve(queries.SummaryQuery, views.summary)),
        Route(f"{ROOT}/snapshot", _serve(queries.SnapshotQuery, views.snapshot)),
        Route(CONFIGURATION, _serve_configuration(configuration), methods=["GET", "POST"]),
        Route(f"{CONFIGURATION}/{{number:int}}", _serve(None, configuration.entry)),
    ]


def _serve(kind: type[Q] | None, view: Callable[..., Awaitable[Any]]) -> Serve:
    """Answer GET by a view, which is called with the query, if it takes one, and the parameters of the path."""

    async def serve(request: Request) -> Response:
        query = read_query(kind, request.query_params) if kind is not None else None
        if isinstance(query, Reason):
            return _text(query, 400)
        given = () if query is None else (query,)
        try:
            answer = await view(*given, **request.path_params)
        except NotNow as error:
            return later(error)
        if isinstance(answer, AsyncIterator):
            return StreamingResponse(answer, headers={**HEADERS, "content-type": "application/gzip"})
        return _text(answer, 404) if isinstance(answer, Reason) else as_json(answer)

    return serve


def _serve_configuration(configuration: ConfigurationView) -> Serve:
    async def serve(request: Request) -> Response:
        try:
            if request.method == "POST":
                return await _take(configuration, request)
            return as_json(await configuration.answer())
        except NotNow as error:
            return later(error)

    return serve


async def _take(configuration: ConfigurationView, request: Request) -> Response:
    query = dict(request.query_params)
    if query not in ({}, {"dryRun": "All"}):
        return _text("the only parameter of this path is dryRun=All", 400)
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        return _text(f"the body is not UTF-8: {error}", 400)
    answer = await (configuration.check(text) if query else configuration.apply(text))
    return as_json(answer, 422 if answer.error else 200)


def as_json(value: Any, status: int = 200) -> Response:
    try:
        body = msgspec.json.encode(value)
    except UnicodeEncodeError:
        # A text of a plugin has half a surrogate pair.
        body = msgspec.json.encode(_sendable(msgspec.to_builtins(value, str_keys=True)))
    return Response(body, status, {**HEADERS, "content-type": "application/json"})


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return without_broken(value)
    if isinstance(value, dict):
        return {_sendable(key): _sendable(each) for key, each in value.items()}
    return [_sendable(each) for each in value] if isinstance(value, list | tuple) else value


def later(error: NotNow) -> Response:
    return PlainTextResponse(f"{error}\n", 503, {**HEADERS, "retry-after": "5"})


def _text(text: str, status: int) -> Response:
    return PlainTextResponse(f"{text}\n", status, HEADERS)
