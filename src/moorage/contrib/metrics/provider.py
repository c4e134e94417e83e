"""The arguments that name the source of measured values, shared by all plugins that use them, and GET requests to these
sources."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from moorage.api import json_text
from moorage.api.meta import Record
from moorage.api.problems import Problem, child, forbidden, invalid, required, unsupported

METRICS_SERVER, PROMETHEUS, LOAD_WATCHER = "KubernetesMetricsServer", "Prometheus", "LoadWatcher"
TYPES = (METRICS_SERVER, PROMETHEUS, LOAD_WATCHER)


class MetricProvider(Record):
    """The source of measured values. Plugins with equal providers share the fetched samples."""

    type: str = METRICS_SERVER
    address: str = ""
    """URL of Prometheus or the load-watcher; the metrics server is reached through the API server."""
    token: str = ""
    token_file: str = ""
    """Read before every request, so that a token may be renewed."""
    ca_file: str = ""
    """PEM file with the authorities of the server's certificate, in place of the system's."""
    insecure_skip_verify: bool = False
    queries: dict[str, str] = {}
    """Measure (`cpu`, `memory`, or one that a plugin names) → PromQL that gives a percentage per node."""
    node_label: str = "instance"
    """The label of the results that names the node, by name or by address, with or without a port."""
    interval_seconds: float = 15.0
    timeout_seconds: float = 10.0

    def validate(self, path: str) -> Iterator[Problem]:
        if self.type == "SignalFx":
            detail = "SignalFx is not supported: let a load-watcher read it, and name that in watcherAddress"
            yield invalid(child(path, "type"), self.type, detail)
        elif self.type not in TYPES:
            yield unsupported(child(path, "type"), self.type, TYPES)
        elif self.type != METRICS_SERVER:
            yield from self.validate_address(child(path, "address"))
        elif self.address:
            yield forbidden(child(path, "address"), "the metrics server is reached through the API server")
        if self.token and self.token_file:
            yield forbidden(child(path, "token"), "may not be set together with tokenFile")
        if self.ca_file and self.insecure_skip_verify:
            yield forbidden(child(path, "caFile"), "has no effect with insecureSkipVerify: remove one of them")
        for name, seconds in (("interval", self.interval_seconds), ("timeout", self.timeout_seconds)):
            if not 1 <= seconds <= 3600:
                yield invalid(child(path, f"{name}Seconds"), seconds, "must be from 1 to 3600")

    def validate_address(self, path: str) -> Iterator[Problem]:
        """Return what is wrong with the URL."""
        if not self.address:
            yield required(path, f"the URL of {self.type}")
        elif urlsplit(self.address).scheme not in ("http", "https") or not urlsplit(self.address).hostname:
            yield invalid(path, self.address, "must be a URL that begins with http:// or https://")

    @property
    def label(self) -> str:
        """Return a name for logs and metrics, without secrets."""
        return f"{self.type} {self.address}".strip()


MAX_BYTES = 64 * 1024 * 1024
"""Of an answer; 5,000 nodes make about two megabytes."""


async def get_json(provider: MetricProvider, path: str, query: Mapping[str, str] | None = None) -> Any:
    """Return the JSON at a path below the provider's address. Redirects are not followed, because they would forward
    the token."""
    timeout = aiohttp.ClientTimeout(total=provider.timeout_seconds)
    connector = aiohttp.TCPConnector(ssl=_trust(provider))
    async with (
        aiohttp.ClientSession(timeout=timeout, connector=connector, headers=_headers(provider)) as session,
        session.get(provider.address.rstrip("/") + path, params=query, allow_redirects=False) as answer,
    ):
        body = await _read(answer, path)
        if answer.status != 200:
            raise ValueError(f"GET {path} answered {answer.status}: {body[:200].decode(errors='replace')}")
        return json_text.load(body, f"the answer to GET {path}", max_bytes=MAX_BYTES)


async def _read(answer: aiohttp.ClientResponse, path: str) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            raise ValueError(f"GET {path} answered more than {MAX_BYTES} bytes")
    return bytes(body)


def _headers(provider: MetricProvider) -> dict[str, str]:
    token = provider.token
    if provider.token_file:
        token = Path(provider.token_file).read_text(encoding="utf-8").strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _trust(provider: MetricProvider) -> ssl.SSLContext | bool:
    if provider.ca_file:
        # Read here: an error of OpenSSL does not name the file.
        return ssl.create_default_context(cadata=Path(provider.ca_file).read_text(encoding="ascii"))
    return not provider.insecure_skip_verify
