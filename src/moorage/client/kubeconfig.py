"""Credentials from kubeconfig files, merged and read as kubectl does. Exec plugins are run by `exec_plugin`, ID tokens
renewed by `oidc`."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from moorage.api import yaml_text
from moorage.client import auth_plugins
from moorage.client.auth_plugins import ExecPlugin, ExecPluginError, Given
from moorage.client.credentials import Credentials, CredentialsError, Pem
from moorage.telemetry import logs

log = logs.get(__name__)

PLUGIN_SECONDS = 60.0
"""For an exec plugin, or an identity provider, to answer."""
_GIVEN = ("token", "tokenFile", "client-certificate", "client-certificate-data")
"""With one of these a user needs no plugin."""


async def load(paths: str, context: str = "") -> Credentials:
    """Return the credentials of one file, or of several joined as in PATH; the first entry of a name wins."""
    config = _merged(paths)
    chosen = _Choice(config, paths, context or config.current)
    given = await chosen.given()
    chosen.warn_if_insecure()
    cluster, user = chosen.cluster, chosen.user
    return Credentials(
        server=str(cluster.value.get("server") or "").rstrip("/"),
        source=chosen.source,
        ca=chosen.pem(cluster, "certificate-authority"),
        certificate=_data(given.certificate) or chosen.pem(user, "client-certificate"),
        key=_data(given.key) or chosen.pem(user, "client-key"),
        token=given.token or chosen.token(),
        token_file=str(user.path("tokenFile") or ""),
        expires=given.expires,
        verify=not cluster.value.get("insecure-skip-tls-verify"),
        tls_server_name=str(cluster.value.get("tls-server-name") or ""),
        proxy=chosen.proxy(),
        namespace=str(chosen.context.value.get("namespace") or ""),
        context=chosen.name,
        reload=partial(load, paths, context),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """A context, cluster or user."""

    value: dict[str, Any]
    folder: Path
    """The folder of its file, to which its paths are relative."""

    def path(self, field: str) -> Path | None:
        named = self.value.get(field)
        return Path(os.path.normpath(self.folder / str(named))) if named else None


@dataclass(slots=True)
class _Config:
    """All files together."""

    current: str = ""
    contexts: dict[str, _Entry] = field(default_factory=dict)
    clusters: dict[str, _Entry] = field(default_factory=dict)
    users: dict[str, _Entry] = field(default_factory=dict)

    def add(self, file: Path) -> None:
        """Add the entries and the current context that no earlier file has."""
        read = yaml_text.load(file.read_bytes(), str(file))
        if read is not None and not isinstance(read, dict):
            raise ValueError(f"{file} is not a mapping")
        read = read or {}
        self.current = self.current or str(read.get("current-context") or "")
        for known, plural in ((self.contexts, "contexts"), (self.clusters, "clusters"), (self.users, "users")):
            for entry in read.get(plural) or ():
                value = entry.get(plural[:-1])
                found = _Entry(value if isinstance(value, dict) else {}, file.resolve().parent)
                known.setdefault(str(entry.get("name")), found)


def _merged(paths: str) -> _Config:
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    if not any(path.is_file() for path in files):
        raise CredentialsError(f"kubeconfig {paths}: no such file; name one with --kubeconfig or in KUBECONFIG")
    config = _Config()
    for path in files:
        if not path.is_file():
            log.warning("Kubeconfig file does not exist; continuing without it", file=str(path))
            continue
        try:
            config.add(path)
        except (OSError, ValueError, TypeError, AttributeError, yaml_text.YamlError) as error:
            reason = " ".join(str(error).split())
            raise CredentialsError(
                f"kubeconfig {paths}: cannot be read: {reason}; it must be YAML of kind Config"
            ) from error
    return config


class _Choice:
    """One context with its cluster and user."""

    def __init__(self, config: _Config, paths: str, name: str) -> None:
        self.source = f"kubeconfig {paths}"
        if not name:
            raise self.error(f"has no current-context; choose one of: {_listed(config.contexts)}")
        if name not in config.contexts:
            raise self.error(f"has no context {name!r}; choose one of: {_listed(config.contexts)}")
        self.source = f"kubeconfig {paths}, context {name}"
        self.name = name
        self.context = config.contexts[name]
        self.cluster = self._entry(config.clusters, "cluster")
        self.user = self._entry(config.users, "user")
        self._check_user()

    def error(self, message: str) -> CredentialsError:
        return CredentialsError(f"{self.source}: {message}")

    def _entry(self, known: Mapping[str, _Entry], kind: str) -> _Entry:
        name = self.context.value.get(kind)
        if not name:
            raise self.error(f"the context has no {kind}; add `{kind}:` to it")
        if name not in known:
            raise self.error(f"there is no {kind} {name!r}; {kind}s are: {_listed(known)}")
        return known[name]

    def _check_user(self) -> None:
        user = self.user.value
        if "username" in user or "password" in user:
            raise self._user_error("has a password, which API servers no longer take; use a token or certificate")
        provider = user.get("auth-provider")
        name = provider.get("name") if isinstance(provider, dict) else provider
        if provider and name != "oidc":
            raise self._user_error(
                f"has auth-provider {name!r}, which Kubernetes has removed; use the exec plugin of your provider"
            )
        if provider and user.get("exec"):
            raise self._user_error("has both auth-provider and exec; remove one of them")

    def _user_error(self, message: str) -> CredentialsError:
        return self.error(f"user {self.context.value['user']!r} {message}")

    async def given(self) -> Given:
        """What the exec plugin or the identity provider gives, if there is one; as for kubectl, a user who
        has a token or certificate already does not ask the plugin."""
        user = self.user.value
        if provider := user.get("auth-provider"):
            try:
                token, expires = await auth_plugins.id_token(provider.get("config") or {}, time.time(), PLUGIN_SECONDS)
            except auth_plugins.OidcError as error:
                raise self._user_error(f"has auth-provider oidc: {error}") from error
            return Given(token=token, expires=expires)
        entry = user.get("exec")
        if not entry or any(user.get(name) for name in _GIVEN):
            return Given()
        try:
            return await ExecPlugin(entry, self.user.folder, self.cluster.value).run(PLUGIN_SECONDS)
        except ExecPluginError as error:
            raise self.error(f"user {self.context.value['user']!r}: {error}; correct the entry") from error
        except Exception as error:
            raise self._user_error(
                f"has an exec that cannot be read ({type(error).__name__}: {error}); correct the entry"
            ) from error

    def token(self) -> str:
        """Of the file where one is named, as for kubectl."""
        path, token = self.user.path("tokenFile"), str(self.user.value.get("token") or "")
        if path is not None:
            try:
                token = path.read_text()
            except OSError as error:
                raise self._user_error(f"has tokenFile {path}: {error.strerror}; correct the entry") from error
        if token and not token.strip():
            raise self._user_error("has an empty token")
        return token.strip()

    def pem(self, entry: _Entry, name: str) -> Pem | None:
        """Return embedded data, or else the content of a file, which may be rotated."""
        if encoded := entry.value.get(f"{name}-data"):
            try:
                return Pem(data=base64.b64decode("".join(str(encoded).split()), validate=True))
            except ValueError as error:
                raise self.error(f"{name}-data is not base64: {error}; correct the entry") from error
        path = entry.path(name)
        if path is not None and not path.is_file():
            raise self.error(f"{name}: there is no file {path}; correct the entry")
        return Pem(path=str(path)) if path else None

    def proxy(self) -> str:
        url = str(self.cluster.value.get("proxy-url") or "")
        if url and not url.startswith(("http://", "https://")):
            raise self.error(f"proxy-url {url!r} is not supported; name an http:// or https:// proxy")
        return url

    def warn_if_insecure(self) -> None:
        if self.cluster.value.get("insecure-skip-tls-verify"):
            log.warning(
                "The certificate of the API server is not verified; others can read and change all traffic",
                kubeconfig=self.source,
                field="insecure-skip-tls-verify",
            )


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"


def _data(text: str) -> Pem | None:
    return Pem(data=text.encode()) if text else None
