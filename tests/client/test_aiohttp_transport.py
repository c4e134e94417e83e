"""The network transport against a server that misbehaves on purpose, on real sockets."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from moorage.api.errors import NotSent, OutcomeUnknown, TooManyRequests, TransportError
from moorage.api.resources import PODS
from moorage.app.clock import SystemClock
from moorage.client import aiohttp_transport
from moorage.client.aiohttp_transport import AiohttpTransport
from moorage.client.credentials import Credentials, CredentialsError, Pem
from moorage.client.http_client import HttpClient
from moorage.client.pacing import RateLimits
from moorage.client.transport import HttpRequest
from tests.client.certificates import Authority
from tests.client.raw_server import Connection, RawServer, echo, serve, server_context

GET = HttpRequest("GET", "/api/v1/pods", {"limit": "5", "labelSelector": "a in (b,c)"}, timeout=5)
POST = HttpRequest("POST", "/api/v1/bindings", {}, {"Content-Type": "application/json"}, b'{"a":1}', 5)
DELETE = HttpRequest("DELETE", "/api/v1/pods/p", timeout=5)

Act = Callable[[AiohttpTransport, RawServer], Awaitable[Any]]


def against(*scripts, act: Act, tls: ssl.SSLContext | None = None, scheme: str = "http", **options) -> Any:
    """Runs `act` with a transport to a server that follows the scripts."""

    async def main():
        async with serve(*scripts, tls=tls) as server:
            credentials = Credentials(f"{scheme}://127.0.0.1:{server.port}", "the test", **options)
            transport = AiohttpTransport(credentials, SystemClock())
            try:
                return await act(transport, server)
            finally:
                await transport.close()

    return asyncio.run(main())


async def body(transport: AiohttpTransport, request: HttpRequest, limit: int = 10_000) -> tuple[int, bytes]:
    async with transport.send(request) as response:
        return response.status, await response.read(limit)


def test_a_request_arrives_as_it_was_meant():
    async def act(transport, server):
        assert await body(transport, GET) == (200, b"{}")
        assert await body(transport, POST) == (200, b"{}")
        assert server.connections == 1, "the connection is kept"
        return server.received

    get, post = against(echo, act=act, token="secret")
    assert get.line == "GET /api/v1/pods?limit=5&labelSelector=a+in+%28b%2Cc%29 HTTP/1.1"
    assert get.headers["authorization"] == "Bearer secret"
    assert "cookie" not in get.headers
    assert post.body == b'{"a":1}'


def test_a_path_prefix_of_the_server_is_kept():
    async def act(transport, server):
        prefixed = Credentials(f"{server.url}/k8s/clusters/c-1/", "the test")
        other = AiohttpTransport(prefixed, SystemClock())
        await body(other, HttpRequest("GET", "/api/v1/pods/a%3Ab"))
        await other.close()
        return server.received[0].line

    assert against(echo, act=act) == "GET /k8s/clusters/c-1/api/v1/pods/a%3Ab HTTP/1.1"


# Whether the server can have seen a request


async def close_after_request(connection: Connection) -> None:
    await connection.request()


async def reset_after_request(connection: Connection) -> None:
    await connection.request()
    connection.reset()


async def half_an_answer(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")


async def half_a_chunk(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n20\r\nhalf")


async def garbage(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


async def silence(connection: Connection) -> None:
    await connection.request()
    await asyncio.sleep(30)


@pytest.mark.parametrize("request_", [GET, POST, DELETE], ids=["GET", "POST", "DELETE"])
@pytest.mark.parametrize("script", [close_after_request, reset_after_request, half_an_answer, half_a_chunk, garbage])
def test_b8_what_is_lost_after_sending_has_an_unknown_outcome_and_is_sent_once(script, request_):
    """aiohttp itself would send a GET or DELETE again on another connection."""

    async def act(transport, server):
        with pytest.raises(OutcomeUnknown):
            await body(transport, request_)
        return len(server.received)

    assert against(script, echo, act=act) == 1


@pytest.mark.parametrize("request_", [GET, POST, DELETE], ids=["GET", "POST", "DELETE"])
def test_b6_a_timeout_after_sending_has_an_unknown_outcome(request_):
    async def act(transport, server):
        with pytest.raises(OutcomeUnknown, match="timed out"):
            await body(transport, replace(request_, timeout=0.2))
        return len(server.received)

    assert against(silence, echo, act=act) == 1


def closed_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@pytest.mark.parametrize(
    "server", [f"http://127.0.0.1:{closed_port()}", "http://no-such-host.invalid:80"], ids=["refused", "no name"]
)
def test_a1_no_connection_means_not_sent(server):
    async def main():
        transport = AiohttpTransport(Credentials(server, "kubeconfig x, context y"), SystemClock())
        try:
            with pytest.raises(NotSent) as error:
                await body(transport, POST)
        finally:
            await transport.close()
        return str(error.value)

    message = asyncio.run(main())
    assert server in message
    assert "see kubeconfig x, context y" in message


def test_a_handshake_that_never_comes_means_not_sent():
    async def act(transport, server):
        with pytest.raises(NotSent, match="timed out"):
            await body(transport, replace(POST, timeout=0.3))

    async def deaf(connection):
        await asyncio.sleep(30)

    against(deaf, act=act, scheme="https", ca=Pem(data=Authority().pem))


async def close_when_idle(connection: Connection) -> None:
    await connection.request()
    await connection.answer()
    # The client keeps the connection; its next request meets a closed one.


@pytest.mark.parametrize("request_", [GET, POST, DELETE], ids=["GET", "POST", "DELETE"])
def test_a_kept_connection_that_was_closed_is_not_used_again(request_):
    """A close that has been noticed costs nothing: the next request takes a new connection."""

    async def act(transport, server):
        assert (await body(transport, request_))[0] == 200
        await asyncio.sleep(0.05)
        assert (await body(transport, request_))[0] == 200
        return server.connections, len(server.received)

    assert against(close_when_idle, echo, act=act) == (2, 2)


@pytest.mark.parametrize("request_", [POST, DELETE], ids=["POST", "DELETE"])
def test_a_kept_connection_that_dies_under_a_write_is_not_replaced_in_silence(request_):
    """The server reads a second request and closes without a word: it may have acted on it."""

    async def once_then_mute(connection):
        await connection.request()
        await connection.answer()
        await connection.request()

    async def act(transport, server):
        assert (await body(transport, GET))[0] == 200
        with pytest.raises(OutcomeUnknown):
            await body(transport, request_)
        return server.connections, len(server.received)

    assert against(once_then_mute, echo, act=act) == (1, 2)


# Answers that must not be taken as they come


def test_a31_redirects_are_answers_and_are_not_followed():
    async def redirect(connection):
        await connection.request()
        await connection.answer(302, b"", location="http://127.0.0.1:1/elsewhere")

    async def act(transport, server):
        return await body(transport, GET)

    assert against(redirect, act=act, token="secret") == (302, b"")


def test_cookies_are_not_kept():
    async def with_cookie(connection):
        for _ in range(2):
            await connection.request()
            await connection.answer(set_cookie="session=1")

    async def act(transport, server):
        for _ in range(2):
            await body(transport, GET)
        return [received.headers.get("cookie") for received in server.received]

    assert against(with_cookie, act=act) == [None, None]


def test_proxies_of_the_environment_are_ignored(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def act(transport, server):
        return await body(transport, GET)

    assert against(echo, act=act) == (200, b"{}")


def test_the_proxy_of_the_kubeconfig_is_used():
    async def act(transport, server):
        far = Credentials("http://api.example.invalid:6443", "the test", proxy=server.url)
        other = AiohttpTransport(far, SystemClock())
        assert await body(other, GET) == (200, b"{}")
        await other.close()
        return server.received[0].line

    assert against(echo, act=act).startswith("GET http://api.example.invalid:6443/api/v1/pods")


async def long_body(connection: Connection) -> None:
    await connection.request()
    await connection.answer(body=b"x" * 5000)


async def endless_body(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await connection.send(b"1000\r\n" + b"x" * 4096 + b"\r\n")


@pytest.mark.parametrize("script", [long_body, endless_body])
def test_a28_longer_answers_than_allowed_are_refused(script):
    async def act(transport, server):
        with pytest.raises(TransportError, match="longer than the 4000 bytes"):
            await body(transport, GET, limit=4000)

    against(script, act=act)


def test_a28_compressed_answers_are_not_inflated():
    async def bomb(connection):
        await connection.request()
        await connection.answer(body=b"\x1f\x8b not inflated", content_encoding="gzip")

    async def act(transport, server):
        return await body(transport, GET)

    assert against(bomb, act=act) == (200, b"\x1f\x8b not inflated")


@pytest.mark.parametrize("size", [20_000, 1_000_000])
def test_headers_without_end_are_refused(size):
    async def huge(connection):
        await connection.request()
        await connection.answer(x_huge="y" * size)

    async def act(transport, server):
        with pytest.raises(OutcomeUnknown):
            await body(transport, GET)

    against(huge, act=act)


def test_a29_the_timeout_counts_for_the_whole_exchange():
    async def trickle(connection):
        await connection.request()
        await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        while True:
            await connection.send(b"x")
            await asyncio.sleep(0.02)

    async def act(transport, server):
        with pytest.raises(OutcomeUnknown, match="timed out"):
            await body(transport, replace(GET, timeout=0.3))

    against(trickle, act=act)


def test_leaving_early_gives_the_connection_up():
    async def endless(connection):
        await connection.request()
        await connection.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
        await connection.reader.read()
        raise ConnectionError

    async def act(transport, server):
        async with transport.send(GET) as response:
            async for chunk in response.chunks():
                assert chunk == b"x"
                break
        assert await body(transport, GET) == (200, b"{}")
        return server.connections

    assert against(endless, echo, act=act) == 2


def test_a15_sockets_are_kept_alive_and_give_up_on_a_peer_that_vanished():
    found = {}

    async def act(transport, server):
        made = aiohttp_transport._make_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0)))
        with made:
            found["alive"] = made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            idle, every, count = (
                made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
                for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
            )
            found["seconds"] = idle + every * count

    against(echo, act=act)
    assert found["alive"]
    assert 30 <= found["seconds"] <= 60


# TLS


def tls_server(authority: Authority, *names: str, **options) -> ssl.SSLContext:
    return server_context(authority.server(*names), **options)


async def fetch(transport, server):
    return await body(transport, GET)


def test_messages_about_connections_have_no_addresses_of_objects():
    secured = Credentials(f"https://127.0.0.1:{closed_port()}", "kubeconfig x, context y")

    async def main() -> str:
        transport = AiohttpTransport(secured, SystemClock())
        try:
            with pytest.raises(NotSent) as error:
                await body(transport, GET)
        finally:
            await transport.close()
        return str(error.value)

    message = asyncio.run(main())
    assert message.endswith(f"cannot connect to {secured.server}: Connection refused; see kubeconfig x, context y")
    ca = Authority()
    with pytest.raises(NotSent, match="not trusted") as refused:
        against(echo, act=fetch, tls=tls_server(ca), scheme="https", ca=Pem(data=Authority().pem))
    assert " at 0x" not in str(refused.value)


def test_the_servers_certificate_is_verified_against_the_given_authority():
    ca = Authority()
    options: dict[str, Any] = {"tls": tls_server(ca), "scheme": "https"}
    assert against(echo, act=fetch, ca=Pem(data=ca.pem), **options) == (200, b"{}")
    with pytest.raises(NotSent, match="not trusted"):
        against(echo, act=fetch, ca=Pem(data=Authority().pem), **options)
    with pytest.raises(NotSent, match="not trusted"):
        against(echo, act=fetch, **options)
    assert against(echo, act=fetch, verify=False, **options) == (200, b"{}")


def test_the_name_in_the_certificate_may_be_given():
    ca = Authority()
    options: dict[str, Any] = {"tls": tls_server(ca, "kubernetes.default"), "scheme": "https", "ca": Pem(data=ca.pem)}
    with pytest.raises(NotSent, match="not trusted"):
        against(echo, act=fetch, **options)
    assert against(echo, act=fetch, tls_server_name="kubernetes.default", **options) == (200, b"{}")


def test_client_certificates_are_presented():
    ca = Authority()
    pair = ca.client("system:kube-scheduler")
    options: dict[str, Any] = {
        "tls": tls_server(ca, client_ca=ca.pem),
        "scheme": "https",
        "ca": Pem(data=ca.pem),
        "certificate": Pem(data=pair.certificate),
    }
    assert against(echo, act=fetch, key=Pem(data=pair.key), **options) == (200, b"{}")
    with pytest.raises(CredentialsError, match="without its key"):
        against(echo, act=fetch, **options)
    with pytest.raises(CredentialsError, match="not usable PEM"):
        against(echo, act=fetch, key=Pem(data=ca.client("other").key), **options)


def test_tls_before_1_2_is_refused():
    ca = Authority()
    old = tls_server(ca)
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(NotSent):
        against(echo, act=fetch, tls=old, scheme="https", ca=Pem(data=ca.pem))


# Tokens


async def demanding(connection: Connection, wanted: str) -> None:
    while True:
        received = await connection.request()
        good = received.headers.get("authorization") == f"Bearer {wanted}"
        await connection.answer(200 if good else 401)


def test_a14_a_token_that_was_rotated_is_read_again_after_a_401(tmp_path):
    file = tmp_path / "token"
    file.write_text("old\n")

    async def act(transport, server):
        first = await body(transport, POST)
        file.write_text("new\n")
        return first, await body(transport, POST), await body(transport, POST), len(server.received)

    async def wants_new(connection):
        await demanding(connection, "new")

    first, second, third, requests = against(wants_new, act=act, token_file=str(file))
    assert (first[0], second[0], third[0]) == (401, 200, 200)
    assert requests == 4, "one refused, one refused and repeated, one good"


@pytest.mark.parametrize("chunked", [False, True])
def test_a11_a_refused_watch_gives_its_connection_back(chunked):
    """More watches than the pool has connections, one after the other."""
    busy = b'{"kind":"Status","code":429,"reason":"TooManyRequests"}'

    async def refuse(connection: Connection) -> None:
        while True:
            await connection.request()
            if chunked:
                head = b"HTTP/1.1 429 X\r\nretry-after: 7\r\ntransfer-encoding: chunked\r\n\r\n"
                await connection.send(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(busy), busy))
            else:
                await connection.answer(429, busy, retry_after="7")

    async def act(transport, server):
        clock = SystemClock()
        client = HttpClient(transport, clock, Random(1), limits=RateLimits(clock, 0, 1), user_agent="test")
        for _ in range(aiohttp_transport.CONNECTIONS + 5):
            with pytest.raises(TooManyRequests) as caught:
                async for _ in client.watch(PODS, resource_version="5", timeout=300.0):
                    pass
            assert caught.value.retry_after == 7.0
        return server.connections

    assert against(refuse, act=act) == 1
