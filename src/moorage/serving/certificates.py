"""Certificates and the TLS contexts that use them.

An authority of this process signs certificates for servers and clients. The certificate of the endpoints is generated
at start, or read from files, which are reloaded when they change. The authority is new at each start unless its PEM
text is passed in; a kubeconfig contains its certificate, so clients need not trust it otherwise.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moorage.api import private_files
from moorage.api.errors import MoorageError
from moorage.telemetry import logs

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LIFETIME = timedelta(days=365)
_EARLIER = timedelta(hours=1)
"""Certificates are valid from a time in the past, for clients whose clocks are behind."""
_log = logs.get(__name__)
PAIR_NAME = "kube-scheduler"
"""The name of the files in --cert-dir, as in kube-scheduler."""
VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as PEM text."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class User:
    """The sender of a request, named by a client certificate or a token."""

    name: str
    groups: tuple[str, ...] = ()


class Authority:
    """Signs certificates. `wall` is the current time in Unix seconds."""

    def __init__(self, pem: Certificate, wall: float) -> None:
        self.pem = pem
        self._wall = wall
        self._certificate = x509.load_pem_x509_certificate(pem.certificate)
        key = serialization.load_pem_private_key(pem.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the authority must be an elliptic curve key")
        self._key = key

    @staticmethod
    def new(wall: float) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("moorage-ca")
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            _begin(name, name, key.public_key(), wall)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return Authority(_pem(certificate, key), wall)

    def server(self, names: Iterable[str] = LOOPBACK) -> Certificate:
        """Return a certificate for a server with these names or addresses."""
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        return self._issue(_name("moorage-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: User) -> Certificate:
        """Return a client certificate for a user: the common name is the name, organizations are the groups."""
        return self._issue(_name(user.name, user.groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, *more: x509.SubjectAlternativeName
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _begin(subject, self._certificate.subject, key.public_key(), self._wall)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        for extension in more:
            builder = builder.add_extension(extension, critical=False)
        return _pem(builder.sign(self._key, hashes.SHA256()), key)

    def server_context(self, names: Iterable[str] = LOOPBACK) -> ssl.SSLContext:
        """Return a context with a server certificate, which accepts client certificates of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_verify_locations(cadata=self.pem.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        load(context, self.server(names))
        return context


def load(context: ssl.SSLContext, pem: Certificate) -> None:
    """Load a certificate into a context, by way of a private file because the ssl module reads only files."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "chain.pem")
        path.touch(mode=0o600)
        path.write_bytes(pem.key + pem.certificate)
        context.load_cert_chain(path)


def user_of(peer: object) -> User | None:
    """Return the user in a verified certificate, in the form of the ssl module; None without one."""
    if not isinstance(peer, dict):
        return None
    pairs = [pair for part in peer.get("subject", ()) for pair in part]
    names = [value for field, value in pairs if field == "commonName"]
    groups = tuple(value for field, value in pairs if field == "organizationName")
    return User(names[0], (*groups, "system:authenticated")) if names else None


def _begin(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, wall: float
) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(wall, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _LIFETIME)
    )


def _name(common: str, organizations: Iterable[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Certificate:
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificate(certificate.public_bytes(encoding), private)


class ServingCertificate:
    """The certificate of the endpoints, and the context that uses it for new connections."""

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
        pair: Certificate | None = None,
    ) -> None:
        self.context = _context(min_version, cipher_suites)
        self._files = (cert_file, key_file) if cert_file else _in_folder(cert_dir, host)
        self._seen: tuple[float, float] | None = None
        if pair is not None:
            load(self.context, pair)
        elif self._files is None:
            _log.warning("Serving with a certificate generated for this run; set --tls-cert-file for a permanent one")
            load(self.context, _self_made(host))
        else:
            self._read()
        if client_ca_file:
            self.trust_clients(_text(client_ca_file, "--client-ca-file"))

    def trust_clients(self, bundle: str) -> None:
        """Also accept client certificates of these authorities (PEM)."""
        try:
            self.context.load_verify_locations(cadata=bundle)
        except (ssl.SSLError, ValueError) as error:
            raise MoorageError(f"the client CA is not a bundle of PEM certificates: {error}") from error
        self.context.verify_mode = ssl.CERT_OPTIONAL

    def refresh(self) -> bool:
        """Reload the files if they changed. Returns whether a new certificate is in use. If certificate and
        key do not match, for example while they are being replaced, the old pair stays in use."""
        if self._files is None:
            return False
        try:
            if self._stamp() == self._seen:
                return False
            self._read()
        except (MoorageError, OSError) as error:
            _log.error("Cannot use the new serving certificate; keeping the old one", error)
            return False
        _log.info(0, "Reloaded the serving certificate", file=self._files[0])
        return True

    def _stamp(self) -> tuple[float, float]:
        cert, key = self._files or ("", "")
        return os.stat(cert).st_mtime, os.stat(key).st_mtime

    def _read(self) -> None:
        cert, key = self._files or ("", "")
        try:
            stamp = self._stamp()
            # Try a separate context first: a failed load could leave half a pair behind.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
            self.context.load_cert_chain(cert, key)
        except (OSError, ssl.SSLError) as error:
            raise MoorageError(
                f"certificate {cert} and key {key}: {error.strerror or error}; expected a matching PEM pair"
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
            raise MoorageError(f"--tls-cipher-suites: none of {known} is supported here") from error
    return context


def openssl_name(suite: str) -> str:
    """Return the OpenSSL name of a TLS 1.2 suite with a Go name (TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)."""
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
    """Return the pair in --cert-dir, and create it if it is missing."""
    if not folder:
        return None
    cert, key = Path(folder, f"{PAIR_NAME}.crt"), Path(folder, f"{PAIR_NAME}.key")
    if not (cert.exists() and key.exists()):
        made = _self_made(host)
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            private_files.write(key, [made.key])
            cert.write_bytes(made.certificate)
        except OSError as error:
            raise MoorageError(f"--cert-dir {folder}: {error.strerror}; name a writable folder") from error
    return str(cert), str(key)


def _text(path: str, flag: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise MoorageError(f"{flag} {path}: {error}") from error
