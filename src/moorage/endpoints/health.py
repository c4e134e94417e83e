"""The endpoints of a scheduler as a Starlette application: health, metrics, configz, flagz, statusz and v1.

/healthz, /livez and /readyz have kube-scheduler's checks and its text format. Every request runs the checks
again; results are counted for /metrics/slis. `serving.access` decides who may ask; /moorage/v1 is in `v1`.
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

from moorage.endpoints.debugging import Debugging, debugging_routes
from moorage.endpoints.loop_bridge import NotNow
from moorage.endpoints.v1.configuration import ConfigurationView
from moorage.endpoints.v1.routes import as_json, later, routes
from moorage.endpoints.v1.views import SchedulerViews
from moorage.serving.access import HEADERS

Reason = str
"""Why a check fails; empty if it passes."""
Answer = Awaitable[Any]
ENDPOINTS = ("healthz", "livez", "readyz")


@dataclass(frozen=True, slots=True)
class Check:
    """One health check. `run` must not block: it reads what others have recorded."""

    name: str
    run: Callable[[], Reason]
    fails: bool = True
    """If False, the reason is shown but the endpoint passes."""


PING = Check("ping", lambda: "")


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a request for checks."""

    code: int
    text: str


@dataclass(slots=True)
class Health:
    """The three endpoints, each with its checks in the order of the report."""

    endpoints: dict[str, Sequence[Check]]
    counted: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(endpoint, check, "success" or "error") → number of results."""
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    """(endpoint, check) → 1 if the last run passed, otherwise 0."""

    def all(self, endpoint: str, *, verbose: bool = False, exclude: Collection[str] = ()) -> Report:
        """Run every check of an endpoint. The report names those that failed; reasons go to the log only."""
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
        """Run a single check; None if the endpoint does not have it."""
        check = next((check for check in self.endpoints[endpoint] if check.name == name), None)
        if check is None:
            return None
        reason = self._run(endpoint, check) if check.fails else ""
        return Report(500, f"internal server error: {reason}\n") if reason else Report(200, "ok")

    def reasons(self, endpoint: str) -> dict[str, Reason]:
        """Return the checks that fail now, with their reasons, for the log."""
        found = ((check.name, check.run()) for check in self.endpoints[endpoint])
        return {name: reason for name, reason in found if reason}

    def _run(self, endpoint: str, check: Check) -> Reason:
        reason = check.run()
        self.counted[endpoint, check.name, "error" if reason else "success"] += 1
        self.last[endpoint, check.name] = 0 if reason else 1
        return reason

    def samples(self) -> Iterator[tuple[str, str, int]]:
        """Yield (endpoint, check, last result)."""
        for (endpoint, name), value in sorted(self.last.items()):
            yield endpoint, name, value


def _quoted(names: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))


@dataclass(frozen=True, slots=True)
class ProcessView:
    """What the endpoints can see of a process. Everything is called on the endpoints' loop."""

    health: Health
    metrics: Callable[[], Awaitable[bytes]]
    resource_metrics: Callable[[], Awaitable[bytes]]
    """Empty unless this replica leads."""
    slis: Callable[[], bytes]
    config: Callable[[], Mapping[str, Any]]
    """The content of /configz: the completed configuration, and the outcome of the last reload."""
    flags: Mapping[str, str]
    status: Callable[[], Mapping[str, str]]
    views: SchedulerViews
    configuration: ConfigurationView
    debugging: Debugging | None = None
    """None without `enableProfiling`."""


def application(process: ProcessView) -> Starlette:
    """Return all endpoints, without a guard."""

    async def metrics(request: Request) -> Response:
        return exposition(await process.metrics())

    async def resource_metrics(request: Request) -> Response:
        try:
            return exposition(await process.resource_metrics())
        except NotNow as error:
            return later(error)

    async def slis(request: Request) -> Response:
        return exposition(process.slis())

    async def configz(request: Request) -> Response:
        return as_json(process.config())

    async def flagz(request: Request) -> Response:
        return _text_page("flagz", "Command line flags of this process.", process.flags, "=")

    async def statusz(request: Request) -> Response:
        return _text_page("statusz", "State of this process.", process.status(), ": ")

    app = Starlette(
        routes=[
            Route("/", _index),
            *health_routes(process.health),
            Route("/metrics", metrics),
            Route("/metrics/resources", resource_metrics),
            Route("/metrics/slis", slis),
            *(Route(f"/{serve.__name__}", serve) for serve in (configz, flagz, statusz)),
            *routes(process.views, process.configuration),
            *(debugging_routes(process.debugging) if process.debugging is not None else ()),
        ]
    )
    app.router.redirect_slashes = False  # a redirect would name the Host of the request
    return app


def health_routes(health: Health) -> list[Route]:
    """Return /healthz, /livez and /readyz, and a route for each single check."""
    return [
        route
        for endpoint in ENDPOINTS
        for route in (
            Route(f"/{endpoint}", _all_checks(health, endpoint)),
            Route(f"/{endpoint}/{{check}}", _one_check(health, endpoint)),
        )
    ]


async def _index(request: Request) -> Response:
    paths = sorted(route.path for route in request.app.routes if isinstance(route, Route) and "{" not in route.path)
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


def _report(report: Report) -> Response:
    return PlainTextResponse(report.text, report.code, HEADERS)


def exposition(text: bytes) -> Response:
    """Return metrics in the Prometheus text format."""
    return Response(text, headers={**HEADERS, "content-type": CONTENT_TYPE_LATEST})


def _text_page(name: str, what: str, pairs: Mapping[str, str], between: str) -> Response:
    head = f"\nmoorage {name}\n{what} This page is for people; its format may change.\n\n"
    return PlainTextResponse(head + "".join(f"{k}{between}{v}\n" for k, v in pairs.items()), headers=HEADERS)
