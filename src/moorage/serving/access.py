"""The guard of the endpoints: authentication and authorization of requests by the API server.

A client is authenticated by its certificate, which TLS has verified, or by its token in a TokenReview. A
SubjectAccessReview authorizes the request. Answers are cached for a while. If the API server does not answer,
no request is admitted: there is no anonymous access as a fallback.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from moorage.api.errors import MoorageError
from moorage.api.resources import Resource, Unstructured
from moorage.framework.ports import ApiClient, Clock
from moorage.telemetry import logs
from moorage.telemetry.logs import Throttle

_log = logs.get(__name__)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, Unstructured)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False, Unstructured
)
MASTERS = "system:masters"
CACHE_SIZE = 1024
MAX_TOKEN = 16 * 1024
MAX_BODY = 256 * 1024
BODY_TYPES = ("application/yaml", "application/json")
"""Types that an HTML form cannot send."""

T = TypeVar("T")
Scope = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]
HEADERS = {"cache-control": "no-cache, private", "x-content-type-options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class CannotAsk(MoorageError):
    """The API server did not answer, so the request is refused."""


@dataclass(slots=True)
class ExpiringCache(Generic[T]):
    """Keeps the newest CACHE_SIZE answers for a limited time."""

    clock: Clock
    _answers: OrderedDict[str, tuple[float, T]] = field(default_factory=OrderedDict)

    def get(self, key: str) -> T | None:
        found = self._answers.get(key)
        if found is None or found[0] <= self.clock.now():
            return None
        return found[1]

    def put(self, key: str, answer: T, seconds: float) -> None:
        self._answers.pop(key, None)
        if seconds > 0:
            self._answers[key] = (self.clock.now() + seconds, answer)
        while len(self._answers) > CACHE_SIZE:
            self._answers.popitem(last=False)


class Authenticator:
    """Authenticates tokens."""

    def __init__(self, client: ApiClient, clock: Clock, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self._cache: ExpiringCache[tuple[Identity | None]] = ExpiringCache(clock)
        self._complaints = Throttle(clock.now)

    async def identify(self, token: str) -> Identity | None:
        """Return the owner of a token; None if it is not valid. Raises CannotAsk."""
        if not token or len(token) > MAX_TOKEN:
            return None
        key = hashlib.sha256(token.encode()).hexdigest()
        if (known := self._cache.get(key)) is not None:
            return known[0]
        answer = await _ask(self._client, TOKEN_REVIEWS, {"token": token}, self._complaints)
        found = _identity(answer.get("status", default={}))
        self._cache.put(key, (found,), self._seconds)
        return found


class Authorizer:
    """Authorizes requests."""

    def __init__(self, client: ApiClient, clock: Clock, allow_seconds: float, deny_seconds: float) -> None:
        self._client = client
        self._allow_seconds = allow_seconds
        self._deny_seconds = deny_seconds
        self._cache: ExpiringCache[bool] = ExpiringCache(clock)
        self._complaints = Throttle(clock.now)

    async def allows(self, who: Identity, verb: str, path: str) -> bool:
        """Return whether a user may do this. Raises CannotAsk."""
        if MASTERS in who.groups:
            return True
        key = repr((who, verb, path))
        if (known := self._cache.get(key)) is not None:
            return known
        spec: dict[str, Any] = {
            "user": who.name,
            "groups": list(who.groups),
            "nonResourceAttributes": {"path": path, "verb": verb},
            **({"uid": who.uid} if who.uid else {}),
            **({"extra": {name: list(values) for name, values in who.extra}} if who.extra else {}),
        }
        answer = await _ask(self._client, ACCESS_REVIEWS, spec, self._complaints)
        allowed = answer.get("status", "allowed") is True and answer.get("status", "denied") is not True
        self._cache.put(key, allowed, self._allow_seconds if allowed else self._deny_seconds)
        return allowed


async def _ask(client: ApiClient, resource: Resource, spec: dict[str, Any], complaints: Throttle) -> Unstructured:
    review = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
    try:
        answer = await client.create(resource, Unstructured(review))
    except MoorageError as error:
        if complaints.admits():
            _log.error("The API server does not answer a review of a request", error, review=resource.kind)
        raise CannotAsk(f"no answer to a {resource.kind}") from error
    if not isinstance(answer, Unstructured):
        raise CannotAsk(f"an answer to a {resource.kind} that is none")
    return answer


def _identity(status: Any) -> Identity | None:
    if not isinstance(status, dict) or status.get("authenticated") is not True:
        return None
    user = status.get("user")
    if not isinstance(user, dict) or not isinstance(user.get("username"), str) or not user["username"]:
        return None
    extra = user.get("extra") or {}
    return Identity(
        user["username"],
        tuple(str(group) for group in user.get("groups") or ()),
        str(user.get("uid") or ""),
        tuple(sorted((str(name), tuple(map(str, values))) for name, values in extra.items())),
    )


class Guard:
    """An ASGI application around another. Without an authenticator every request passes, which users must
    request with a flag."""

    def __init__(
        self,
        app: App,
        *,
        authenticator: Authenticator | None,
        authorizer: Authorizer | None,
        always_allow: Sequence[str] = (),
        writable: Sequence[tuple[str, str]] = (),
    ) -> None:
        """`writable` lists the methods other than GET that are served, each with its path."""
        self._app = app
        self._writable = frozenset(writable)
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._open = frozenset(path.lstrip("/") for path in always_allow if not path.endswith("*"))
        self._open_prefixes = tuple(path.rstrip("*").lstrip("/") for path in always_allow if path.endswith("*"))

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        refusal = await self._refusal(request)
        if refusal is not None:
            refusal.headers.update(HEADERS)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _refusal(self, request: Request) -> Response | None:
        # The path that the router will see. `request.url` contains the Host header, which the client chooses.
        path: str = request.scope["path"]
        writes = (request.method, path) in self._writable
        if (refusal := _bad_body(request) if writes else _not_served(request)) is not None:
            return refusal
        if self._authenticator is None or (self._is_open(path) and not writes):
            return None
        try:
            who = await self._identify(request)
            if who is None:
                return PlainTextResponse("Unauthorized\n", 401, {"www-authenticate": "Bearer"})
            verb = request.method.lower()
            if self._authorizer is None or await self._authorizer.allows(who, verb, path):
                return None
        except CannotAsk as error:
            return PlainTextResponse(f"{error}; try again later\n", 503, {"retry-after": "5"})
        return PlainTextResponse(f'Forbidden: User "{_plain(who.name)}" cannot {verb} path "{_plain(path)}"\n', 403)

    def _is_open(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._open or any(bare.startswith(prefix) for prefix in self._open_prefixes)

    async def _identify(self, request: Request) -> Identity | None:
        """Identify the client by its certificate, which TLS has verified, or by its token."""
        peer = request.scope.get("moorage.user")
        if peer is not None:
            return Identity(peer.name, tuple(peer.groups))
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or self._authenticator is None:
            return None
        return await self._authenticator.identify(token.strip())


def _not_served(request: Request) -> Response | None:
    if request.method not in ("GET", "HEAD"):
        return PlainTextResponse("only GET is served here\n", 405, {"allow": "GET, HEAD"})
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        return PlainTextResponse("a GET has no body\n", 413)
    return None


def _bad_body(request: Request) -> Response | None:
    length = request.headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()):
        return PlainTextResponse("send the body with its Content-Length\n", 411)
    if int(length) > MAX_BODY:
        return PlainTextResponse(f"the body has {length} bytes; at most {MAX_BODY} are taken\n", 413)
    # An HTML form can send no PUT, and pages of other sites may send one only if the server says so.
    content_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if request.method == "POST" and content_type not in BODY_TYPES:
        return PlainTextResponse(f"send the body as {' or '.join(BODY_TYPES)}\n", 415)
    return None


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() and char not in '"\\' else "?" for char in text)[:256]
