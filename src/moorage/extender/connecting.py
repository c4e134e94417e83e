"""Build extenders from the `extenders` of a configuration: addresses, certificates, connections.

Stricter than kube-scheduler: HTTPS without a CA is verified against the system's roots, and only `insecure: true` turns
that off."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.client.aiohttp_transport import AiohttpTransport
from moorage.client.credentials import Credentials, CredentialsError, Pem
from moorage.config import Extender, ExtenderTLSConfig
from moorage.extender.client import HttpExtender
from moorage.framework.ports import Clock
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

MAX_BLOCK = (32 << 20) - (64 << 10)
"""Bytes; glibc does not learn from larger ones."""


def make_extenders(
    configured: Iterable[Extender], clock: Clock, metrics: SchedulerMetrics | None = None
) -> list[HttpExtender]:
    """Build the extenders without connecting. Raises CredentialsError for an invalid address or certificate."""
    made = []
    for index, extender in enumerate(configured):
        credentials = credentials_of(extender, f"extenders[{index}]")
        if not credentials.verify:
            _log.warning("The certificate of an extender is not verified", extender=extender.url_prefix)
        made.append(HttpExtender(extender, AiohttpTransport(credentials, clock), clock, metrics))
        if not extender.node_cache_capable:
            _keep_freed_memory()
    return made


def _keep_freed_memory() -> None:
    """Make glibc keep freed memory. The nodes of one request take megabytes. glibc returns memory to the system if more
    is free than twice the largest block that was ever freed, and getting it back page by page takes as long as the rest
    of a request. So a large block that is never written to is allocated and freed."""
    bytearray(MAX_BLOCK)


def credentials_of(extender: Extender, path: str) -> Credentials:
    """Return the address and the certificates, which are not read yet; `path` is its place in the configuration."""
    tls = extender.tls_config or ExtenderTLSConfig()
    if extender.enable_https and not extender.url_prefix.lower().startswith("https://"):
        raise CredentialsError(f"{path}.enableHTTPS: urlPrefix has to begin with https:// then")
    if extender.http_timeout <= 0:
        raise CredentialsError(f"{path}.httpTimeout: it has to be longer than 0s")
    ca, certificate, key = (
        _pem(tls.ca_file, tls.ca_data), _pem(tls.cert_file, tls.cert_data), _pem(tls.key_file, tls.key_data),
    )  # fmt: skip
    if tls.insecure and ca is not None:
        raise CredentialsError(f"{path}.tlsConfig.insecure: remove it, or caFile and caData")
    if (certificate is None) != (key is None):
        raise CredentialsError(f"{path}.tlsConfig: a client certificate needs cert and key, as file or data")
    return Credentials(
        extender.url_prefix,
        path,
        ca=ca,
        certificate=certificate,
        key=key,
        verify=not tls.insecure,
        tls_server_name=tls.server_name,
    )


def _pem(path: str, data: bytes) -> Pem | None:
    """Return the certificate; inline data takes precedence over a file."""
    if data:
        return Pem(data=data)
    return Pem(path) if path else None
