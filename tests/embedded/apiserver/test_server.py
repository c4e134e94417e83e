"""The server on a real loopback port: TLS, certificates, limits of connections, start and stop."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from moorage.api import resources
from moorage.embedded.apiserver import messages
from moorage.embedded.apiserver.server import HttpServer
from moorage.serving import connections
from moorage.serving.certificates import Authority, User, load
from moorage.serving.connections import ConnectionLimits
from moorage.serving.server import CannotListen
from tests.embedded.apiserver.kit import PODS, pod
from tests.embedded.apiserver.load import build


class Client:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, head: str, body: bytes = b"") -> tuple[int, bytes]:
        self.writer.write(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        return await self.answer()

    async def answer(self) -> tuple[int, bytes]:
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 10)
        status = int(head.split(b" ", 2)[1])
        length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length:")), None)
        size = int(length.split(b":")[1]) if length else 0
        return status, await self.reader.readexactly(size)

    async def closed(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(), 10) == b""
        except (ConnectionError, ssl.SSLError):
            return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await self.writer.wait_closed()


class Running:
    """A started server, with what clients need."""

    def __init__(self, limits: ConnectionLimits | None, plain: bool) -> None:
        self.app, self.store, self.token = build()
        self.authority = Authority.new(time.time())
        self.plain = plain
        tls = None if plain else self.authority.server_context()
        self.server = HttpServer(self.app, tls=tls, limits=limits)
        self.clients: list[Client] = []

    async def connect(self, certificate: User | None = None) -> Client:
        context = None
        if not self.plain:
            context = ssl.create_default_context(cadata=self.authority.pem.certificate.decode())
            if certificate is not None:
                load(context, self.authority.client(certificate))
        client = Client(*await asyncio.open_connection("127.0.0.1", self.server.port, ssl=context))
        self.clients.append(client)
        return client

    def head(self, method: str = "GET", path: str = PODS, *more: str, token: str | None = None) -> str:
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.server.port}"]
        lines.append(f"Authorization: Bearer {self.token if token is None else token}")
        return "\n".join([*lines, *more])


def running(
    scenario: Callable[[Running], Awaitable[None]], limits: ConnectionLimits | None = None, *, plain: bool = False
) -> None:
    async def main() -> None:
        world = Running(limits, plain)
        await world.server.start()
        try:
            await scenario(world)
        finally:
            await world.server.stop()
            for client in world.clients:
                await client.close()
            assert world.server.connections == 0

    asyncio.run(main())


@pytest.mark.parametrize("plain", [True, False])
def test_requests_are_answered_one_after_the_other_on_one_connection(plain: bool):
    async def scenario(world: Running):
        client = await world.connect()
        body = json.dumps(pod()).encode()
        head = world.head("POST", PODS, "Content-Type: application/json", f"Content-Length: {len(body)}")
        assert (await client.ask(head, body))[0] == 201
        status, listed = await client.ask(world.head())
        assert (status, len(json.loads(listed)["items"])) == (200, 1)
        assert (await client.ask(world.head(token="wrong")))[0] == 401
        assert world.server.url == f"http{'' if plain else 's'}://127.0.0.1:{world.server.port}"

    running(scenario, plain=plain)


def test_clients_verify_the_server_by_its_authority():
    async def scenario(world: Running):
        other = ssl.create_default_context(cadata=Authority.new(time.time()).pem.certificate.decode())
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", world.server.port, ssl=other)
        ours = ssl.create_default_context(cadata=world.authority.pem.certificate.decode())
        for name in ("127.0.0.1", "::1", "localhost"):
            opened = await asyncio.open_connection("127.0.0.1", world.server.port, ssl=ours, server_hostname=name)
            world.clients.append(Client(*opened))

    running(scenario)


def test_a_client_certificate_of_ours_is_a_credential():
    async def scenario(world: Running):
        client = await world.connect(User("alice", ("dev",)))
        assert (await client.ask(world.head(token="")))[0] == 200
        stranger = ssl.create_default_context(cadata=world.authority.pem.certificate.decode())
        load(stranger, Authority.new(time.time()).client(User("mallory")))
        opened = await asyncio.open_connection("127.0.0.1", world.server.port, ssl=stranger)
        world.clients.append(Client(*opened))
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await world.clients[-1].ask(world.head(token=""))

    running(scenario)


def test_an_authority_is_kept_as_text():
    first = Authority.new(time.time())
    again = Authority(first.pem, time.time())
    context = ssl.create_default_context(cadata=first.pem.certificate.decode())
    assert context.cert_store_stats()["x509_ca"] == 1
    assert again.server().certificate.startswith(b"-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param("GET /healthz HTTP/1.1\nHost: evil.test", 421, id="rebinding"),
        pytest.param("GET /healthz HTTP/1.1\nHost: localhost.evil.test", 421, id="rebinding with our name"),
        pytest.param("GET /healthz HTTP/1.1\nHost: OURS\nHost: OURS", 400, id="two hosts"),
        pytest.param("GET /healthz HTTP/1.1", 400, id="no host"),
        pytest.param("GET /healthz HTTP/1.0", 400, id="the old protocol"),
        pytest.param("GET /healthz HTTP/1.0\nHost: OURS", 200, id="the old protocol with a host"),
        pytest.param("GET /api/v1/pods HTTP/1.1\nHost: OURS", 401, id="no token"),
        pytest.param("NONSENSE", 400, id="no HTTP"),
        pytest.param("GET /\x00 HTTP/1.1\nHost: OURS", 400, id="a bad path"),
        pytest.param("OPTIONS * HTTP/1.1\nHost: OURS", 401, id="no path"),
        pytest.param("GET /healthz HTTP/1.1\nHost: OURS\nX-A: " + "a" * 70_000, 431, id="a long header"),
        pytest.param("GET /" + "a" * 70_000 + " HTTP/1.1\nHost: OURS", 431, id="a long path"),
        pytest.param("GET /healthz HTTP/1.1\nHost: OURS\nX-A: " + "a" * 300_000, 431, id="a header in pieces"),
        pytest.param("GET /healthz HTTP/1.1\nHost: OURS\n" + "A: b\n" * 200 + "C: d", 431, id="many headers"),
    ],
)
def test_heads_that_are_turned_away(head: str, status: int):
    async def scenario(world: Running):
        client = await world.connect()
        answer, _ = await client.ask(head.replace("OURS", f"127.0.0.1:{world.server.port}"))
        assert answer == status

    running(scenario, plain=True)


def test_a_body_that_is_announced_too_large_is_refused_unread():
    async def scenario(world: Running):
        client = await world.connect()
        head = world.head("POST", PODS, "Content-Type: application/json", "Content-Length: 99999999")
        status, body = await client.ask(head)
        assert (status, json.loads(body)["reason"]) == (413, "RequestEntityTooLarge")

    running(scenario, plain=True)


def test_a_chunked_body_is_read_up_to_the_limit():
    async def scenario(world: Running):
        client = await world.connect()
        head = world.head("POST", PODS, "Content-Type: application/json", "Transfer-Encoding: chunked")
        body = json.dumps(pod()).encode()
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        assert (await client.ask(head, chunks))[0] == 201
        piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        assert (await client.ask(head, piece * 60))[0] == 413

    running(scenario, plain=True)


def test_heads_and_bodies_that_do_not_come_are_given_up(monkeypatch):
    monkeypatch.setattr(messages, "BODY_SECONDS", 0.2)

    async def scenario(world: Running):
        silent, halting = await world.connect(), await world.connect()
        halting.writer.write(b"GET /healthz HT")
        slow = await world.connect()
        head = world.head("POST", PODS, "Content-Type: application/json", "Content-Length: 100")
        status, body = await slow.ask(head, b"{")
        assert (status, json.loads(body)["reason"]) == (408, "Timeout")
        assert await silent.closed()
        assert await halting.closed()

    running(scenario, ConnectionLimits(head_seconds=0.3), plain=True)


def test_connections_beyond_the_limit_are_closed():
    async def scenario(world: Running):
        kept = [await world.connect() for _ in range(5)]
        assert await (await world.connect()).closed()
        for client in kept:
            assert (await client.ask(world.head()))[0] == 200

    running(scenario, ConnectionLimits(connections=5), plain=True)


def test_clients_that_vanish_leave_nothing_behind():
    async def scenario(world: Running):
        for _ in range(100):
            client = await world.connect()
            client.writer.write(world.head(path=f"{PODS}?watch=true").replace("\n", "\r\n").encode() + b"\r\n\r\n")
            await client.reader.readuntil(b"\r\n\r\n")
        assert world.app.watches == 100
        for client in world.clients:
            client.writer.transport.abort()
        deadline = time.monotonic() + 10
        while world.app.watches or world.server.connections:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)

    running(scenario, plain=True)


def test_stopping_ends_watches_with_the_end_of_their_body():
    async def scenario(world: Running):
        client = await world.connect()
        client.writer.write(world.head(path=f"{PODS}?watch=true").replace("\n", "\r\n").encode() + b"\r\n\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        start = time.monotonic()
        await world.server.stop()
        assert await asyncio.wait_for(client.reader.read(), 5) == b"0\r\n\r\n"
        assert time.monotonic() - start < 4
        with pytest.raises(ConnectionRefusedError):
            await world.connect()

    running(scenario)


def test_a_watcher_that_never_reads_is_given_up(monkeypatch):
    monkeypatch.setattr(messages, "SEND_SECONDS", 0.2)

    async def scenario(world: Running):
        client = await world.connect()
        client.writer.write(world.head(path=f"{PODS}?watch=true").replace("\n", "\r\n").encode() + b"\r\n\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        big = {**pod(), "metadata": {"name": "a", "namespace": "default", "annotations": {"x": "y" * 200_000}}}
        deadline = time.monotonic() + 20
        number = 0
        while world.app.watches:
            assert time.monotonic() < deadline
            for _ in range(5):
                number += 1
                world.store.create(resources.PODS, {**big, "metadata": {**big["metadata"], "name": f"p{number}"}})
            await asyncio.sleep(0.05)

    running(scenario, plain=True)


def test_a_reader_of_a_long_list_that_stops_is_given_up(monkeypatch):
    monkeypatch.setattr(messages, "SEND_SECONDS", 0.2)

    async def scenario(world: Running):
        for number in range(100):
            body = pod(f"p{number}")
            body["metadata"]["annotations"] = {"x": "y" * 200_000}
            world.store.create(resources.PODS, body)
        client = await world.connect()
        client.writer.write(world.head().replace("\n", "\r\n").encode() + b"\r\n\r\n")
        await client.reader.readuntil(b"\r\n\r\n")
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        deadline = time.monotonic() + 20
        while world.server.connections:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)

    running(scenario, plain=True)


def test_a_port_in_use_is_one_clear_sentence():
    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            server = HttpServer(build()[0], port=port)
            with pytest.raises(CannotListen, match=f"127.0.0.1 port {port}: it is in use; set another --port"):
                await server.start()
            await server.stop()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("host", "options", "message"),
    [
        ("0.0.0.0", {}, "set `public`"),
        ("0.0.0.0", {"public": True}, "needs TLS"),
        ("somewhere", {}, "is not an IP address"),
    ],
)
def test_only_loopback_is_served_unless_asked_for(host: str, options, message: str):
    with pytest.raises(CannotListen, match=message):
        HttpServer(build()[0], host=host, **options)


def test_the_limits_are_what_the_module_says():
    assert connections.ConnectionLimits().keep_alive_seconds > 90  # what Go clients keep idle connections for
