"""Who may see the pages: an ASGI application around them that lets in browsers with the token of this start.

The token is in the address that the command prints, as with Jupyter; it is exchanged for a cookie and taken
out of the address. Requests for another host name, or from the pages of another site, are refused before
that, so that no web page elsewhere can reach these through the user's browser.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""Also through a forwarded port: any port will do, another name will not."""
NO_TOKEN = "Open the address that `moorage ui` has printed: it carries the token of this start.\n"
WRONG_TOKEN = "This token is not the one of this start: open the address that `moorage ui` has printed.\n"
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    def __init__(self, app: App, port: int, token: str) -> None:
        self._app = app
        self._token = token
        # Cookies are shared by all ports of a host.
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
        """What to say instead of a page; None: the request may pass."""
        host = request.headers.get("host", "")
        if _name(host) not in HOSTS:
            return PlainTextResponse("This host name is not served: use localhost.\n", 421)
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        given = request.query_params.get("token")
        if given is not None:
            return self._exchange(request, given)
        if not _same(request.cookies.get(self._cookie, ""), self._session):
            return PlainTextResponse(NO_TOKEN, 401)
        return None

    def _exchange(self, request: HTTPConnection, given: str) -> Response:
        """The token for a cookie, and the address without it: it shall not stay in the history."""
        if not _same(given, self._token):
            return PlainTextResponse(WRONG_TOKEN, 401)
        rest = urlencode([pair for pair in parse_qsl(request.url.query) if pair[0] != "token"])
        path = f"/{request.url.path.lstrip('/')}"
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="lax", path="/")
        return answer


class _Page:
    """Sends an answer on, with the headers; the scripts of an HTML page get the nonce of its policy.

    NiceGUI writes no data of ours into a page that could contain a tag: `<` is escaped there. So every
    script element is its own."""

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
    """Everything from here, no inline handlers, no frames. Vue compiles templates in the browser, which is
    `unsafe-eval`; Quasar and ECharts set styles on elements."""
    return (
        f"default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def _name(host: str) -> str:
    """Without the port."""
    return urlsplit(f"//{host}").hostname or ""


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
