"""The address of the pages, with the token that opens them, and the guard that admits browsers with it.

The token is in the address that the command prints, as with Jupyter. The guard exchanges it for a cookie and
removes it from the address. Before that it refuses requests for another host name, or from pages of another
site, so that no other web page can reach these pages through the user's browser.
"""

from __future__ import annotations

import hmac
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from moorage.serving.server import PortInUse, listen

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOST, PORT = "127.0.0.1", 7480
"""Next to the API server of `moorage up`; if the port is in use, any free port."""
HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""Ports may be forwarded, so any port is accepted, but no other host name."""
NO_TOKEN = "Open the address that `moorage ui` printed: it contains a token.\n"
WRONG_TOKEN = "This token is no longer valid: open the address that `moorage ui` printed at its last start.\n"
_HOST = re.compile(r"(?P<name>[A-Za-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def take_port(port: int | None = None) -> socket.socket:
    """Return a listening socket. Without a port it is the usual one, or any free one."""
    try:
        return listen(HOST, PORT if port is None else port, "--port")
    except PortInUse:
        if port is not None:
            raise
    return listen(HOST, 0, "--port")


def new_token() -> str:
    return secrets.token_urlsafe(24)


def address(listening: socket.socket, token: str) -> str:
    return f"http://localhost:{listening.getsockname()[1]}/?token={token}"


class UiGuard:
    """An ASGI application around the pages."""

    def __init__(self, app: App, port: int, token: str) -> None:
        self._app = app
        self._token = token
        # Browsers share cookies among all ports of a host.
        self._cookie = f"moorage-ui-{port}"
        self._session = secrets.token_urlsafe(24)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        answer = self._answer(HTTPConnection(scope))
        if answer is None:
            await self._app(scope, receive, _Page(send) if scope["type"] == "http" else send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
        else:
            answer.headers.update({**HEADERS, "cache-control": "no-store"})
            await answer(scope, receive, send)

    def _answer(self, request: HTTPConnection) -> Response | None:
        """Return the answer to a request that is refused or redirected; None if it may pass."""
        host = request.headers.get("host", "")
        if _name(host) not in HOSTS:
            return PlainTextResponse("This host name is not served; use localhost.\n", 421)
        origin = request.headers.get("origin")
        if (origin is not None and origin.partition("://")[2] != host) or not _from_own_site(request):
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        given = request.query_params.get("token")
        if given is not None:
            return self._exchange(request, given)
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            return PlainTextResponse(NO_TOKEN, 401)
        return None

    def _exchange(self, request: HTTPConnection, given: str) -> Response:
        """Exchange the token for a cookie, and redirect to the address without it, so that the browser's
        history does not keep it."""
        if not _same(given, self._token):
            return PlainTextResponse(WRONG_TOKEN, 401)
        # The address as it was received: `request.url` contains the Host header.
        query: str = request.scope["query_string"].decode("latin-1")
        rest = urlencode([pair for pair in parse_qsl(query) if pair[0] != "token"])
        path = quote(f"/{request.scope['path'].lstrip('/')}")
        target = f"{path}?{rest}" if rest else path
        answer: Response = RedirectResponse(target, 303)
        if request.headers.get("sec-fetch-site") == "cross-site":
            # A browser does not send a strict cookie on a redirect that began elsewhere, but from a page of ours.
            answer = HTMLResponse(f'<meta http-equiv="refresh" content="0; url={escape(target)}">')
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        return answer


class _Page:
    """Forwards an answer with the security headers, and adds the nonce of the policy to all script elements.

    NiceGUI escapes `<` in all data that it writes into a page, so every script element is its own.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            headers.update(HEADERS)
            if headers.get("content-type", "").startswith("text/html"):
                self._start = message
                return
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_page(self._start)
            return
        await self._send(message)

    async def _send_page(self, start: Message) -> None:
        nonce = secrets.token_urlsafe(18)
        body = self._body.replace(b"<script", f'<script nonce="{nonce}"'.encode())
        headers = MutableHeaders(raw=start["headers"])
        headers.update({"content-length": str(len(body)), "content-security-policy": policy(nonce)})
        headers["cache-control"] = "no-store"
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def policy(nonce: str) -> str:
    """Return a Content-Security-Policy: everything from this server, no inline handlers, no frames. Vue compiles
    templates in the browser, which needs `unsafe-eval`; Quasar and ECharts set styles on elements."""
    return (
        f"default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def _from_own_site(request: HTTPConnection) -> bool:
    """Return whether a page of this server, or the user, makes the request. Other sites may only link to a page.

    A page of another port of this host is of the same site, and of another origin. Old browsers do not say."""
    headers = request.headers
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return True
    if request.scope["type"] != "http" or request.scope["method"] not in ("GET", "HEAD"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")


def _name(host: str) -> str:
    """Return a host name without its port; an empty one for a header that contains anything else."""
    found = _HOST.fullmatch(host)
    return found["name"].strip("[]").lower() if found else ""


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
