"""TLS towards extenders: verified unless the configuration says otherwise; certificates as files and data."""

from __future__ import annotations

import ssl

import pytest

from moorage.app.clock import SystemClock
from moorage.client.credentials import CredentialsError
from moorage.config import Extender, ExtenderTLSConfig
from moorage.extender.connecting import make_extenders
from moorage.framework.ports import ExtenderError
from tests.client.certificates import Authority
from tests.client.raw_server import server_context
from tests.extender.kit import filtered, saying

AUTHORITY = Authority()
OURS = AUTHORITY.client("moorage")
HTTPS = "https://127.0.0.1:{port}"
GOOD = saying({"NodeNames": ["a"]})


def ask(tls: ssl.SSLContext, **tls_config):
    found = filtered(
        GOOD,
        tls=tls,
        url=HTTPS,
        enable_https=True,
        node_cache_capable=True,
        tls_config=ExtenderTLSConfig(**tls_config) if tls_config else None,
    )
    return found.names


def as_files(folder, **pems: bytes) -> dict[str, str]:
    for name, pem in pems.items():
        (folder / name).write_bytes(pem)
    return {name: str(folder / name) for name in pems}


def test_a_ca_and_a_client_certificate_from_files(tmp_path):
    tls = server_context(AUTHORITY.server(), client_ca=AUTHORITY.pem)
    files = as_files(tmp_path, ca_file=AUTHORITY.pem, cert_file=OURS.certificate, key_file=OURS.key)
    assert ask(tls, **files) == {"a"}


def test_inline_data_wins_over_files(tmp_path):
    tls = server_context(AUTHORITY.server(), client_ca=AUTHORITY.pem)
    other = Authority("other")
    files = as_files(tmp_path, ca_file=other.pem)
    data = {"ca_data": AUTHORITY.pem, "cert_data": OURS.certificate, "key_data": OURS.key}
    assert ask(tls, **files, **data) == {"a"}


def test_a_server_name_stands_for_the_host():
    tls = server_context(AUTHORITY.server("extender.example"))
    assert ask(tls, ca_data=AUTHORITY.pem, server_name="extender.example") == {"a"}


def test_only_insecure_turns_verification_off(caplog):
    tls = server_context(AUTHORITY.server("elsewhere.example"))
    assert ask(tls, insecure=True) == {"a"}
    assert "The certificate of an extender is not verified" in caplog.text


@pytest.mark.parametrize(
    "tls_config",
    [
        pytest.param({}, id="no CA: the roots of the system"),
        pytest.param({"ca_data": Authority("other").pem}, id="another CA"),
        pytest.param({"ca_data": AUTHORITY.pem, "server_name": "other.example"}, id="another name"),
    ],
)
def test_f9_a_server_that_is_not_trusted_is_not_asked(tls_config):
    with pytest.raises(ExtenderError, match="certificate is not trusted"):
        ask(server_context(AUTHORITY.server()), **tls_config)


REFUSED = [
    pytest.param({"url_prefix": "http://x", "enable_https": True}, "enableHTTPS: urlPrefix", id="plain http"),
    pytest.param({"http_timeout": -1.0}, "httpTimeout: it has to be longer", id="no time"),
    pytest.param({"url_prefix": "/prefix"}, "not the address of a server", id="no address"),
    pytest.param({"tls_config": ExtenderTLSConfig(insecure=True, ca_data=AUTHORITY.pem)},
                 "insecure: remove it", id="insecure with a CA"),
    pytest.param({"tls_config": ExtenderTLSConfig(cert_data=OURS.certificate)}, "needs cert and key",
                 id="no key"),
    pytest.param({"tls_config": ExtenderTLSConfig(ca_file="/none/ca.pem")}, "/none/ca.pem: No such file",
                 id="no such file"),
    pytest.param({"tls_config": ExtenderTLSConfig(ca_data=b"x")}, "is not usable PEM", id="no PEM"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_what_cannot_be_connected_is_refused_at_the_start(fields, message):
    with pytest.raises(CredentialsError, match=rf"^(extenders\[1\]|/none).*{message}|{message}"):
        make_extenders(
            [Extender(url_prefix="http://x"), Extender(**{"url_prefix": "https://x", **fields})], SystemClock()
        )
