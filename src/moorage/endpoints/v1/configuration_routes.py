"""/moorage/v1/configuration: what a scheduler is configured by, its history, and another one to check or use.

A POST passes the guard of `access` only where changes are allowed. What a configuration means is the
process's part, behind `Configurations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from moorage.endpoints.loop_bridge import NotNow
from moorage.endpoints.v1.routes import ROOT, Answer, as_json, later
from moorage.serving.access import HEADERS

PATH = f"{ROOT}/configuration"


class Configurations(Protocol):
    """What the process answers; called on the endpoints' loop."""

    async def page(self) -> Mapping[str, Any]:
        """The present one, and what came before."""
        ...

    async def entry(self, number: int) -> Answer:
        """One of the history, with its text."""
        ...

    async def check(self, text: str) -> Mapping[str, Any]:
        """What it would mean; `error` says what is wrong with it, empty when it could be used."""
        ...

    async def apply(self, text: str) -> Mapping[str, Any]:
        """What became of it; `error` says why it was refused, empty when it is in use."""
        ...


def routes(configurations: Configurations) -> list[Route]:
    async def serve(request: Request) -> Response:
        try:
            if request.method == "POST":
                return await _take(configurations, request)
            return as_json(await configurations.page())
        except NotNow as error:
            return later(error)

    async def entry(request: Request) -> Response:
        try:
            answer = await configurations.entry(request.path_params["number"])
        except NotNow as error:
            return later(error)
        return PlainTextResponse(f"{answer}\n", 404, HEADERS) if isinstance(answer, str) else as_json(answer)

    return [Route(PATH, serve, methods=["GET", "POST"]), Route(f"{PATH}/{{number:int}}", entry)]


async def _take(configurations: Configurations, request: Request) -> Response:
    query = dict(request.query_params)
    if query not in ({}, {"dryRun": "All"}):
        return PlainTextResponse("the query may have dryRun=All, and nothing else\n", 400, HEADERS)
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        return PlainTextResponse(f"the body is not UTF-8: {error}\n", 400, HEADERS)
    answer = await (configurations.check(text) if query else configurations.apply(text))
    response = as_json(answer)
    response.status_code = 422 if answer["error"] else 200
    return response
