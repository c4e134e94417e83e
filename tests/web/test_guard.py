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


def ask(
    made: guard.UiGuard, path: str = "/", kind: str = "http", method: str = "GET", **headers: str
) -> list[dict[str, Any]]:
    """Return what is sent. Underscores in the names of headers stand for dashes."""
    path, _, query = path.partition("?")
    given = {"host": "localhost:1", **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    scope = {"type": kind, "method": method, "path": path, "query_string": query.encode(), "headers": raw}
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


def test_the_cookie_belongs_to_the_port_and_goes_to_no_other_site(made):
    name, *attributes = headers_of(ask(made, "/?token=secret"))["set-cookie"].split("; ")
    assert name.startswith("moorage-ui-1=")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=strict"]


def test_a_link_of_another_site_leads_on_by_a_page_because_the_browser_would_not_send_the_cookie(made):
    sent = ask(made, '/a"b?token=secret&x=<&lt=1', sec_fetch_site="cross-site", **NAVIGATION)
    assert sent[0]["status"] == 200
    assert "SameSite=strict" in headers_of(sent)["set-cookie"]
    assert sent[1]["body"] == b'<meta http-equiv="refresh" content="0; url=/a%22b?x=%3C&amp;lt=1">'


@pytest.mark.parametrize(
    ("path", "location"),
    [("/a?b/c", "/a%3Fb/c"), ("/\\evil.example", "/%5Cevil.example"), ("//evil.example", "/evil.example")],
)
def test_the_redirect_leads_to_the_path_that_was_asked_for(made, path, location):
    """The path of a scope is decoded."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"token=secret",
        "headers": [(b"host", b"localhost")],
    }
    sent: list[dict[str, Any]] = []

    async def send(message):
        sent.append(message)

    asyncio.run(made({**scope, "scheme": "http", "server": ("localhost", 1)}, None, send))
    assert headers_of(sent)["location"] == location


NAVIGATION = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"sec_fetch_site": "same-origin"}, 200),
        ("GET", {"sec_fetch_site": "none", **NAVIGATION}, 200),
        ("POST", {"sec_fetch_site": "same-origin"}, 200),
        ("POST", {}, 200),
        ("GET", {"sec_fetch_site": "cross-site", **NAVIGATION}, 200),
        ("GET", {"sec_fetch_site": "same-site"}, 403),
        ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, 403),
        ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}, 403),
        ("POST", {"sec_fetch_site": "cross-site", **NAVIGATION}, 403),
        ("POST", {"sec_fetch_site": "same-site"}, 403),
        ("DELETE", {"sec_fetch_site": "strange"}, 403),
    ],
)
def test_only_the_own_pages_and_the_address_bar_may_do_more_than_open_a_page(made, method, headers, status):
    assert ask(made, method=method, cookie=cookie(made), **headers)[0]["status"] == status


@pytest.mark.parametrize(
    ("site", "answer"), [("same-origin", "accept"), ("same-site", "close"), ("cross-site", "close")]
)
def test_a_websocket_of_another_site_is_refused(made, site, answer):
    sent = ask(made, kind="websocket", cookie=cookie(made), sec_fetch_site=site, **NAVIGATION)
    assert sent[0]["type"] == f"websocket.{answer}"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 401),
        ("/?token=guess", {}, 401),
        ("/", {"cookie": "moorage-ui-1=guess"}, 401),
        ("/?token=secret", {"host": "evil.example"}, 421),
        ("/?token=secret", {"origin": "http://evil.example"}, 403),
        ("/?token=secret", {"origin": "null"}, 403),
        ("/?token=secret", {"origin": "http://["}, 403),
        ("/?token=secret", {"origin": "localhost:1"}, 403),
    ],
    ids=["no token", "wrong token", "wrong cookie", "host", "origin", "null origin", "broken origin", "half an origin"],
)
def test_other_requests_are_refused(made, path, headers, status):
    assert ask(made, path, **headers)[0]["status"] == status


@pytest.mark.parametrize(
    "host",
    [
        "localhost/healthz?",
        "localhost#",
        "localhost?",
        "localhost/..",
        "x@localhost",
        "localhost\\",
        "[",
        "[::1",
        "",
        ":1",
    ],
)
def test_a_host_header_is_a_name_and_a_port_and_nothing_else(made, host):
    assert ask(made, "/?token=secret", host=host)[0]["status"] == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:7480", "[::1]:7480", "[::1]"])
def test_any_port_of_this_machine_is_served(made, host):
    assert ask(made, "/?token=secret", host=host)[0]["status"] == 303


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("//evil.example/x", "/evil.example/x"),
        ("/\\evil.example", "/%5Cevil.example"),
        ("/pod/a/b c", "/pod/a/b%20c"),
        ("/pod/a/50%", "/pod/a/50%25"),
        ("/pod/a/\r\nx: y", "/pod/a/%0D%0Ax%3A%20y"),
    ],
)
def test_the_redirect_stays_on_this_server(made, path, location):
    assert headers_of(ask(made, f"{path}?token=secret"))["location"] == location


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
