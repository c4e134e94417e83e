"""The API server as an ASGI application: one request from its first header to its answer.

    guard ──▶ body ──▶ path ──▶ object of the catalog? ──▶ handler, or watch
                                     └─ no ──▶ endpoints (discovery, reviews, metrics) ──▶ 404

Everything between reading the body and having the answer is one step of the loop, so a request sees one state
of the store. The answer leaves when that state is durable. No exception leaves this module: a refusal becomes
its Status, a bug a Status of 500 and a line in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mooring.api.errors import ApiError
from mooring.embedded.apiserver import messages, negotiating, paths, queries
from mooring.embedded.apiserver.calls import Call, not_allowed
from mooring.embedded.apiserver.dispatching import Dispatcher
from mooring.embedded.apiserver.guarding import Guard, read_headers
from mooring.embedded.apiserver.health import Health
from mooring.embedded.apiserver.pacing import Pacer
from mooring.embedded.apiserver.paths import Path
from mooring.embedded.apiserver.presenting import Presenter, Printer, presenter
from mooring.embedded.apiserver.reading import stored_fields
from mooring.embedded.apiserver.streams import WatchStream
from mooring.embedded.apiserver.tokens import Signer
from mooring.embedded.catalog.kinds import Catalog, Served
from mooring.embedded.http import Answer, Endpoint, Request, page_not_found, refusal_answer
from mooring.framework.ports import Clock
from mooring.serving.certificates import User
from mooring.store import refusals
from mooring.store.store import Store
from mooring.telemetry import logs

_log = logs.get(__name__)

_INCLUDES = ("None", "Metadata", "Object")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server bears."""

    watches: int = 5_000
    """Open at once; further ones get a 429."""
    watch_buffer: int = 20_000
    """Changes that a watcher may fall behind before it gets a 410."""
    watch_seconds: float = 2700.0
    """How long a watch lasts that names no time itself."""


class ApiServer:
    """The application.

    `endpoints` answer what is no object; `printer` makes Tables; `ready` says why the server is not ready, or
    nothing; `offload` runs compression elsewhere (None: in place, as virtual time needs it).
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        clock: Clock,
        *,
        guard: Guard,
        signer: Signer,
        endpoints: Sequence[Endpoint] = (),
        printer: Printer | None = None,
        ready: Callable[[], str] | None = None,
        offload: messages.Offload | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.guard = guard
        self.closing = False
        self._store = store
        self._clock = clock
        self._dispatcher = Dispatcher(catalog, signer)
        self._endpoints: tuple[Endpoint, ...] = (Health(ready), *endpoints)
        self._printer = printer
        self._offload = offload
        self._limits = limits or Limits()
        self._streams: dict[WatchStream, None] = {}
        self._pacer = Pacer(clock)

    @property
    def watches(self) -> int:
        """How many are open."""
        return len(self._streams)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return  # neither websockets nor lifespan events are served
        headers: Mapping[str, str] = {}
        try:
            headers = read_headers(scope["headers"])
            result = await self._handle(scope, headers, receive)
            if isinstance(result, WatchStream):
                await self._stream(result, receive, send)
                return
        except ApiError as error:
            result = refusal_answer(error)
        except messages.ClientLeft:
            return
        except RecursionError:
            result = refusal_answer(refusals.bad_request("the request is nested too deeply"))
        except Exception as error:
            _log.error("Request failed", error, stack=True, method=scope["method"], path=scope["path"])
            result = refusal_answer(_internal())
        abort = scope.get("mooring.abort")
        await messages.send_answer(send, result, headers, self._offload, self._clock, abort)

    def close(self) -> None:
        """Ends all watches and takes no more."""
        self.closing = True
        for stream in tuple(self._streams):
            stream.end()

    async def _handle(self, scope: Any, headers: Mapping[str, str], receive: Any) -> Answer | WatchStream:
        method, path = scope["method"], scope["path"]
        user = self.guard.admit(method, path, headers, scope.get("mooring.user"))
        paths.check(scope.get("raw_path") or b"")
        body = await messages.read_body(receive, headers, self._clock)
        query = queries.parse(scope["query_string"])
        result = self._respond(method, path, query, headers, body, user, scope.get("mooring.abort"))
        if self._store.durability.version < self._store.version:
            try:
                await self._store.settled()
            except BaseException:
                if isinstance(result, WatchStream):
                    result.discard()
                raise
        return result

    def _respond(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        user: User,
        abort: Callable[[], object] | None,
    ) -> Answer | WatchStream:
        """The whole work on a request, in one step."""
        parsed = paths.parse(path)
        served = self._dispatcher.served(parsed) if parsed is not None else None
        if parsed is None or served is None:
            return self._ask_endpoints(Request(method, path, query, headers, body, user))
        verb = paths.verb_of(method, parsed, bool(queries.flag(query, "watch")))
        present = self._presenter(served, query, headers.get("accept", ""))
        if verb == "watch":
            return self._watch(served, parsed, query, present, abort)
        handler = self._dispatcher.handler(served, parsed, verb)
        content_type = headers.get("content-type", "")
        wall = self._clock.wall
        call = Call(self._store, served, parsed, verb, query, body, content_type, present, user, wall)
        return handler(call)

    def _ask_endpoints(self, request: Request) -> Answer:
        for endpoint in self._endpoints:
            answer = endpoint.answer(request)
            if answer is not None:
                return answer
        raise page_not_found()

    def _presenter(self, served: Served, query: Mapping[str, str], accept: str) -> Presenter:
        form = negotiating.form_of(accept)
        include = query.get("includeObject") or "Metadata"
        if include not in _INCLUDES:
            raise refusals.bad_request(f'includeObject: unknown value "{include[:100]}"')
        return presenter(served, form, include, self._printer, self._clock.wall)

    def _watch(
        self,
        served: Served,
        path: Path,
        query: Mapping[str, str],
        present: Presenter,
        abort: Callable[[], object] | None,
    ) -> WatchStream:
        if "watch" not in served.verbs or path.subresource:
            raise not_allowed()
        if self.closing or len(self._streams) >= self._limits.watches:
            message = "the server has too many watches open; close some or try again later"
            raise refusals.failure(429, "TooManyRequests", message, retry_after=5)
        options = queries.list_options(query, watch=True)
        fields = stored_fields(served, options.field_selector)
        if path.name:
            fields = ",".join(filter(None, (fields, f"metadata.name={path.name}")))
        version = options.resource_version
        if options.send_initial_events is False and version in ("", "0"):
            version = str(self._store.version)
        subscription = self._store.watch(
            served.stored,
            resource_version=version,
            namespace=path.namespace,
            label_selector=options.label_selector,
            field_selector=fields,
            send_initial_events=bool(options.send_initial_events),
            buffer=self._limits.watch_buffer,
        )
        timeout = options.timeout or self._limits.watch_seconds
        return WatchStream(
            subscription,
            present,
            self._clock,
            self._pacer,
            bookmarks=options.bookmarks,
            timeout=timeout,
            abort=abort,
        )

    async def _stream(self, stream: WatchStream, receive: Any, send: Any) -> None:
        self._streams[stream] = None
        try:
            await stream.run(receive, send)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # The headers are out, so there is no status left to say it with: the body breaks off.
            _log.error("Watch failed", error, stack=True)
        finally:
            del self._streams[stream]


def _internal() -> ApiError:
    message = "Internal error occurred: the server has a bug; its log says more"
    return refusals.failure(500, "InternalError", message)
