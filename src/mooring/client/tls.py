"""The TLS side of credentials: contexts with TLS 1.2 or newer, rebuilt when a file behind them changes."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from mooring.client.credentials import Credentials, CredentialsError, Pem
from mooring.framework.ports import Clock
from mooring.telemetry import logs

log = logs.get(__name__)

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
            log.warning("Changed certificates are not usable, going on with the last ones", err=error)
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


def _add_certificate(
    context: ssl.SSLContext, credentials: Credentials, certificate: Pem, key: Pem | None
) -> None:
    if key is None:
        raise CredentialsError(
            f"{credentials.source}: there is a client certificate without its key; add client-key"
        )
    pair = certificate.read() + b"\n" + key.read()
    # OpenSSL reads certificates from files only: for the moment of reading, one that nobody else can open.
    handle, path = tempfile.mkstemp(prefix="mooring-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair)
        context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise _unusable(credentials, "client-certificate or client-key", certificate, error) from error
    finally:
        Path(path).unlink()


def _no_password() -> str:
    raise ValueError("the key is protected by a password, which nobody can be asked for")


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
