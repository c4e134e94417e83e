"""A client of the endpoints of a running `moorage run` or `moorage up`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moorage import snapshots
from moorage.api import json_text
from moorage.api.errors import MoorageError
from moorage.api.resources import Resource
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration, configure
from moorage.client.aiohttp_transport import AiohttpTransport
from moorage.client.connection import default_user_agent, find
from moorage.client.credentials import Credentials, CredentialsError, Pem
from moorage.client.transport import HttpRequest
from moorage.endpoints.queries import ROOT, SnapshotQuery, write_query
from moorage.snapshots.cluster import ClusterObjects

SECONDS = 30.0
SEND_SECONDS = 90.0
"""Long enough to build plugins and list their kinds."""
ANSWER_LIMIT = 64 * 2**20
SNAPSHOT_SECONDS, SNAPSHOT_LIMIT = 300.0, 2**30
CONFIGZ = "/configz"
EMULATED_VERSION = "emulatedVersion"
"""The key of /configz that says which kube-scheduler the scheduler follows."""
_SOURCE = "--server and --certificate-authority"
A = TypeVar("A")


async def credentials(
    server: str,
    *,
    token_file: str = "",
    kubeconfig: str = "",
    context: str = "",
    authority: str = "",
    verify: bool = True,
) -> Credentials:
    """Return credentials for the endpoints at `server`: the token of a file, or the user of a kubeconfig.

    The certificate authority is `authority`, or else that of the kubeconfig, which need not exist if there is
    a token file.
    """
    if not server.startswith("https://"):
        raise CredentialsError(f"--server {server}: expected https://HOST:PORT; the endpoints use TLS only")
    if token_file and not (kubeconfig or context):
        found = Credentials(server, _SOURCE)
    else:
        found = await find(kubeconfig, context)
    if token_file:
        token = _token(token_file)
        found = replace(found, token=token, token_file="", certificate=None, key=None, expires=None)
    ca = Pem(path=authority) if authority else found.ca
    # The server name, the proxy and the renewal in a kubeconfig belong to the API server.
    found = replace(found, tls_server_name="", proxy="", reload=None)
    return replace(found, server=server, source=_SOURCE, ca=ca, verify=verify)


def _token(file: str) -> str:
    try:
        token = Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(f"--token-file {file}: {error}") from error
    if not token:
        raise CredentialsError(f"--token-file {file} is empty; expected a token")
    return token


async def ask(given: Credentials, path: str, kind: type[A], query: msgspec.Struct | None = None) -> A:
    """Return the answer to a single request."""
    endpoints = EndpointsClient(given)
    try:
        return await endpoints.ask(path, kind, query)
    finally:
        await endpoints.close()


async def configuration(given: Credentials, emulated_version: str = "") -> Configuration:
    """Return the scheduler's configuration; its plugins must be installed here too.

    It is read for the version that the scheduler emulates, unless another is named."""
    shown = await ask(given, CONFIGZ, dict[str, Any])
    version = emulated_version or str(shown.get(EMULATED_VERSION, ""))
    try:
        return configure(
            msgspec.json.encode(shown["componentconfig"]), source=f"{given.server}{CONFIGZ}", emulated_version=version
        )
    except MoorageError as error:
        raise MoorageError(f"{error}; name the configuration with --config, and its plugins") from error


async def cluster(given: Credentials, resources: Iterable[Resource], annotations: bool = False) -> ClusterObjects:
    """Return the objects that the scheduler sees now."""
    endpoints = EndpointsClient(given)
    path, query = f"{ROOT}/snapshot", SnapshotQuery(annotations)
    try:
        data = await endpoints.get(path, query, SNAPSHOT_LIMIT, SNAPSHOT_SECONDS)
    finally:
        await endpoints.close()
    found = await asyncio.to_thread(snapshots.read, data, f"{given.server}{path}", resources)
    return replace(found, namespace=given.namespace or found.namespace)


class EndpointsClient:
    """Keeps connections open, for many requests. A MoorageError says who refused a request, or why there is
    no answer."""

    def __init__(self, given: Credentials) -> None:
        self.server = given.server
        self._transport = AiohttpTransport(given, SystemClock())

    async def ask(self, path: str, kind: type[A], query: msgspec.Struct | None = None) -> A:
        """Return the answer to a GET."""
        return self._decode(path, kind, await self.get(path, query))

    async def send(self, path: str, kind: type[A], text: str, **query: str) -> A:
        """Return the answer to a POST of YAML, also if the scheduler refuses it (422)."""
        headers = {"Content-Type": "application/yaml"}
        request = HttpRequest("POST", path, query, headers, text.encode(), SEND_SECONDS)
        return self._decode(path, kind, await self._exchange(request, ANSWER_LIMIT, also=422))

    async def get(
        self, path: str, query: msgspec.Struct | None = None, limit: int = ANSWER_LIMIT, seconds: float = SECONDS
    ) -> bytes:
        """Return the body of an answer, which may have at most `limit` bytes."""
        parameters: Mapping[str, str] = {} if query is None else write_query(query)
        return await self._exchange(HttpRequest("GET", path, parameters, timeout=seconds), limit)

    async def _exchange(self, request: HttpRequest, limit: int, also: int = 200) -> bytes:
        headers = {"User-Agent": default_user_agent("read-scheduler"), **request.headers}
        path = request.path
        async with self._transport.send(replace(request, headers=headers)) as response:
            status, body = response.status, await response.read(limit)
        if status not in (200, also):
            refusal = _refusal(status, request.method.lower(), path, body)
            raise MoorageError(f"{self.server}{path}: {status} {refusal}")
        return body

    def _decode(self, path: str, kind: type[A], body: bytes) -> A:
        try:
            return json_text.load(body, "the answer", kind, max_bytes=ANSWER_LIMIT)
        except json_text.JsonError as error:
            raise MoorageError(f"The server at {self.server} is not a Moorage scheduler: {path}: {error}") from error

    async def close(self) -> None:
        await self._transport.close()


def _refusal(status: int, verb: str, path: str, body: bytes) -> str:
    text = body.decode(errors="replace").strip()[:1000]
    match status:
        case 401:
            return f"{text}: the cluster does not know this token; name another one with --token-file"
        case 403:
            return f"{text}; a ClusterRole with the nonResourceURL {path} and the verb {verb} allows it"
        case 404 if path.startswith(ROOT):
            return f"{text}. The server is not a Moorage scheduler (no {ROOT}), or one of another version"
        case _:
            return text
