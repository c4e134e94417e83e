"""Credentials from kubeconfig files. Merging, contexts and certificates are left to the loader of
kubernetes-asyncio; what it lets pass in silence, and the words of the errors, are here. Exec plugins are run
by `exec_plugin`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mooring.client.credentials import Credentials, CredentialsError, Pem
from mooring.client.exec_plugin import Given, Plugin, PluginError
from mooring.telemetry import logs

log = logs.get(__name__)

PLUGIN_SECONDS = 60.0
"""For an exec plugin, or an identity provider, to answer."""


async def load(paths: str, context: str = "") -> Credentials:
    """What one file says, or several joined as in PATH, of which the first to say something wins."""
    library: Any = _library()
    config = _merged(library, paths)
    chosen = _Choice(config, paths, context or config["current-context"])
    given = await chosen.run_plugin()
    found = SimpleNamespace(api_key={})
    # The loader hands certificates over as files, private keys too: they are read and removed at once.
    with tempfile.TemporaryDirectory(prefix="mooring-") as scratch:
        try:
            loader = library.KubeConfigLoader(
                config["node"], active_context=chosen.name, config_base_path=None, temp_file_path=scratch
            )
            async with asyncio.timeout(PLUGIN_SECONDS):
                await loader.load_and_set(found)
        except TimeoutError as error:
            raise chosen.error(f"its identity provider gave no answer within {PLUGIN_SECONDS:g} s") from error
        except Exception as error:
            raise chosen.error(f"{error}; correct the entry") from error
        finally:
            pems = {name: _pem(getattr(found, name, None), scratch) for name in _PEMS}
            library._cleanup_temp_files()
    chosen.warn_if_insecure()
    return Credentials(
        server=str(getattr(found, "host", "")),
        source=chosen.source,
        ca=pems["ssl_ca_cert"],
        certificate=Pem(data=given.certificate.encode()) if given.certificate else pems["cert_file"],
        key=Pem(data=given.key.encode()) if given.key else pems["key_file"],
        token=given.token or chosen.bearer(found.api_key.get("BearerToken", "")),
        token_file=chosen.token_file,
        expires=given.expires,
        verify=bool(getattr(found, "verify_ssl", True)),
        tls_server_name=str(getattr(found, "tls_server_name", "")),
        proxy=chosen.proxy(),
        namespace=str(chosen.context.get("namespace") or ""),
        reload=partial(load, paths, context),
    )


_PEMS = ("ssl_ca_cert", "cert_file", "key_file")
_GIVEN = ("token", "tokenFile", "client-certificate", "client-certificate-data")
"""With one of these a user needs no plugin."""


def _library() -> Any:
    # Here and not above: it takes most of a second and 40 MB, which pods and `mooring --help` do without.
    from kubernetes_asyncio.config import kube_config

    return kube_config


def _merged(library: Any, paths: str) -> dict[str, Any]:
    """The loader's view of all files, and the current context."""
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    present = [path for path in files if path.is_file()]
    if not present:
        raise CredentialsError(
            f"kubeconfig {paths}: no such file; name one with --kubeconfig or in KUBECONFIG"
        )
    for path in files:
        if path not in present:
            log.warning("Kubeconfig file does not exist, going on without it", file=str(path))
    try:
        merger = library.KubeConfigMerger(os.pathsep.join(map(str, present)))
    except Exception as error:
        reason = " ".join(str(error).split())
        raise CredentialsError(
            f"kubeconfig {paths}: cannot be read: {reason}; it must be YAML of kind Config"
        ) from error
    # kubectl takes the first file that names a context; the loader takes the last.
    named = [config.get("current-context") for config in merger.config_files.values() if config]
    return {"node": merger.config, "current-context": next(filter(None, named), "")}


class _Choice:
    """One context with its cluster and user, checked before the loader sees them."""

    def __init__(self, config: Mapping[str, Any], paths: str, name: str) -> None:
        self.source = f"kubeconfig {paths}"
        self.name = name
        known = _by_name(config["node"].value, "contexts")
        if not name:
            raise self.error(f"names no current context; choose one of: {_listed(known)}")
        if name not in known:
            raise self.error(f"has no context {name!r}; choose one of: {_listed(known)}")
        self.source = f"kubeconfig {paths}, context {name}"
        self.context = _inner(known[name], "context")
        self._cluster = self._entry(config, "clusters", "cluster")
        self._user = self._entry(config, "users", "user")
        self.cluster, self.user = _inner(self._cluster, "cluster"), _inner(self._user, "user")
        self._check_user()
        self.token_file = self._path(self._user, self.user.get("tokenFile"))

    def error(self, message: str) -> CredentialsError:
        return CredentialsError(f"{self.source}: {message}")

    def bearer(self, header: str) -> str:
        scheme, _, token = header.partition(" ")
        if header and (scheme != "Bearer" or not token.strip()):
            raise self.error(f"user {self.context['user']!r} has an empty token")
        return token.strip()

    def proxy(self) -> str:
        url = str(self.cluster.get("proxy-url") or "")
        if url and not url.startswith(("http://", "https://")):
            raise self.error(f"proxy-url {url!r} is not supported; name an http:// or https:// proxy")
        return url

    async def run_plugin(self) -> Given:
        """What the exec plugin gives, if there is one; as for kubectl, it is not asked by users who have a
        token or certificate already. The loader, which would run it in its own way, does not see it."""
        entry = self.user.pop("exec", None)
        if not entry or any(self.user.get(name) for name in _GIVEN):
            return Given()
        try:
            return await Plugin(entry, self._base(self._user), self.cluster).run(PLUGIN_SECONDS)
        except PluginError as error:
            raise self.error(f"user {self.context['user']!r}: {error}; correct the entry") from error
        except Exception as error:
            raise self.error(
                f"user {self.context['user']!r}: exec cannot be read ({type(error).__name__}: {error}); "
                "correct the entry"
            ) from error

    def warn_if_insecure(self) -> None:
        if self.cluster.get("insecure-skip-tls-verify"):
            log.warning(
                "The certificate of the API server is not verified: those on the way can read and change all",
                kubeconfig=self.source,
                field="insecure-skip-tls-verify",
            )

    def _entry(self, config: Mapping[str, Any], plural: str, kind: str) -> Any:
        name = self.context.get(kind)
        if not name:
            raise self.error(f"the context names no {kind}; add `{kind}:` to it")
        entries = _by_name(config["node"].value, plural)
        if name not in entries:
            raise self.error(f"there is no {kind} {name!r}; {plural} are: {_listed(entries)}")
        return entries[name]

    def _check_user(self) -> None:
        name = self.context["user"]
        if "username" in self.user or "password" in self.user:
            raise self.error(
                f"user {name!r} has a password, which API servers no longer take; use a token or certificate"
            )
        provider = self.user.get("auth-provider")
        if provider and provider.get("name") != "oidc":
            raise self.error(
                f"user {name!r} has auth-provider {provider.get('name')!r}, which Kubernetes has removed; "
                "use the exec plugin of your provider"
            )
        if provider and self.user.get("exec"):
            raise self.error(f"user {name!r} has both auth-provider and exec; remove one of them")

    def _path(self, entry: Any, path: str | None) -> str:
        """A path in a kubeconfig is relative to that file."""
        if not path:
            return ""
        return str(self._base(entry) / path)

    def _base(self, entry: Any) -> Path:
        return Path(getattr(entry, "path", None) or ".").resolve().parent


def _by_name(config: Mapping[str, Any], plural: str) -> dict[str, Any]:
    entries = config.get(plural) or []
    return {str(_plain(entry).get("name")): entry for entry in entries}


def _plain(entry: Any) -> Mapping[str, Any]:
    """The loader wraps entries to remember which file they came from."""
    value = getattr(entry, "value", entry)
    return value if isinstance(value, Mapping) else {}


def _inner(entry: Any, key: str) -> dict[str, Any]:
    found = _plain(entry).get(key)
    return found if isinstance(found, dict) else {}


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"


def _pem(path: str | None, scratch: str) -> Pem | None:
    """A file that the loader made is data of the kubeconfig; any other is the user's, who may rotate it."""
    if not path:
        return None
    if Path(path).parent == Path(scratch):
        return Pem(data=Path(path).read_bytes())
    return Pem(path=path)
