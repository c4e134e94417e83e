"""Who gets in, and that texts of a cluster stay texts."""

from __future__ import annotations

import http.client
from contextlib import closing

import pytest

from tests.web.browser import clusters

pytestmark = [pytest.mark.ui, pytest.mark.slow]

PATHS = ("/", "/pod/default/train", "/_nicegui_ws/socket.io/?EIO=4&transport=polling", "/favicon.ico")
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


@pytest.fixture(scope="module")
def served(serve, tmp_path_factory):
    return serve("--snapshot", clusters.write(tmp_path_factory.mktemp("doors"), "story", clusters.story()))


def get(served, path, **headers):
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace"), dict(answer.getheaders())


@pytest.fixture(scope="module")
def cookie(served):
    _, _, headers = get(served, served.address.removeprefix(served.root))
    return headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_there_is_nothing_to_see(served, path):
    status, text, _ = get(served, path)
    assert status == 401
    assert "moorage ui" in text
    assert "default" not in text


def test_a_wrong_token_opens_nothing(served):
    status, _, headers = get(served, "/?token=guess")
    assert status == 401
    assert "set-cookie" not in headers


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(served):
    token = served.address.partition("token=")[2]
    status, _, headers = get(served, f"/pod/default/train?token={token}&x=1")
    assert status == 303
    assert headers["location"] == "/pod/default/train?x=1"
    assert "HttpOnly" in headers["set-cookie"]
    assert token not in headers["set-cookie"]


@pytest.mark.parametrize("path", ["//evil.example/", "/%2F/evil.example"])
def test_the_exchange_leads_nowhere_else(served, path):
    token = served.address.partition("token=")[2]
    _, _, headers = get(served, f"{path}?token={token}")
    assert not headers["location"].startswith(("//", "http"))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_foreign_host_is_refused(served, cookie, host):
    assert get(served, "/", Cookie=cookie, Host=host)[0] == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
def test_a_foreign_origin_is_refused(served, cookie, origin):
    host = f"localhost:{served.port}"
    assert get(served, "/", Cookie=cookie, Host=host, Origin=origin)[0] == 403
    assert get(served, SOCKET, Cookie=cookie, Host=host, Origin=origin, **UPGRADE)[0] == 403


def test_a_socket_without_the_cookie_is_refused(served):
    host = f"localhost:{served.port}"
    assert get(served, SOCKET, Host=host, Origin=f"http://{host}", **UPGRADE)[0] == 403


def test_pages_forbid_scripts_frames_and_guesses(served, cookie):
    status, text, headers = get(served, "/", Cookie=cookie)
    policy = headers["content-security-policy"]
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert status == 200
    assert text.count("<script") == text.count(f'<script nonce="{nonce}"')
    assert "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_nothing_is_served_but_the_pages(served, cookie):
    for path in ("/docs", "/openapi.json", "/redoc"):
        assert get(served, path, Cookie=cookie)[0] == 404


def test_a_link_on_a_page_of_another_site_opens_the_pages(served, chromium):
    """Such as a terminal in the browser. The cookie is strict, so a plain redirect would come without it."""
    with closing(chromium.new_context()) as context:
        page = context.new_page()
        link = f'<a href="{served.address}">open</a>'
        page.route("http://elsewhere.example/", lambda route: route.fulfill(content_type="text/html", body=link))
        page.goto("http://elsewhere.example/")
        page.click("a")
        page.wait_for_selector(".m-table")
        assert page.url == f"{served.root}/"


@pytest.fixture(scope="module")
def hostile(serve, tmp_path_factory):
    return serve("--snapshot", clusters.write(tmp_path_factory.mktemp("hostile"), "bad", clusters.hostile()))


@pytest.mark.parametrize("number", range(4))
def test_hostile_texts_show_as_text(hostile, look, number):
    looking = look(hostile)
    page = looking.open("/")
    page.locator(".m-table tbody a").nth(3).wait_for()
    assert clusters.SCRIPT in page.locator(".m-table").inner_text()
    page.locator(".m-table tbody a").nth(number).click()
    page.wait_for_selector("text=Pending: 0 of 4 nodes are feasible")
    page.wait_for_selector(".ag-cell")
    page.locator(".ag-pinned-left-cols-container .ag-cell").nth(number).click()
    page.wait_for_selector("text=taint gpu=")
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.body.scrollWidth") <= 1280
    looking.shot(f"hostile-{number}")
