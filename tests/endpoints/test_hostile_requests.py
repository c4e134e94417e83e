"""Requests whose Host header or target can be read in two ways: they never get what needs a token.

Starlette before 1.0 builds `request.url` from the Host header, so a Host of `x/healthz?` made any path look like
/healthz. `make test-lowest` runs this with such a Starlette.
"""

from __future__ import annotations

import ast
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.endpoints.served import SECRET, Served

CLIENT = ssl._create_unverified_context()
SOURCE = Path(__file__).resolve().parents[2] / "src" / "moorage"
GUARDED = (*SECRET, "/", "/healthz/ping", "/moorage/v1/snapshot", "/moorage/v1/configuration", "/moorage/v1/nodes/n")
HOSTS = (
    "x/healthz?",
    "x/healthz#",
    "x/healthz;",
    "x/livez/..",
    "x/healthz/..",
    "x/readyz\\",
    "x@y/healthz?",
    "/healthz?",
    "//healthz?",
    "?",
    "#",
    "[",
    "[::1",
    "x:99999/healthz?",
    "x%2fhealthz%3f",
    "",
)
TARGETS = (
    "https://x/healthz?{path}",
    "https://x{path}",
    "https://x/healthz/..{path}",
    "//healthz/..{path}",
    "//healthz{path}",
    "/healthz/..{path}",
    "/healthz/%2e%2e{path}",
    "/healthz%2f..{path}",
    "/healthz%3f{path}",
    "/healthz%23{path}",
    "/healthz;{path}",
    "/healthz%00{path}",
    "/livez/./..{path}",
    "/{path}",
    "{path}/",
    "{path}%2f",
    "{path}?x=/healthz",
    "{path}#/healthz",
)
CONTENT = (b"componentconfig", b"secure-port", b"Leads", b"# nothing", b"annotations", b"generation", b"paths")
"""A piece of each answer that a token is needed for."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.thread.stop()


def send(served: Served, target: str, *hosts: str, method: str = "GET") -> tuple[int, bytes]:
    """Send a request head as it is, without credentials. Return the status and everything that came back."""
    head = [f"{method} {target} HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""]
    raw = socket.create_connection(("127.0.0.1", served.thread.port), timeout=10)
    with raw, CLIENT.wrap_socket(raw) as secure:
        secure.sendall("\r\n".join(head).encode())
        found = b"".join(iter(lambda: secure.recv(65536), b""))
    return int(found.split()[1]), found


def assert_refused(status: int, answer: bytes) -> None:
    assert 400 <= status < 500, answer
    assert [piece for piece in CONTENT if piece in answer] == []


@pytest.mark.parametrize("host", HOSTS)
def test_no_host_header_opens_a_path(served: Served, host: str):
    for path in GUARDED if host == HOSTS[0] else GUARDED[-3:]:
        assert_refused(*send(served, path, host))
    assert_refused(*send(served, "/metrics", "localhost", host))
    assert_refused(*send(served, "/metrics", host, method="HEAD"))
    assert send(served, "/healthz", host)[0] in (200, 400), "the path alone decides"


@pytest.mark.parametrize("target", TARGETS)
def test_no_form_of_the_target_opens_a_path(served: Served, target: str):
    for path in ("/metrics", "/moorage/v1/snapshot"):
        status, answer = send(served, target.format(path=path), "localhost")
        if target.startswith("https://x/healthz?"):
            assert answer.endswith(b"\r\n\r\nok"), "this is /healthz with a query, and nothing else"
        else:
            assert_refused(status, answer)


def test_no_redirect_names_the_host_of_the_request():
    made = Served(always_allow=("/*",))
    try:
        for path in ("/healthz/", "/metrics/", "/moorage/v1/snapshot/"):
            status, answer = send(made, path, "evil.example")
            assert (status, b"evil.example" in answer) == (404, False)
    finally:
        made.thread.stop()


def test_no_code_reads_the_path_of_a_url_that_contains_the_host_header():
    """The path of a request is `scope["path"]`; `request.url` and `base_url` depend on the Host header."""
    found = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in sorted(SOURCE.rglob("*.py"))
        if "from starlette" in (text := file.read_text()) or "fastapi" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ("url", "base_url", "url_for") and _is_request(node.value)
    ]
    assert found == []


def _is_request(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("request", "connection", "websocket")
