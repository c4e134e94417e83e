"""GET requests to Prometheus and load-watchers."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from moorage.contrib.metrics.provider import MetricProvider

MAX_BYTES = 64 * 1024 * 1024
"""Of an answer; 5,000 nodes make about two megabytes."""


async def get_json(provider: MetricProvider, path: str, query: Mapping[str, str] | None = None) -> Any:
    """The answer below the provider's address. Redirects are not followed: they would carry the token
    along."""
    timeout = aiohttp.ClientTimeout(total=provider.timeout_seconds)
    connector = aiohttp.TCPConnector(ssl=_trust(provider))
    async with (
        aiohttp.ClientSession(timeout=timeout, connector=connector, headers=_headers(provider)) as session,
        session.get(provider.address.rstrip("/") + path, params=query, allow_redirects=False) as answer,
    ):
        body = await _read(answer, path)
        if answer.status != 200:
            raise ValueError(f"GET {path} answered {answer.status}: {body[:200].decode(errors='replace')}")
        return json.loads(body)


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
