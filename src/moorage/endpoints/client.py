"""A running scheduler as a source: asks /moorage/v1 of a `moorage run` or `moorage up`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from moorage import snapshots
from moorage.api.errors import MoorageError
from moorage.api.resources import Resource
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration, configure
from moorage.client.aiohttp_transport import AiohttpTransport
from moorage.client.connection import default_user_agent, find
from moorage.client.credentials import Credentials, CredentialsError, Pem
from moorage.client.transport import Request
from moorage.endpoints.v1.routes import ROOT
from moorage.snapshots.cluster import ClusterObjects

SECONDS = 30.0
SEND_SECONDS = 90.0
"""Plugins are built and kinds listed meanwhile."""
ANSWER_LIMIT = 64 * 2**20
SNAPSHOT_SECONDS, SNAPSHOT_LIMIT = 300.0, 2**30
CONFIGZ = "/configz"
_SOURCE = "--server and --certificate-authority"


async def credentials(
    server: str,
    *,
    token_file: str = "",
    kubeconfig: str = "",
    context: str = "",
    authority: str = "",
    verify: bool = True,
) -> Credentials:
    """For the endpoints at `server`: by the token of a file, else as the user of a kubeconfig. Who signed the
    server's certificate is said by `authority`, else by the kubeconfig, which need not exist if there is a
    token file."""
    if not server.startswith("https://"):
        raise CredentialsError(f"--server {server}: write https://HOST:PORT; nothing is served without TLS")
    if token_file and not (kubeconfig or context):
        found = Credentials(server, _SOURCE)
    else:
        found = await find(kubeconfig, context)
    if token_file:
        token = _token(token_file)
        found = replace(found, token=token, token_file="", certificate=None, key=None, expires=None)
    ca = Pem(path=authority) if authority else found.ca
    # The name, the proxy and the renewal of a kubeconfig belong to the API server.
    found = replace(found, tls_server_name="", proxy="", reload=None)
    return replace(found, server=server, source=_SOURCE, ca=ca, verify=verify)


def _token(file: str) -> str:
    try:
        token = Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(f"--token-file {file}: {error}") from error
    if not token:
        raise CredentialsError(f"--token-file {file} is empty: write a token into it")
    return token


async def ask(given: Credentials, path: str, query: Mapping[str, str]) -> dict[str, Any]:
    """The answer to a single question."""
    endpoints = Endpoints(given)
    try:
        return await endpoints.ask(path, query)
    finally:
        await endpoints.close()


async def configuration(given: Credentials) -> Configuration:
    """That which the scheduler goes by; its own plugins have to be installed here too."""
    shown = await ask(given, CONFIGZ, {})
    try:
        return configure(msgspec.json.encode(shown["componentconfig"]), source=f"{given.server}{CONFIGZ}")
    except MoorageError as error:
        raise MoorageError(f"{error}; name the configuration with --config, and its plugins") from error


async def cluster(
    given: Credentials, resources: Iterable[Resource], annotations: bool = False
) -> ClusterObjects:
    """What the scheduler sees at this moment."""
    endpoints = Endpoints(given)
    path, query = f"{ROOT}/snapshot", {"annotations": str(annotations).lower()}
    try:
        data = await endpoints.get(path, query, SNAPSHOT_LIMIT, SNAPSHOT_SECONDS)
    finally:
        await endpoints.close()
    found = snapshots.read(data, f"{given.server}{path}", resources)
    return replace(found, namespace=given.namespace or found.namespace)


class Endpoints:
    """For many questions: connections are kept."""

    def __init__(self, given: Credentials) -> None:
        self.server = given.server
        self._transport = AiohttpTransport(given, SystemClock())

    async def ask(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """A MoorageError says who refused the question, or why there is no answer."""
        return self._decoded(path, await self.get(path, query))

    async def send(self, path: str, query: Mapping[str, str], text: str) -> dict[str, Any]:
        """What the scheduler says of a text of YAML; also when it refuses what it says."""
        headers = {"Content-Type": "application/yaml"}
        request = Request("POST", path, query, headers, text.encode(), SEND_SECONDS)
        return self._decoded(path, await self._exchange(request, ANSWER_LIMIT, also=422))

    async def get(
        self, path: str, query: Mapping[str, str], limit: int = ANSWER_LIMIT, seconds: float = SECONDS
    ) -> bytes:
        """The answer as it comes, of so many bytes at most and within that time."""
        return await self._exchange(Request("GET", path, query, timeout=seconds), limit)

    async def _exchange(self, request: Request, limit: int, also: int = 200) -> bytes:
        headers = {"User-Agent": default_user_agent("read-scheduler"), **request.headers}
        path = request.path
        async with self._transport.send(replace(request, headers=headers)) as response:
            status, body = response.status, await response.read(limit)
        if status not in (200, also):
            refusal = _refusal(status, request.method.lower(), path, body)
            raise MoorageError(f"{self.server}{path}: {status} {refusal}")
        return body

    def _decoded(self, path: str, body: bytes) -> dict[str, Any]:
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise MoorageError(f"{self.server}{path}: this is no scheduler of Moorage ({error})") from error

    async def close(self) -> None:
        await self._transport.close()


def _refusal(status: int, verb: str, path: str, body: bytes) -> str:
    said = body.decode(errors="replace").strip()[:1000]
    match status:
        case 401:
            return f"{said}: the cluster does not know this token; name another with --token-file"
        case 403:
            return f"{said}; a ClusterRole with the nonResourceURL {path} and the verb {verb} allows it"
        case 404:
            return f"{said}; is there a scheduler of this version of Moorage?"
        case _:
            return said
