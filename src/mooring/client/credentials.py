"""Who we are and which server we speak to: a small value, and where it is found.

Reading a kubeconfig is in `kubeconfig`, keeping a token fresh in `bearer`, TLS in `tls`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mooring.api.errors import MooringError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


class CredentialsError(MooringError):
    """Credentials that cannot be used; the message names the file, the entry in it and the way out."""


@dataclass(frozen=True, slots=True)
class Pem:
    """A certificate or key: in a file, which is read again when it changes, or at hand."""

    path: str = ""
    data: bytes = field(default=b"", repr=False)

    def read(self) -> bytes:
        if not self.path:
            return self.data
        try:
            return Path(self.path).read_bytes()
        except OSError as error:
            raise CredentialsError(
                f"{self.path}: {error.strerror}; correct the path or the file's mode"
            ) from error


@dataclass(frozen=True, slots=True)
class Credentials:
    """Everything a transport needs to be made. Secrets are left out of its text form."""

    server: str
    """`https://host:port`, perhaps with a path prefix."""
    source: str
    """Where all this was found, for messages."""
    ca: Pem | None = None
    """Who signs the server's certificate; None: the roots of the system."""
    certificate: Pem | None = None
    key: Pem | None = None
    token: str = field(default="", repr=False)
    token_file: str = ""
    """Read again and again, since it is rotated; wins over `token`."""
    expires: float | None = None
    """Unix seconds at which token or certificate end, if they are known to."""
    verify: bool = True
    tls_server_name: str = ""
    """The name in the server's certificate, where it is not the host's."""
    proxy: str = ""
    namespace: str = ""
    """Of the context or the service account."""
    reload: Callable[[], Awaitable[Credentials]] | None = field(default=None, repr=False, compare=False)
    """Reads everything anew, exec plugins included; None where there is nothing to gain."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CredentialsError(
                f"{self.source}: {self.server!r} is no address of a server; write https://host:port"
            )
        if parts.username or parts.query or parts.fragment:
            raise CredentialsError(
                f"{self.source}: the address of the server has more than host, port and path; "
                "put users and tokens into the user's entry"
            )


async def load(
    kubeconfig: str = "", context: str = "", environ: Mapping[str, str] = os.environ
) -> Credentials:
    """The credentials to use: from the file that is named, else from KUBECONFIG, else those of the pod that
    we run in, else from ~/.kube/config. `context` selects another one than the current."""
    # The library behind kubeconfig files takes most of a second and 40 MB to import; pods do without it.
    from mooring.client import kubeconfig as files

    named = kubeconfig or environ.get("KUBECONFIG", "")
    if named:
        return await files.load(named, context)
    if environ.get(HOST):
        return in_cluster(environ)
    default = Path.home() / ".kube" / "config"
    if default.is_file():
        return await files.load(str(default), context)
    raise CredentialsError(
        f"no credentials for an API server: --kubeconfig and KUBECONFIG are not set, {default} does not "
        f"exist, and {HOST} is not set, so this is no pod; name a kubeconfig file"
    )


def in_cluster(environ: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT) -> Credentials:
    """Those of the service account of the pod that we run in. Two variables and two files are all there is,
    so no library is asked."""
    source = "service account of this pod"
    host, port = environ.get(HOST, ""), environ.get(PORT, "")
    if not host or not port:
        raise CredentialsError(
            f"{source}: {HOST} and {PORT} are not both set; this is no pod, so name a kubeconfig file"
        )
    for file in (directory / "token", directory / "ca.crt"):
        if not file.is_file() or not file.stat().st_size:
            raise CredentialsError(
                f"{source}: {file} is missing or empty; "
                "set automountServiceAccountToken in the pod, or name a kubeconfig file"
            )
    return Credentials(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        source=source,
        ca=Pem(path=str(directory / "ca.crt")),
        token_file=str(directory / "token"),
        namespace=_namespace(directory / "namespace"),
    )


def _namespace(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
