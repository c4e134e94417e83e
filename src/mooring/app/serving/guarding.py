"""The guard in front of the endpoints: method, size, who asks, and whether they may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from mooring.app.serving.reviewing import Authenticator, Authorizer, CannotAsk, Identity

Scope = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]

HEADERS = {
    "cache-control": "no-cache, private",
    "x-content-type-options": "nosniff",
}


class Guard:
    """An ASGI application around another. Without an authenticator everybody passes; that is for those who
    asked for it expressly."""

    def __init__(
        self,
        app: App,
        *,
        authenticator: Authenticator | None,
        authorizer: Authorizer | None,
        always_allow: Sequence[str] = (),
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._open = frozenset(path.lstrip("/") for path in always_allow if not path.endswith("*"))
        self._open_prefixes = tuple(
            path.rstrip("*").lstrip("/") for path in always_allow if path.endswith("*")
        )

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
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("only GET is served\n", 405, {"allow": "GET, HEAD"})
        if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
            return PlainTextResponse("a GET has no body\n", 413)
        if self._authenticator is None or self._is_open(request.url.path):
            return None
        try:
            who = await self._identify(request)
            if who is None:
                return PlainTextResponse("Unauthorized\n", 401, {"www-authenticate": "Bearer"})
            verb, path = request.method.lower(), request.url.path
            if self._authorizer is None or await self._authorizer.allows(who, verb, path):
                return None
        except CannotAsk as error:
            return PlainTextResponse(f"{error}; try again later\n", 503, {"retry-after": "5"})
        return PlainTextResponse(f'Forbidden: User "{_plain(who.name)}" cannot {verb} path "{path}"\n', 403)

    def _is_open(self, path: str) -> bool:
        bare = path.lstrip("/")
        return bare in self._open or any(bare.startswith(prefix) for prefix in self._open_prefixes)

    async def _identify(self, request: Request) -> Identity | None:
        """By certificate, which TLS has verified, else by token."""
        peer = request.scope.get("mooring.user")
        if peer is not None:
            return Identity(peer.name, tuple(peer.groups))
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or self._authenticator is None:
            return None
        return await self._authenticator.identify(token.strip())


def _plain(text: str) -> str:
    return "".join(char if char.isprintable() and char not in '"\\' else "?" for char in text)[:256]
