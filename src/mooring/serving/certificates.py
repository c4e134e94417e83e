"""Certificates that the server makes for itself: an authority, its own certificate, and those of clients.

The authority is new with each start unless its PEM text is handed in; a kubeconfig carries its certificate,
so nobody has to trust it beyond that.
"""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LIFETIME = timedelta(days=365)
_EARLIER = timedelta(hours=1)
"""Certificates begin in the past, for clients whose clocks are behind."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as PEM text."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class User:
    """Who sends a request, as a client certificate names them, or a token."""

    name: str
    groups: tuple[str, ...] = ()


class Authority:
    """Signs certificates. `wall` is the time in Unix seconds that they count from."""

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
        name = _name("mooring-ca")
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
        """For a server that is reached by these names or addresses."""
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        return self._issue(_name("mooring-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: User) -> Certificate:
        """For a client that is this user: the name is the common name, the groups are organizations."""
        return self._issue(_name(user.name, user.groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, *more: x509.SubjectAlternativeName
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _begin(subject, self._certificate.subject, key.public_key(), self._wall)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        for extension in more:
            builder = builder.add_extension(extension, critical=False)
        return _pem(builder.sign(self._key, hashes.SHA256()), key)

    def server_context(self, names: Iterable[str] = LOOPBACK) -> ssl.SSLContext:
        """TLS for the server: its own certificate, and certificates of clients if they have one of ours."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_verify_locations(cadata=self.pem.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        load(context, self.server(names))
        return context


def load(context: ssl.SSLContext, pem: Certificate) -> None:
    """Gives a context its certificate: by way of a private file, since the ssl module reads nothing else."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "chain.pem")
        path.touch(mode=0o600)
        path.write_bytes(pem.key + pem.certificate)
        context.load_cert_chain(path)


def user_of(peer: object) -> User | None:
    """The user in a verified certificate, in the form that `ssl` gives; None without one."""
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
