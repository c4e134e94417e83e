"""TLS of the endpoints: given certificates, which are read again when they change, or one made at start."""

from __future__ import annotations

import os
import socket
import ssl
import time
from pathlib import Path

from mooring.api.errors import MooringError
from mooring.serving.certificates import Authority, Certificate, load
from mooring.telemetry import logs

_log = logs.get(__name__)

PAIR_NAME = "kube-scheduler"
"""Names of the files in --cert-dir, as kube-scheduler has them."""
VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


class ServingCertificate:
    """The certificate of the endpoints and the context that uses it for new connections."""

    def __init__(
        self,
        *,
        cert_file: str = "",
        key_file: str = "",
        cert_dir: str = "",
        host: str = "127.0.0.1",
        min_version: str = "",
        cipher_suites: tuple[str, ...] = (),
        client_ca_file: str = "",
    ) -> None:
        self.context = _context(min_version, cipher_suites)
        self._files = (cert_file, key_file) if cert_file else _in_folder(cert_dir, host)
        self._seen: tuple[float, float] | None = None
        if self._files is None:
            _log.warning(
                "Serving with a certificate made for this run; set --tls-cert-file for a lasting one"
            )
            load(self.context, _self_made(host))
        else:
            self._read()
        if client_ca_file:
            self.trust_clients(_text(client_ca_file, "--client-ca-file"))

    def trust_clients(self, bundle: str) -> None:
        """Accept clients with certificates of these authorities (PEM), besides those known before."""
        try:
            self.context.load_verify_locations(cadata=bundle)
        except (ssl.SSLError, ValueError) as error:
            raise MooringError(f"the client CA is no bundle of PEM certificates: {error}") from error
        self.context.verify_mode = ssl.CERT_OPTIONAL

    def refresh(self) -> bool:
        """Read the files again if they changed; whether a new certificate is in use. A pair that does not fit
        together, as while it is being exchanged, leaves the old one."""
        if self._files is None:
            return False
        try:
            if self._stamp() == self._seen:
                return False
            self._read()
        except (MooringError, OSError) as error:
            _log.error("The new serving certificate cannot be used; keeping the old one", error)
            return False
        _log.info(0, "Serving certificate read again", file=self._files[0])
        return True

    def _stamp(self) -> tuple[float, float]:
        cert, key = self._files or ("", "")
        return os.stat(cert).st_mtime, os.stat(key).st_mtime

    def _read(self) -> None:
        cert, key = self._files or ("", "")
        try:
            stamp = self._stamp()
            # Tried on a context of its own first: a failed load could leave half a pair behind.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
            self.context.load_cert_chain(cert, key)
        except (OSError, ssl.SSLError) as error:
            raise MooringError(
                f"certificate {cert} and key {key}: {error.strerror or error}; "
                "give a PEM pair that fits together"
            ) from error
        self._seen = stamp


def _context(min_version: str, cipher_suites: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS.get(min_version, ssl.TLSVersion.TLSv1_2)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    if cipher_suites:
        try:
            context.set_ciphers(":".join(openssl_name(suite) for suite in cipher_suites))
        except ssl.SSLError as error:
            known = ", ".join(cipher_suites)
            raise MooringError(f"--tls-cipher-suites: none of {known} is known here") from error
    return context


def openssl_name(suite: str) -> str:
    """Go's name of a TLS 1.2 suite (TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) as OpenSSL writes it."""
    if not suite.startswith("TLS_") or "_WITH_" not in suite:
        return suite
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.removesuffix("_SHA256") if "CHACHA20" in cipher else cipher
    exchange = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return exchange + cipher.replace("AES_", "AES").replace("_CBC_", "_").replace("_", "-")


def _self_made(host: str) -> Certificate:
    names = {"127.0.0.1", "::1", "localhost", socket.gethostname()}
    if host not in ("0.0.0.0", "::"):
        names.add(host)
    return Authority.new(time.time()).server(sorted(names))


def _in_folder(folder: str, host: str) -> tuple[str, str] | None:
    """The pair in --cert-dir, made there when it is missing."""
    if not folder:
        return None
    cert, key = Path(folder, f"{PAIR_NAME}.crt"), Path(folder, f"{PAIR_NAME}.key")
    if not (cert.exists() and key.exists()):
        made = _self_made(host)
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            key.touch(mode=0o600)
            key.write_bytes(made.key)
            cert.write_bytes(made.certificate)
        except OSError as error:
            raise MooringError(f"--cert-dir {folder}: {error.strerror}; name a folder to write to") from error
    return str(cert), str(key)


def _text(path: str, flag: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise MooringError(f"{flag} {path}: {error}") from error
