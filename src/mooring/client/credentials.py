"""Who we are and which server we speak to: a small value.

Where it comes from is in `finding` and `kubeconfig`; keeping a token fresh in `bearer`, TLS in `tls`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mooring.api.errors import MooringError


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
