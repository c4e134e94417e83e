"""The guard judges exactly the path that the application then routes, however a client writes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.serving.access import Authenticator, Authorizer, Guard, Identity
from moorage.serving.server import Listener

OPEN, WRITABLE = "/healthz", "/moorage/v1/configuration"


class Reviews(Authorizer):
    """Allows everything, and keeps the paths that it was asked about."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def allows(self, who: Identity, verb: str, path: str) -> bool:
        self.asked.append((verb, path))
        return True


class AnyToken(Authenticator):
    """Knows every token."""

    def __init__(self) -> None: ...

    async def identify(self, token: str) -> Identity | None:
        return Identity("user") if token else None


class Pages:
    """Keeps the paths that it was asked for, as a router sees them."""

    def __init__(self) -> None:
        self.routed: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.routed.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


async def exchange(guard: Guard, request: str) -> int:
    """Send a request as it stands over a socket, and return the status."""
    listener = Listener("127.0.0.1", 0, None)
    await listener.start(guard)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(request.encode("latin-1"))
        status = int((await reader.readline()).split()[1])
        writer.close()
        return status
    finally:
        await listener.stop(0.1)


def ask(
    path: str, *, method: str = "GET", host: str = "127.0.0.1", token: str = "t"
) -> tuple[int, list[str], list[Any]]:
    """Return the status, the routed paths, and the judged ones."""
    pages, reviews = Pages(), Reviews()
    guard = Guard(
        pages, authenticator=AnyToken(), authorizer=reviews, always_allow=[OPEN], writable=[("POST", WRITABLE)]
    )
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}", *([f"Authorization: Bearer {token}"] if token else [])]
    if method == "POST":
        head += ["Content-Length: 0", "Content-Type: application/json"]
    status = asyncio.run(exchange(guard, "\r\n".join([*head, "", ""])))
    return status, pages.routed, reviews.asked


PATHS = {
    "/metrics": "/metrics",
    "/metrics?x=1": "/metrics",
    "/healthz%3F": "/healthz?",
    "/healthz%3Fx": "/healthz?x",
    "/healthz%23x": "/healthz#x",
    "/moorage/v1/nodes/a%3Fb": "/moorage/v1/nodes/a?b",
    "/moorage/v1%2Fsummary": "/moorage/v1/summary",
    "/healthz%2F..%2Fmetrics": "/healthz/../metrics",
    "/healthz/../metrics": "/healthz/../metrics",
    "/metrics%00": "/metrics\0",
    "/metrics%2500": "/metrics%00",
    "/%2568ealthz": "/%68ealthz",
    "//healthz": "//healthz",
    "/%2Fhealthz": "//healthz",
}


@pytest.mark.parametrize(("sent", "routed"), PATHS.items())
def test_the_judged_path_is_the_routed_one(sent, routed):
    assert ask(sent) == (200, [routed], [("get", routed)])


@pytest.mark.parametrize("sent", [*PATHS, "/%3F/healthz"])
def test_without_a_token_only_the_open_path_is_routed(sent):
    assert ask(sent, token="") == (401, [], [])


@pytest.mark.parametrize("sent", [OPEN, "/healthz?verbose", "/health%7A"])
def test_the_open_path_needs_no_token(sent):
    assert ask(sent, token="") == (200, [OPEN], [])


@pytest.mark.parametrize("host", ["127.0.0.1/healthz?", "127.0.0.1/healthz#", "127.0.0.1\\healthz?", "?", "a@b"])
def test_the_host_does_not_change_what_is_judged(host):
    status, routed, _ = ask("/metrics", host=host, token="")
    assert status in (400, 401, 421)
    assert routed == []


@pytest.mark.parametrize("sent", ["/moorage/v1/configuration%3F", "/moorage/v1/configuration%23", "/other"])
def test_a_post_reaches_the_writable_path_only(sent):
    assert ask(sent, method="POST")[:2] == (405, [])
