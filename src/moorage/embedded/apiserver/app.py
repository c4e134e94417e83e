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
from typing import Any, TypeAlias

from moorage.api.errors import ApiError
from moorage.api.resources import PODS
from moorage.api.version import VERSION
from moorage.embedded.apiserver import calls, messages, presentation, subresources, urls, writes
from moorage.embedded.apiserver.authentication import ApiGuard, TokenSigner, read_headers
from moorage.embedded.apiserver.calls import ApiCall, not_allowed, stored_fields
from moorage.embedded.apiserver.presentation import Presenter, TablePrinter, presenter
from moorage.embedded.apiserver.urls import Path
from moorage.embedded.apiserver.watches import Pacer, WatchStream
from moorage.embedded.catalog.kinds import Catalog, ServedKind
from moorage.embedded.http import (
    ApiRequest,
    Endpoint,
    ServerAnswer,
    json_answer,
    page_not_found,
    refusal_answer,
    text_answer,
)
from moorage.framework.ports import Clock
from moorage.store import refusals
from moorage.store.store import Store
from moorage.telemetry import logs

_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_VERSION_PATHS = frozenset({"/version", "/version/"})
_MAJOR, _MINOR, _PATCH = "1", "37", "1"
"""The release whose API is served."""
Handler: TypeAlias = Callable[[ApiCall], ServerAnswer]
_OBJECTS: dict[str, Handler] = {
    "get": calls.get,
    "list": calls.list_,
    "create": writes.create,
    "update": writes.replace,
    "patch": writes.patch,
    "delete": writes.delete,
    "deletecollection": writes.delete_collection,
}
_PART: dict[str, Handler] = {"get": calls.get, "update": writes.replace, "patch": writes.patch}
_SUBRESOURCES: dict[str, dict[str, Handler]] = {
    "status": _PART,
    "resize": _PART,
    "finalize": {"update": writes.replace},
    "scale": {"get": subresources.get_scale, "update": subresources.replace_scale, "patch": subresources.patch_scale},
    "binding": {"create": subresources.bind},
    "eviction": {"create": subresources.evict},
    "log": {"get": subresources.log},
    **dict.fromkeys(("attach", "exec", "portforward"), dict.fromkeys(("create", "get"), subresources.connect)),
}
_OF_ONE_NAMESPACE = frozenset({"create", "deletecollection"})
_log = logs.get(__name__)
_INCLUDES = ("None", "Metadata", "Object")


class ServerHealth:
    """`ready` says why the server should get no requests yet, or nothing."""

    def __init__(self, ready: Callable[[], str] | None = None) -> None:
        self._ready = ready

    def answer(self, request: ApiRequest) -> ServerAnswer | None:
        if request.method not in ("GET", "HEAD"):
            return None
        if request.path in _HEALTH:
            problem = self._ready() if self._ready is not None and request.path == "/readyz" else ""
            if problem:
                return text_answer(f"not ready: {problem}\n", 503)
            passed = f"[+]ping ok\n{request.path[1:]} check passed\n"
            return text_answer(passed if "verbose" in request.query else "ok")
        return _version() if request.path in _VERSION_PATHS else None


def _version() -> ServerAnswer:
    release = f"v{_MAJOR}.{_MINOR}.{_PATCH}+moorage-{VERSION}"
    return json_answer(
        {
            "major": _MAJOR,
            "minor": _MINOR,
            "gitVersion": release,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "",
            "platform": "python",
        }
    )


class Dispatcher:
    """Finds the served kind and the handler of a request."""

    def __init__(self, catalog: Catalog, signer: TokenSigner) -> None:
        self._catalog = catalog
        self._subresources: dict[str, dict[str, Handler]] = {**_SUBRESOURCES, "token": {"create": signer.create}}

    def served(self, path: Path) -> ServedKind | None:
        """The kind that a path is about; None if it is not served, or not in this scope."""
        served = self._catalog.find(path.group, path.version, path.plural)
        if served is None:
            return self._bindings(path)
        if path.namespace and not served.resource.namespaced:
            return None
        if path.name and not path.namespace and served.resource.namespaced:
            return None
        return served

    def handler(self, served: ServedKind, path: Path, verb: str) -> Handler:
        """What to call; 404 for an unknown subresource, 405 for a verb that is not served."""
        if path.subresource:
            return self._of_subresource(served, path.subresource, verb)
        if path.plural == "bindings" and verb == "create":
            return subresources.bind
        if verb not in served.verbs or verb not in _OBJECTS or path.plural == "bindings":
            raise not_allowed()
        if verb in _OF_ONE_NAMESPACE and served.resource.namespaced and not path.namespace:
            raise not_allowed()
        return _OBJECTS[verb]

    def _of_subresource(self, served: ServedKind, name: str, verb: str) -> Handler:
        declared = served.subresource(name)
        handlers = self._subresources.get(name)
        if declared is None or handlers is None:
            raise refusals.no_subresource(served.resource, name)
        if verb not in declared.verbs or verb not in handlers:
            raise not_allowed()
        return handlers[verb]

    def _bindings(self, path: Path) -> ServedKind | None:
        """The older way to bind: POST to a resource of its own, with the pod's name in the object."""
        if (path.group, path.version, path.plural) != ("", "v1", "bindings") or not path.namespace:
            return None
        return self._catalog.find(PODS.group, PODS.version, PODS.plural) if not path.name else None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of one server."""

    watches: int = 5_000
    """Open at once; further ones get a 429."""
    watch_buffer: int = 20_000
    """Changes that a watcher may fall behind before it gets a 410."""
    watch_seconds: float = 2700.0
    """How long a watch lasts if the client sets no timeout."""


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
        guard: ApiGuard,
        signer: TokenSigner,
        endpoints: Sequence[Endpoint] = (),
        printer: TablePrinter | None = None,
        ready: Callable[[], str] | None = None,
        offload: messages.Offload | None = None,
        limits: ServerLimits | None = None,
    ) -> None:
        self.guard = guard
        self.closing = False
        self._store = store
        self._clock = clock
        self._dispatcher = Dispatcher(catalog, signer)
        self._endpoints: tuple[Endpoint, ...] = (ServerHealth(ready), *endpoints)
        self._printer = printer
        self._offload = offload
        self._limits = limits or ServerLimits()
        self._streams: dict[WatchStream, None] = {}
        self._pacer = Pacer(clock)

    @property
    def watches(self) -> int:
        """The number of open watches."""
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
        except (ApiError, RecursionError) as error:
            result = _refused(error)
        except messages.ClientGone:
            return
        except Exception as error:
            _log.error("Request failed", error, stack=True, method=scope["method"], path=scope["path"])
            result = refusal_answer(_internal())
        abort = scope.get("moorage.abort")
        await messages.send_answer(send, result, headers, self._offload, self._clock, abort)

    async def answer(self, request: ApiRequest) -> ServerAnswer:
        """Answer a request of this process, other than a watch, as if it came over HTTP.

        The caller is trusted: `request.user` is not authenticated. What a write causes in the same process,
        such as a CustomResourceDefinition that becomes served, has happened when this returns.
        """
        try:
            result = await self._settled(self._respond(request, None))
            await asyncio.sleep(0)
        except (ApiError, RecursionError) as error:
            return _refused(error)
        if isinstance(result, WatchStream):
            result.discard()
            raise ValueError("a watch has no single answer")
        return result

    def close(self) -> None:
        """End all open watches and refuse new ones."""
        self.closing = True
        for stream in tuple(self._streams):
            stream.end()

    async def _handle(self, scope: Any, headers: Mapping[str, str], receive: Any) -> ServerAnswer | WatchStream:
        method, path = scope["method"], scope["path"]
        user = self.guard.admit(method, path, headers, scope.get("moorage.user"))
        urls.check_path(scope.get("raw_path") or b"")
        body = await messages.read_body(receive, headers, self._clock)
        query = urls.parse_query(scope["query_string"])
        request = ApiRequest(method, path, query, headers, body, user)
        return await self._settled(self._respond(request, scope.get("moorage.abort")))

    async def _settled(self, result: ServerAnswer | WatchStream) -> ServerAnswer | WatchStream:
        """Return the result when everything that it shows is durable."""
        if self._store.durability.version < self._store.version:
            try:
                await self._store.settled()
            except BaseException:
                if isinstance(result, WatchStream):
                    result.discard()
                raise
        return result

    def _respond(self, request: ApiRequest, abort: Callable[[], object] | None) -> ServerAnswer | WatchStream:
        """Do the whole work on a request in one step of the loop."""
        parsed, query, headers = urls.parse_path(request.path), request.query, request.headers
        served = self._dispatcher.served(parsed) if parsed is not None else None
        if parsed is None or served is None:
            return self._ask_endpoints(request)
        verb = urls.verb_of(request.method, parsed, bool(urls.flag(query, "watch")))
        present = self._presenter(served, query, headers.get("accept", ""))
        if verb == "watch":
            return self._watch(served, parsed, query, present, abort)
        handler = self._dispatcher.handler(served, parsed, verb)
        content_type = headers.get("content-type", "")
        wall = self._clock.wall
        call = ApiCall(
            self._store, served, parsed, verb, query, request.body, content_type, present, request.user, wall
        )
        return handler(call)

    def _ask_endpoints(self, request: ApiRequest) -> ServerAnswer:
        for endpoint in self._endpoints:
            answer = endpoint.answer(request)
            if answer is not None:
                return answer
        raise page_not_found()

    def _presenter(self, served: ServedKind, query: Mapping[str, str], accept: str) -> Presenter:
        form = presentation.form_of(accept)
        include = query.get("includeObject") or "Metadata"
        if include not in _INCLUDES:
            raise refusals.bad_request(f'includeObject: unknown value "{include[:100]}"')
        return presenter(served, form, include, self._printer, self._clock.wall)

    def _watch(
        self,
        served: ServedKind,
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
        options = urls.list_options(query, watch=True)
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
            subscription, present, self._clock, self._pacer, bookmarks=options.bookmarks, timeout=timeout, abort=abort
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


def _refused(error: ApiError | RecursionError) -> ServerAnswer:
    if isinstance(error, RecursionError):
        error = refusals.bad_request("the request is nested too deeply")
    return refusal_answer(error)


def _internal() -> ApiError:
    message = "Internal error occurred: the server has a bug; its log says more"
    return refusals.failure(500, "InternalError", message)
