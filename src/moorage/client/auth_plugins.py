"""Credentials from the plugins of a kubeconfig: exec programs and the auth-provider `oidc`.

An exec plugin (client.authentication.k8s.io) runs in its own session, which ends as a whole if the program
hangs. Its output goes to files without a name and not to pipes, so nothing depends on other holders of the
other end. A scheduler has no person to ask, so plugins are started as not interactive.

ID tokens of `oidc` are used until they expire and then renewed with the refresh token. Nothing is written
back: a provider that accepts a refresh token only once needs an exec plugin.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import aiohttp

API = "client.authentication.k8s.io"
MAX_BYTES = 1 << 20
"""Bytes that are read of the output of a plugin, or of the answer of an issuer."""
_SHOWN = 500
"""Characters of what a plugin complains about."""
EARLY_SECONDS = 300.0
"""A token that ends within this time is renewed."""


class ExecPluginError(Exception):
    """A plugin returned no credentials; the message says why."""


@dataclass(frozen=True, slots=True)
class Given:
    """The credentials that a plugin printed, with PEM unchanged."""

    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = field(default="", repr=False)
    expires: float | None = None


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """One `exec` entry. `base` is the folder that relative commands start from, the kubeconfig's."""

    entry: Mapping[str, Any]
    base: Path
    cluster: Mapping[str, Any]

    async def run(self, seconds: float) -> Given:
        """Run the plugin once. After a timeout or cancellation no process of it remains."""
        command, version = self.entry.get("command"), self.entry.get("apiVersion")
        for name, value in (("command", command), ("apiVersion", version)):
            if not value or not isinstance(value, str):
                raise ExecPluginError(f"exec has no {name}; add `{name}:` to it")
        if self.entry.get("interactiveMode") == "Always":
            raise ExecPluginError("exec asks for a terminal (interactiveMode Always), and a scheduler has none")
        output = await _output(self._command(str(command)), self._environment(), seconds, self._hint())
        return _given(output, str(version))

    def _command(self, command: str) -> list[str]:
        """Find the program: a bare name in PATH, one with a slash relative to the kubeconfig."""
        program = str(self.base / command) if os.sep in command else command
        return [program, *map(str, self.entry.get("args") or ())]

    def _environment(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": False}
        if self.entry.get("provideClusterInfo"):
            spec["cluster"] = self._cluster_info()
        info = {"apiVersion": self.entry["apiVersion"], "kind": "ExecCredential", "spec": spec}
        given = {str(item["name"]): str(item["value"]) for item in self.entry.get("env") or ()}
        return {**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def _cluster_info(self) -> dict[str, Any]:
        fields = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
        info = {name: self.cluster[name] for name in fields if self.cluster.get(name)}
        if data := self.cluster.get("certificate-authority-data"):
            info["certificate-authority-data"] = data
        elif path := self.cluster.get("certificate-authority"):
            info["certificate-authority-data"] = base64.b64encode((self.base / path).read_bytes()).decode()
        for extension in self.cluster.get("extensions") or ():
            if extension.get("name") == f"{API}/exec":
                info["config"] = extension.get("extension")
        return info

    def _hint(self) -> str:
        hint = " ".join(str(self.entry.get("installHint") or "").split())
        return f"; {hint}" if hint else ""


async def _output(command: list[str], environment: dict[str, str], seconds: float, hint: str) -> bytes:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = await _start(command, environment, out, err)
        except OSError as error:
            raise ExecPluginError(f"exec plugin {command[0]} cannot be started: {error.strerror}{hint}") from error
        try:
            async with asyncio.timeout(seconds):
                code = await process.wait()
        except TimeoutError as error:
            raise ExecPluginError(f"its exec plugin gave no answer within {seconds:g} s{_printed(err)}") from error
        finally:
            if process.returncode is None:
                await _end(process)
        if code:
            raise ExecPluginError(f"exec plugin {command[0]} ended with {code}{_printed(err)}{hint}")
        out.seek(0)
        output = out.read(MAX_BYTES + 1)
        if len(output) > MAX_BYTES:
            raise ExecPluginError(f"its exec plugin printed more than {MAX_BYTES} bytes")
        return output


async def _start(
    command: list[str], environment: dict[str, str], out: IO[bytes], err: IO[bytes]
) -> asyncio.subprocess.Process:
    """Start the plugin. If this is cancelled while the process starts, its whole session is ended all the same."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(await starting)
        raise


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the whole session, because a plugin is often a script around the program that hangs."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _printed(stderr: IO[bytes]) -> str:
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - 4 * _SHOWN))
    text = " ".join(stderr.read().decode(errors="replace").split())
    return f": {text[-_SHOWN:]}" if text else ""


def _given(output: bytes, version: str) -> Given:
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise ExecPluginError(f"its exec plugin did not print JSON ({error})") from error
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise ExecPluginError("its exec plugin printed no ExecCredential")
    if answer.get("apiVersion") != version:
        raise ExecPluginError(f"its exec plugin speaks apiVersion {answer.get('apiVersion')}, not {version}")
    status = answer.get("status")
    status = status if isinstance(status, dict) else {}
    token = str(status.get("token") or "")
    certificate, key = (str(status.get(f"client{name}Data") or "") for name in ("Certificate", "Key"))
    if bool(certificate) != bool(key):
        raise ExecPluginError("its exec plugin gave one of clientCertificateData and clientKeyData, not both")
    if not token and not certificate:
        raise ExecPluginError("its exec plugin gave neither status.token nor status.clientCertificateData")
    return Given(token, certificate, key, _expiry(status.get("expirationTimestamp")))


def _expiry(text: object) -> float | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError as error:
        raise ExecPluginError(f"its exec plugin printed an invalid expirationTimestamp {text!r}") from error


class OidcError(Exception):
    """There is no valid ID token; the message says what to correct."""


async def id_token(config: Mapping[str, Any], now: float, seconds: float) -> tuple[str, float | None]:
    """Return a valid token, and the Unix time of its expiry if it has one."""
    token = str(config.get("id-token") or "")
    end = _token_expiry(token) if token else None
    if token and (end is None or end - EARLY_SECONDS > now):
        return token, end
    for name in ("refresh-token", "client-id", "idp-issuer-url"):
        if not config.get(name):
            raise OidcError(f"the id-token has expired and {name} is missing, so it cannot be renewed; log in again")
    try:
        token = await _renewed(config, seconds)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise OidcError(
            f"the issuer {config['idp-issuer-url']} did not return an id_token ({reason}); log in again"
        ) from error
    return token, _token_expiry(token)


def _token_expiry(token: str) -> float | None:
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        expiry = claims.get("exp")
        return None if expiry is None else float(expiry)
    except (IndexError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise OidcError("the id-token is not a JSON Web Token; log in again") from error


async def _renewed(config: Mapping[str, Any], seconds: float) -> str:
    issuer, client = str(config["idp-issuer-url"]).rstrip("/"), str(config["client-id"])
    form = {"grant_type": "refresh_token", "refresh_token": str(config["refresh-token"]), "client_id": client}
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=_trust(config)),
        timeout=aiohttp.ClientTimeout(total=seconds),
        raise_for_status=True,
    ) as session:
        async with session.get(f"{issuer}/.well-known/openid-configuration") as answer:
            endpoint = (await _json(answer))["token_endpoint"]
        secret = f"{client}:{config.get('client-secret') or ''}"
        basic = {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
        async with session.post(endpoint, data=form, headers=basic, allow_redirects=False) as answer:
            return str((await _json(answer))["id_token"])


async def _json(answer: aiohttp.ClientResponse) -> Any:
    """Return the JSON of an answer. Raises ValueError if it is too long."""
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            raise ValueError(f"{answer.url} answered more than {MAX_BYTES} bytes")
    return json.loads(body)


def _trust(config: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the CA of the provider if the kubeconfig has one, else the roots of the system."""
    encoded, file = config.get("idp-certificate-authority-data"), config.get("idp-certificate-authority")
    if encoded:
        return ssl.create_default_context(cadata=base64.b64decode(str(encoded)).decode())
    return ssl.create_default_context(cafile=str(file) if file else None)
