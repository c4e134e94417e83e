"""The endpoints of a scheduler, as a Starlette application over a few questions to the process.

/healthz, /livez and /readyz have kube-scheduler's checks, in the form that its users know. Every request runs
its checks anew; results are counted for /metrics/slis. Who may ask is decided in `access`; /moorage/v1 is in
`v1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from moorage.endpoints.loop_bridge import NotNow
from moorage.endpoints.v1 import configuration_routes
from moorage.endpoints.v1 import routes as v1_routes
from moorage.endpoints.v1.configuration_routes import Configurations
from moorage.endpoints.v1.routes import Views, as_json, later
from moorage.serving.access import HEADERS

Reason = str
"""Why a check fails; empty when it passes."""
Answer = Awaitable[Any]
ENDPOINTS = ("healthz", "livez", "readyz")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that may be wrong. `run` must not block: it reads what others have noted."""

    name: str
    run: Callable[[], Reason]
    fails: bool = True
    """False: the reason is shown, and the endpoint passes all the same."""


PING = Check("ping", lambda: "")


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to a request."""

    code: int
    text: str


@dataclass(slots=True)
class Health:
    """The three endpoints: name → checks, in the order in which they are reported."""

    endpoints: dict[str, Sequence[Check]]
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(endpoint, check, "success" or "error") → how often."""
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    """(endpoint, check) → 1 if it passed the last time, else 0."""

    def all(self, endpoint: str, *, verbose: bool = False, exclude: Collection[str] = ()) -> Report:
        """Every check of an endpoint. What failed is named; why is for the log, not for strangers."""
        lines, failed, unknown = [], [], set(exclude)
        for check in self.endpoints[endpoint]:
            if check.name in exclude:
                unknown.discard(check.name)
                lines.append(f"[+]{check.name} excluded: ok")
            elif not check.fails:
                reason = check.run()
                lines.append(f"[!]{check.name}: {reason}" if reason else f"[+]{check.name} ok")
            elif self._run(endpoint, check):
                failed.append(check.name)
                lines.append(f"[-]{check.name} failed: reason withheld")
            else:
                lines.append(f"[+]{check.name} ok")
        if unknown:
            lines.append(f"warn: some health checks cannot be excluded: no matches for {_quoted(unknown)}")
        if failed:
            return Report(500, "\n".join([*lines, f"{endpoint} check failed", ""]))
        return Report(200, "\n".join([*lines, f"{endpoint} check passed", ""]) if verbose else "ok")

    def one(self, endpoint: str, name: str) -> Report | None:
        """A single check; None when the endpoint does not have it."""
        check = next((check for check in self.endpoints[endpoint] if check.name == name), None)
        if check is None:
            return None
        reason = self._run(endpoint, check) if check.fails else ""
        return Report(500, f"internal server error: {reason}\n") if reason else Report(200, "ok")

    def reasons(self, endpoint: str) -> dict[str, Reason]:
        """What is wrong now, for the log."""
        found = ((check.name, check.run()) for check in self.endpoints[endpoint])
        return {name: reason for name, reason in found if reason}

    def _run(self, endpoint: str, check: Check) -> Reason:
        reason = check.run()
        self.counted[endpoint, check.name, "error" if reason else "success"] += 1
        self.last[endpoint, check.name] = 0 if reason else 1
        return reason

    def samples(self) -> Iterator[tuple[str, str, int]]:
        """(endpoint, check, last result)."""
        for (endpoint, name), value in sorted(self.last.items()):
            yield endpoint, name, value


def _quoted(names: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))


@dataclass(frozen=True, slots=True)
class Inside:
    """What the endpoints ask the process. All of it runs on the endpoints' own loop."""

    health: Health
    metrics: Callable[[], Awaitable[bytes]]
    resource_metrics: Callable[[], Awaitable[bytes]]
    """Empty unless this replica leads."""
    slis: Callable[[], bytes]
    config: Callable[[], Mapping[str, Any]]
    """What /configz shows: the completed configuration, as it would be written, and how it got there."""
    flags: Mapping[str, str]
    status: Callable[[], Mapping[str, str]]
    views: Views
    """What /moorage/v1 shows."""
    configurations: Configurations


def application(inside: Inside) -> Starlette:
    """All endpoints, without a guard."""
    pages = _Pages(inside)
    routes = [
        Route("/", _index),
        *health_routes(inside.health),
        Route("/metrics", pages.metrics),
        Route("/metrics/resources", pages.resource_metrics),
        Route("/metrics/slis", pages.slis),
        Route("/configz", pages.configz),
        Route("/flagz", pages.flagz),
        Route("/statusz", pages.statusz),
        *v1_routes.routes(inside.views),
        *configuration_routes.routes(inside.configurations),
    ]
    return Starlette(routes=routes)


def health_routes(health: Health) -> list[Route]:
    """/healthz, /livez and /readyz, and each of their checks alone."""
    return [
        route
        for endpoint in ENDPOINTS
        for route in (
            Route(f"/{endpoint}", _all_checks(health, endpoint)),
            Route(f"/{endpoint}/{{check}}", _one_check(health, endpoint)),
        )
    ]


async def _index(request: Request) -> Response:
    paths = sorted(
        route.path for route in request.app.routes if isinstance(route, Route) and "{" not in route.path
    )
    return as_json({"paths": paths})


def _all_checks(health: Health, endpoint: str) -> Callable[[Request], Answer]:
    async def serve(request: Request) -> Response:
        query = request.query_params
        return _report(health.all(endpoint, verbose="verbose" in query, exclude=query.getlist("exclude")))

    return serve


def _one_check(health: Health, endpoint: str) -> Callable[[Request], Answer]:
    async def serve(request: Request) -> Response:
        report = health.one(endpoint, request.path_params["check"])
        return _report(report) if report is not None else PlainTextResponse("404 page not found\n", 404)

    return serve


class _Pages:
    def __init__(self, inside: Inside) -> None:
        self._inside = inside

    async def metrics(self, request: Request) -> Response:
        return exposition(await self._inside.metrics())

    async def resource_metrics(self, request: Request) -> Response:
        try:
            return exposition(await self._inside.resource_metrics())
        except NotNow as error:
            return later(error)

    async def slis(self, request: Request) -> Response:
        return exposition(self._inside.slis())

    async def configz(self, request: Request) -> Response:
        return as_json(self._inside.config())

    async def flagz(self, request: Request) -> Response:
        return _page("flagz", "Command line flags of this process.", self._inside.flags, "=")

    async def statusz(self, request: Request) -> Response:
        return _page("statusz", "State of this process.", self._inside.status(), ": ")


def _report(report: Report) -> Response:
    return PlainTextResponse(report.text, report.code, HEADERS)


def exposition(text: bytes) -> Response:
    """Metrics in the text format."""
    return Response(text, headers={**HEADERS, "content-type": CONTENT_TYPE_LATEST})


def _page(name: str, what: str, pairs: Mapping[str, str], between: str) -> Response:
    head = f"\nmoorage {name}\n{what} For people; its form may change.\n\n"
    return PlainTextResponse(head + "".join(f"{k}{between}{v}\n" for k, v in pairs.items()), headers=HEADERS)
