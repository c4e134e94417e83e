"""The verbs of an extender over HTTP, as a Starlette application to serve or to embed.

Answers 200 with the result of the verb, and otherwise a code with an `Error` that says what is wrong. Bodies are
bounded one by one and all together. What a browser sends is refused: no page may ask a server on loopback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from moorage.extender import server_wire as wire
from moorage.run.extender.verbs import ExtenderVerbs
from moorage.serving.access import HEADERS
from moorage.telemetry import logs
from moorage.telemetry.catalog import REST
from moorage.telemetry.instruments import Family, Histogram, LabelCounter

_log = logs.get(__name__)

JSON = "application/json"
BODY_BYTES = 32 * 1024 * 1024
"""Of one request: 10,000 nodes of 3 KB."""
HELD_BYTES = 4 * BODY_BYTES
"""Of all bodies that are being received; beyond that no large one is."""
LARGE_BYTES = 256 * 1024
"""More than the names of 5,000 nodes."""
BODY_SECONDS = 10.0
"""How long a body may take to arrive."""


class VerbAnswer(NamedTuple):
    """An answer, and what the metrics call it."""

    code: int
    body: bytes
    outcome: str


class ServerMetrics:
    """Requests by verb."""

    def __init__(self) -> None:
        self.requests = LabelCounter(
            "moorage_extender_server_requests_total",
            "Requests of kube-scheduler by outcome: success, error (a plugin failed), refused (the request "
            "is wrong) or unavailable.",
            ("verb", "outcome"),
        )
        self.seconds = Histogram(
            "moorage_extender_server_request_duration_seconds",
            "Duration of requests of kube-scheduler, from the head of the request to the answer.",
            ("verb",),
            bounds=REST,
        )

    def families(self) -> list[Family]:
        return [self.requests, self.seconds]


def extender_app(
    verbs: ExtenderVerbs,
    *,
    not_ready: Callable[[], str] = lambda: "",
    needs_certificate: bool = False,
    metrics: ServerMetrics | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """POST /filter, /prioritize, /preempt and /bind, as far as `verbs` has them, and `routes` beside them.
    `not_ready` says why nothing can be answered yet. With `needs_certificate` the verbs are for clients whose
    certificate TLS has verified. Must run on the loop of the engine."""
    served = _Verbs(verbs, not_ready, needs_certificate, metrics or ServerMetrics())
    known = ", ".join(f"POST /{verb}" for verb in verbs.served)

    async def wrong(request: Request, error: Exception) -> Response:
        code, headers = 500, None
        if isinstance(error, HTTPException):
            code, headers = error.status_code, error.headers
        text = f"{request.method} {request.scope['path']} is not served; {known} are"
        return _response(code, wire.problem(text), dict(headers or {}))

    found = [Route(f"/{verb}", served.endpoint(verb), methods=["POST"]) for verb in verbs.served]
    app = Starlette(routes=[*found, *routes], exception_handlers={404: wrong, 405: wrong})
    app.router.redirect_slashes = False  # a redirect would name the Host of the request
    return app


class _Verbs:
    def __init__(
        self, verbs: ExtenderVerbs, not_ready: Callable[[], str], needs_certificate: bool, metrics: ServerMetrics
    ) -> None:
        self._verbs = verbs
        self._not_ready = not_ready
        self._needs_certificate = needs_certificate
        self._metrics = metrics
        self._pods = wire.PodReader()
        self._held = 0
        """Bytes of bodies that are being received."""

    def endpoint(self, verb: str) -> Callable[[Request], Awaitable[Response]]:
        answer_to = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
            "bind": self._bind,
        }[verb]

        async def serve(request: Request) -> Response:
            now = self._verbs.clock.now
            began = now()
            answer = self._refusal(request)
            if answer is None:
                body = await self._body(request)
                answer = body if isinstance(body, VerbAnswer) else await _answered(answer_to, body)
            seconds = now() - began
            self._metrics.requests.inc(verb, answer.outcome)
            self._metrics.seconds.observe(seconds, verb)
            _log.info(
                5,
                "Answered kube-scheduler",
                verb=verb,
                outcome=answer.outcome,
                code=answer.code,
                seconds=round(seconds, 6),
            )
            return _response(answer.code, answer.body)

        return serve

    def _refusal(self, request: Request) -> VerbAnswer | None:
        """Of a request whose body need not be read."""
        if self._needs_certificate and request.scope.get("moorage.user") is None:
            return _refused(401, "a client certificate is needed: set tlsConfig.certFile and keyFile")
        if "origin" in request.headers:
            return _refused(403, "requests of web pages are not served")
        kind = request.headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() != JSON:
            return _refused(415, f"Content-Type: expected {JSON}")
        if reason := self._not_ready():
            return VerbAnswer(503, wire.problem(reason), "unavailable")
        return None

    async def _body(self, request: Request) -> bytes | VerbAnswer:
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > BODY_BYTES:
            return _TOO_LARGE
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.stream():
                    size += len(part)
                    self._held += len(part)
                    if size > BODY_BYTES:
                        return _TOO_LARGE
                    if self._held > HELD_BYTES and size > LARGE_BYTES:
                        return VerbAnswer(429, wire.problem("too many requests at once; try again"), "unavailable")
                    parts.append(part)
        except TimeoutError:
            return _refused(408, f"the body did not arrive within {BODY_SECONDS:g} seconds")
        except ClientDisconnect:
            return _refused(400, "the client went away")
        finally:
            self._held -= size
        return b"".join(parts)

    async def _filter(self, body: bytes) -> VerbAnswer:
        args = wire.node_args(body)
        filtered, status = self._verbs.filter(self._pods.read(args.pod), args.names)
        if not status.is_success:
            return VerbAnswer(200, wire.filter_error(status.message), "error")
        return VerbAnswer(200, wire.filter_result(filtered, args), "success")

    async def _prioritize(self, body: bytes) -> VerbAnswer:
        args = wire.node_args(body)
        scores, status = self._verbs.prioritize(self._pods.read(args.pod), args.names)
        if not status.is_success:
            return VerbAnswer(500, wire.problem(status.message), "error")
        return VerbAnswer(200, wire.host_priorities(args.names, scores), "success")

    async def _preempt(self, body: bytes) -> VerbAnswer:
        args = wire.preemption_args(body)
        victims = {node: [pod.uid for pod in on.pods or ()] for node, on in args.victims.items()}
        passed, status = self._verbs.preempt(self._pods.read(args.pod), victims)
        if not status.is_success:
            return VerbAnswer(500, wire.problem(status.message), "error")
        return VerbAnswer(200, wire.preemption_result(passed, args), "success")

    async def _bind(self, body: bytes) -> VerbAnswer:
        args = wire.binding_args(body)
        status = await self._verbs.bind(args.pod_namespace, args.pod_name, args.pod_uid, args.node)
        return VerbAnswer(200, wire.binding_result(status.message), "success" if status.is_success else "error")


async def _answered(answer_to: Callable[[bytes], Awaitable[VerbAnswer]], body: bytes) -> VerbAnswer:
    try:
        return await answer_to(body)
    except wire.RequestError as error:
        return _refused(400, str(error))


def _refused(code: int, text: str) -> VerbAnswer:
    return VerbAnswer(code, wire.problem(text), "refused")


_TOO_LARGE = _refused(413, f"the body has more than {BODY_BYTES} bytes; set nodeCacheCapable: true")


def _response(code: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, code, {**HEADERS, "content-type": JSON, **(headers or {})})
