"""Who we are and which server we speak to: a small value, its token that is kept fresh, and its TLS context.

Where credentials come from is in `connection` and `kubeconfig`.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from moorage.api.errors import MoorageError
from moorage.framework.ports import Clock
from moorage.telemetry import logs
from moorage.telemetry.logs import Throttle


class CredentialsError(MoorageError):
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
            raise CredentialsError(f"{self.path}: {error.strerror}; correct the path or the file's mode") from error


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
    context: str = ""
    """The context of the kubeconfig, if there is one."""
    reload: Callable[[], Awaitable[Credentials]] | None = field(default=None, repr=False, compare=False)
    """Reads everything anew, exec plugins included; None where there is nothing to gain."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CredentialsError(
                f"{self.source}: {self.server!r} is not the address of a server; write https://host:port"
            )
        if parts.username or parts.query or parts.fragment:
            raise CredentialsError(
                f"{self.source}: the address of the server has more than host, port and path; "
                "put users and tokens into the user's entry"
            )


log = logs.get(__name__)

READ_SECONDS = 60.0
"""A token file is read again after so long; kubelets rotate it well before the old one ends."""
EARLY_SECONDS = 60.0
"""Credentials that are known to end are renewed so long before."""
RELOAD_SECONDS = 10.0
"""Between two renewals, however many requests are refused meanwhile: an exec plugin is a process."""


class Bearer:
    """The token to send now. `credentials` changes with what is renewed."""

    def __init__(self, credentials: Credentials, clock: Clock) -> None:
        self.credentials = credentials
        self._clock = clock
        self._token = credentials.token
        self._read_at = float("-inf")
        self._reloaded_at = float("-inf")
        self._reloading: asyncio.Task[None] | None = None
        self._complaints = Throttle(clock.now)

    async def token(self) -> str:
        """Empty: none."""
        if self.credentials.token_file:
            if self._clock.now() - self._read_at >= READ_SECONDS:
                self._read()
        elif self._ends_soon():
            await self._reload()
        return self._token

    async def refused(self, token: str) -> bool:
        """The server did not take this one: whether there is another to try."""
        if token != self._token:
            return True  # renewed meanwhile, for another request
        if self.credentials.token_file:
            self._read()
        else:
            await self._reload()
        return token != self._token

    def _read(self) -> None:
        self._read_at = self._clock.now()
        path = self.credentials.token_file
        try:
            token = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            self._complain("Token file cannot be read; using the last token", path, error)
            return
        if token:
            self._token = token
        else:
            self._complain("Token file is empty; using the last token", path, None)

    def _ends_soon(self) -> bool:
        expires = self.credentials.expires
        return expires is not None and self._clock.wall() > expires - EARLY_SECONDS

    async def _reload(self) -> None:
        if self.credentials.reload is None:
            return
        if self._reloading is None:
            if self._clock.now() - self._reloaded_at < RELOAD_SECONDS:
                return
            self._reloaded_at = self._clock.now()
            self._reloading = asyncio.create_task(self._renew(), name="credentials")
        # Shared by all who wait for it: the one who asked first may be cancelled.
        await asyncio.shield(self._reloading)

    async def _renew(self) -> None:
        try:
            assert self.credentials.reload is not None
            self.credentials = await self.credentials.reload()
            self._token = self.credentials.token
        except MoorageError as error:
            self._complain("Credentials cannot be renewed", self.credentials.source, error)
        finally:
            self._reloading = None

    def _complain(self, message: str, source: str, error: Exception | None) -> None:
        if self._complaints.admits():
            log.warning(message, source=source, err=error)


CHECK_SECONDS = 60.0
"""How often files are looked at for a change."""


class TlsContexts:
    """The context to connect with now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._context: ssl.SSLContext | None = None
        self._for: Credentials | None = None
        self._made_of: object = None
        self._checked_at = float("-inf")

    def current(self, credentials: Credentials) -> ssl.SSLContext:
        """Another object once credentials or their files have changed, so that new connections are made."""
        recent = self._clock.now() - self._checked_at < CHECK_SECONDS
        if self._context is not None and recent and credentials is self._for:
            return self._context
        self._checked_at, self._for = self._clock.now(), credentials
        parts = (credentials.ca, credentials.certificate, credentials.key, credentials.verify)
        made_of = (parts, tuple(map(_state, parts[:3])))
        if self._context is None or made_of != self._made_of:
            self._context, self._made_of = self._make(credentials), made_of
        return self._context

    def _make(self, credentials: Credentials) -> ssl.SSLContext:
        try:
            return make_context(credentials)
        except CredentialsError as error:
            if self._context is None:
                raise
            log.warning("Changed certificates are not usable; using the last ones", err=error)
            return self._context


def make_context(credentials: Credentials) -> ssl.SSLContext:
    context = _trusting(credentials)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # Newer Pythons refuse certificates without an authority key identifier; clusters sign many like that.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not credentials.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credentials.certificate is not None:
        _add_certificate(context, credentials, credentials.certificate, credentials.key)
    return context


def _trusting(credentials: Credentials) -> ssl.SSLContext:
    ca = credentials.ca
    if ca is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=ca.read().decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise _unusable(credentials, "certificate-authority", ca, error) from error


def _add_certificate(context: ssl.SSLContext, credentials: Credentials, certificate: Pem, key: Pem | None) -> None:
    if key is None:
        raise CredentialsError(f"{credentials.source}: there is a client certificate without its key; add client-key")
    pair = certificate.read() + b"\n" + key.read()
    # OpenSSL reads certificates from files only: for the moment of reading, one that no other user can open.
    handle, path = tempfile.mkstemp(prefix="moorage-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair)
        context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise _unusable(credentials, "client-certificate or client-key", certificate, error) from error
    finally:
        Path(path).unlink()


def _no_password() -> str:
    raise ValueError("the key is protected by a password, which a scheduler cannot enter")


def _unusable(credentials: Credentials, field: str, pem: Pem, error: Exception) -> CredentialsError:
    where = pem.path or f"{field}-data"
    return CredentialsError(f"{credentials.source}: {field}: {where} is not usable PEM ({error})")


def _state(pem: Pem | None) -> tuple[int, int] | None:
    """What changes when a file is replaced."""
    if pem is None or not pem.path:
        return None
    try:
        stat = os.stat(pem.path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino
