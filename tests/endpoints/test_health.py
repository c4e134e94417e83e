"""The endpoints over TLS: health is open; for everything else the API server is asked who may see it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.endpoints.answers import PLACES
from moorage.endpoints.loop_bridge import LoopBridge, NotNow
from moorage.serving.certificates import Authority, ServingCertificate, User, load, openssl_name
from moorage.serving.server import PER_PEER
from tests.endpoints.served import SECRET, Served


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.thread.stop()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_needs_no_credentials(served, path):
    assert served.ask(path) == (200, "ok")
    assert served.reviews.asked == []


@pytest.mark.parametrize("path", [*SECRET, "/moorage/v1/records?pod=a/b", "/healthz/ping", "/", "/nowhere"])
def test_everything_else_needs_a_token(served, path):
    assert served.ask(path)[0] == 401
    assert served.ask(path, "wrong")[0] == 401
    assert served.ask(path, "stranger-token")[0] == 403
    expected = 404 if path == "/nowhere" else 200
    assert served.ask(path, "admin-token")[0] == expected


@pytest.mark.parametrize("path", SECRET)
def test_who_is_allowed_gets_it(served, path):
    assert served.ask(path, "scraper-token")[0] == 200


def test_answers_of_the_api_server_are_kept_for_a_while(served):
    for _ in range(5):
        assert served.ask("/metrics", "scraper-token")[0] == 200
    assert served.reviews.asked == ["TokenReview", "SubjectAccessReview"]


def test_no_caller_gets_in_while_the_api_server_cannot_be_asked(served):
    served.reviews.away = True
    assert served.ask("/metrics", "scraper-token")[0] == 503
    assert served.ask("/healthz") == (200, "ok")
    served.reviews.away = False
    assert served.ask("/metrics", "scraper-token")[0] == 200, "a failure is not kept"


def test_a_failing_check_is_named_and_its_reason_withheld(served):
    served.sick = "a secret reason"
    status, text = served.ask("/healthz")
    assert status == 500
    assert text == "[+]ping ok\n[-]sick failed: reason withheld\nhealthz check failed\n"
    assert served.ask("/livez") == (200, "ok")
    assert served.ask("/healthz?exclude=sick") == (200, "ok")
    assert served.ask("/healthz/sick", "admin-token")[0] == 500
    assert served.ask("/healthz?verbose&exclude=nope&exclude=sick")[1] == (
        "[+]ping ok\n[+]sick excluded: ok\n"
        'warn: some health checks cannot be excluded: no matches for "nope"\nhealthz check passed\n'
    )


@pytest.mark.parametrize(
    ("method", "body", "status"), [("POST", None, 405), ("PUT", b"3", 405), ("DELETE", None, 405), ("GET", b"x", 413)]
)
def test_only_plain_reading_is_served(served, method, body, status):
    assert served.ask("/healthz", method=method, body=body)[0] == status


def test_a_blocked_scheduler_is_reported_as_such(served):
    served.blocked = True
    assert served.ask("/moorage/v1/records?pod=a/b", "admin-token")[0] == 503
    assert served.ask("/moorage/v1/records", "admin-token")[0] == 400


def test_records_are_json(served):
    status, text = served.ask("/moorage/v1/records?pod=a/b", "admin-token")
    assert (status, json.loads(text)) == (200, {"pod": "a/b", "limit": 10, "before": 2**63 - 1, "nodes": 100})
    status, text = served.ask("/moorage/v1/records?pod=a/b&limit=2&before=7&nodes=0", "admin-token")
    assert (status, json.loads(text)) == (200, {"pod": "a/b", "limit": 2, "before": 7, "nodes": 0})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=1000000", "limit=1000000: expected a number from 1 to 100"),
        ("limit=0", "limit=0: expected a number from 1 to 100"),
        ("nodes=5001", "nodes=5001: expected a number from 0 to 5000"),
        ("before=x", f"before=x: expected a number from 1 to {2**63 - 1}"),
        ("before=" + "9" * 5000, f"before={'9' * 20}: expected a number from 1 to {2**63 - 1}"),
        ("limt=5", "unknown parameter limt; this path takes pod, limit, before, nodes"),
        ("pod=a", "pod=a: expected NAMESPACE/NAME"),
    ],
)
def test_an_answer_about_records_is_bounded(served, query, expected):
    assert served.ask(f"/moorage/v1/records?pod=a/b&{query}", "admin-token") == (400, f"{expected}\n")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("records", (400, "pod is missing: expected NAMESPACE/NAME\n")),
        ("queue?place=bed", (400, f"place=bed: expected {', '.join(PLACES)}\n")),
        ("queue?limit=501", (400, "limit=501: expected a number from 1 to 500\n")),
        ("queue?search=" + "x" * 1001, (400, f"search={'x' * 20}: expected at most 1000 characters\n")),
        ("attempts?result=lost", (400, "result=lost: expected scheduled, unschedulable, error\n")),
        ("attempts/x", (404, "Not Found")),
        ("nodes/gone", (404, "there is no node 'gone'\n")),
        ("summary?all", (400, "unknown parameter all; this path takes no parameters\n")),
        ("queue?place=&limit=500", (200, None)),
        ("attempts?result=error&before=3", (200, None)),
        ("attempts/7?plugin=NodeResourcesFit&after=node-3", (200, None)),
        ("nodes?search=zone", (200, None)),
        ("nodes/node-1", (200, None)),
        ("summary", (200, None)),
    ],
)
def test_each_path_reads_its_own_query_and_names_what_is_wrong_with_it(served, path, expected):
    status, text = served.ask(f"/moorage/v1/{path}", "admin-token")
    assert (status, text if expected[1] is not None else None) == expected


def test_nothing_is_cached_by_others_and_types_are_not_guessed(served):
    connection = http.client.HTTPSConnection("127.0.0.1", served.thread.port, context=ssl._create_unverified_context())
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        response.read()
        assert response.headers["cache-control"] == "no-cache, private"
        assert response.headers["x-content-type-options"] == "nosniff"


def test_tls_below_1_2_and_plain_http_are_refused(served):
    context = ssl._create_unverified_context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        served.ask("/healthz", client=context)
    with socket.create_connection(("127.0.0.1", served.thread.port), timeout=10) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert b"200" not in plain.recv(1000)


def test_a_head_that_is_too_large_is_refused(served):
    context = ssl._create_unverified_context()
    raw = socket.create_connection(("127.0.0.1", served.thread.port), timeout=10)
    with raw, context.wrap_socket(raw) as secure:
        secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n")
        assert secure.recv(100).startswith(b"HTTP/1.1 431")


def test_one_peer_cannot_take_all_connections(served):
    opened = []
    try:
        for _ in range(PER_PEER + 10):
            opened.append(socket.create_connection(("127.0.0.1", served.thread.port), timeout=10))
            with contextlib.suppress(OSError):
                opened[-1] = ssl._create_unverified_context().wrap_socket(opened[-1])
        assert len(opened) > PER_PEER
        closed = 0
        for connection in opened:
            connection.settimeout(0.02)
            try:
                closed += connection.recv(1) == b""
            except TimeoutError:
                pass
            except OSError:
                closed += 1
        assert closed >= 10
    finally:
        for connection in opened:
            connection.close()


class TestCertificates:
    def test_a_client_certificate_of_the_cluster_is_an_identity(self, tmp_path: Path):
        authority, other = Authority.new(time.time()), Authority.new(time.time())
        ca = tmp_path / "ca.crt"
        ca.write_bytes(authority.pem.certificate)
        served = Served(ServingCertificate(client_ca_file=str(ca)))
        try:
            admin = ssl._create_unverified_context()
            load(admin, authority.client(User("root", ("system:masters",))))
            assert served.ask("/metrics", client=admin)[0] == 200
            stranger = ssl._create_unverified_context()
            load(stranger, authority.client(User("stranger", ())))
            assert served.ask("/metrics", client=stranger)[0] == 403
            forged = ssl._create_unverified_context()
            load(forged, other.client(User("root", ("system:masters",))))
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                served.ask("/metrics", client=forged)
            assert served.reviews.asked.count("TokenReview") == 0
        finally:
            served.thread.stop()

    def test_files_are_read_again_when_they_change(self, tmp_path: Path):
        authority = Authority.new(time.time())
        cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"

        def write(name: str) -> None:
            pair = authority.server([name, "127.0.0.1"])
            cert.write_bytes(pair.certificate)
            key.write_bytes(pair.key)

        write("one.example")
        certificate = ServingCertificate(cert_file=str(cert), key_file=str(key))
        served = Served(certificate)
        try:
            assert names(served, authority) == {"one.example", "127.0.0.1"}
            assert not certificate.refresh()
            key.write_text("half a change")
            assert not certificate.refresh(), "a pair that does not fit leaves the old one"
            assert names(served, authority) == {"one.example", "127.0.0.1"}
            write("two.example")
            assert certificate.refresh()
            assert names(served, authority) == {"two.example", "127.0.0.1"}
        finally:
            served.thread.stop()

    def test_a_pair_is_made_in_the_folder_and_kept(self, tmp_path: Path):
        folder = tmp_path / "certs"
        ServingCertificate(cert_dir=str(folder))
        first = (folder / "kube-scheduler.crt").read_bytes()
        assert (folder / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600
        ServingCertificate(cert_dir=str(folder))
        assert (folder / "kube-scheduler.crt").read_bytes() == first

    @pytest.mark.parametrize(
        ("go", "openssl"),
        [
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
            ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ],
    )
    def test_go_names_of_ciphers_are_understood(self, go: str, openssl: str):
        assert openssl_name(go) == openssl
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(f"{openssl}:@SECLEVEL=0")


def names(served: Served, authority: Authority) -> set[str]:
    context = ssl.create_default_context(cadata=authority.pem.certificate.decode())
    raw = socket.create_connection(("127.0.0.1", served.thread.port), timeout=10)
    with raw, context.wrap_socket(raw, server_hostname="127.0.0.1") as secure:
        peer: Any = secure.getpeercert()
        return {value for _, value in peer["subjectAltName"]}


def test_a_loop_that_is_blocked_does_not_block_the_endpoints():
    async def main() -> None:
        bridge = LoopBridge(asyncio.get_running_loop(), seconds=0.2)
        result: list[BaseException | int] = []

        def ask() -> None:
            try:
                result.append(asyncio.run(bridge.call(lambda: 7)))
            except NotNow as error:
                result.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.5)  # the loop is blocked
        thread.join()
        assert isinstance(result[0], NotNow)
        thread = threading.Thread(target=ask)
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.01)
        assert result[1] == 7

    asyncio.run(main())


CONFIGURATION = "/moorage/v1/configuration"
YAML = "application/yaml"


@pytest.fixture
def writable() -> Iterator[Served]:
    made = Served(always_allow=("/moorage/*",), writable=(("POST", CONFIGURATION),))
    yield made
    made.thread.stop()


def test_a_configuration_is_taken_only_where_that_is_allowed(served):
    asked = served.ask(CONFIGURATION, "admin-token", method="POST", body=b"good", content_type=YAML)
    assert asked == (405, "only GET is served here\n")
    assert served.ask(CONFIGURATION, "admin-token") == (200, '{"generation":1}')


@pytest.mark.parametrize(("token", "status"), [("", 401), ("scraper-token", 403), ("admin-token", 200)])
def test_who_changes_the_configuration_needs_the_verb_post_also_on_paths_that_are_open(writable, token, status):
    assert writable.ask(CONFIGURATION)[0] == 200, "open to read"
    asked = writable.ask(CONFIGURATION, token, method="POST", body=b"good", content_type=YAML)
    assert asked[0] == status


@pytest.mark.parametrize(
    ("path", "body", "content_type", "expected"),
    [
        (CONFIGURATION, b"good", YAML, (200, '"generation":2')),
        (CONFIGURATION, b"bad", YAML, (422, '"error":"bad"')),
        (f"{CONFIGURATION}?dryRun=All", b"good", YAML, (200, '"problems":["checked"]')),
        (f"{CONFIGURATION}?dryRun=All", b"bad", "application/json", (422, '"problems":["checked"]')),
        (f"{CONFIGURATION}?dryRun=all", b"good", YAML, (400, "dryRun=All")),
        (CONFIGURATION, b"\xff", YAML, (400, "not UTF-8")),
        (CONFIGURATION, b"good", "text/plain", (415, "application/yaml")),
        (CONFIGURATION, b"good" * 100_000, YAML, (413, "at most 262144")),
        (f"{CONFIGURATION}/1", b"good", YAML, (405, "only GET")),
        ("/configz", b"good", YAML, (405, "only GET")),
    ],
    ids=["applied", "refused", "checked", "checked and refused", "query", "UTF-8", "type", "size", "one", "other"],
)
def test_a_configuration_that_is_sent_is_answered_with_what_became_of_it(writable, path, body, content_type, expected):
    status, text = writable.ask(path, "admin-token", method="POST", body=body, content_type=content_type)
    assert status == expected[0]
    assert expected[1] in text


def test_one_of_the_history_is_asked_by_its_number(served):
    assert served.ask(f"{CONFIGURATION}/1", "admin-token") == (200, '{"number":1}')
    assert served.ask(f"{CONFIGURATION}/2", "admin-token")[0] == 404
