"""The guard of the pages, asked as an ASGI application."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.web import guard

HTML = b"<html><script>1</script><script src=x></script></html>"


async def pages(scope, receive, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": HTML[:9], "more_body": True})
    await send({"type": "http.response.body", "body": HTML[9:]})


def ask(made: guard.UiGuard, path: str = "/", kind: str = "http", **headers: str) -> list[dict[str, Any]]:
    path, _, query = path.partition("?")
    raw = [(name.encode(), value.encode()) for name, value in {"host": "localhost:1", **headers}.items()]
    scope = {"type": kind, "method": "GET", "path": path, "query_string": query.encode(), "headers": raw}
    sent: list[dict[str, Any]] = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request"}

    asyncio.run(made({**scope, "scheme": "http", "server": ("localhost", 1)}, receive, send))
    return sent


@pytest.fixture
def made() -> guard.UiGuard:
    return guard.UiGuard(pages, 1, "secret")


def headers_of(sent: list[dict[str, Any]]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def cookie(made: guard.UiGuard) -> str:
    return headers_of(ask(made, "/cluster?token=secret&show=x"))["set-cookie"].partition(";")[0]


def test_the_token_becomes_a_cookie_and_leaves_the_address(made):
    sent = ask(made, "/cluster?token=secret&show=x")
    assert (sent[0]["status"], headers_of(sent)["location"]) == (303, "/cluster?show=x")
    assert ask(made, cookie=cookie(made))[0]["status"] == 200


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 401),
        ("/?token=guess", {}, 401),
        ("/", {"cookie": "moorage-ui-1=guess"}, 401),
        ("/?token=secret", {"host": "evil.example"}, 421),
        ("/?token=secret", {"origin": "http://evil.example"}, 403),
    ],
    ids=["no token", "wrong token", "wrong cookie", "host", "origin"],
)
def test_other_requests_are_refused(made, path, headers, status):
    assert ask(made, path, **headers)[0]["status"] == status


def test_a_websocket_needs_the_cookie_too(made):
    assert ask(made, kind="websocket")[0]["type"] == "websocket.close"
    assert ask(made, kind="websocket", cookie=cookie(made))[0]["type"] == "websocket.accept"


def test_all_scripts_of_a_page_get_the_nonce_of_its_policy(made):
    sent = ask(made, cookie=cookie(made))
    found = headers_of(sent)
    nonce = found["content-security-policy"].partition("nonce-")[2].partition("'")[0]
    assert sent[1]["body"].count(f'nonce="{nonce}"'.encode()) == 2
    assert found["content-length"] == str(len(sent[1]["body"]))
    assert found["x-frame-options"] == "DENY"
