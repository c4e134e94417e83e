"""Fresh certificates and kubeconfig files: one authority per control plane, valid for a day."""

from __future__ import annotations

import datetime
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOSTS = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two PEM files."""

    cert: Path
    key: Path


class Authority:
    """Signs everything of one control plane."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("moorage-test-ca")
        self.certificate = (
            self._begin(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "ca.crt"
        self.file.write_bytes(_pem(self.certificate))

    def server(self, name: str) -> KeyPair:
        """For servers on loopback."""
        names = [x509.DNSName(host) for host in HOSTS]
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        service = x509.IPAddress(ipaddress.ip_address("10.0.0.1"))
        return self._issue(name, "", ExtendedKeyUsageOID.SERVER_AUTH, [*names, address, service])

    def client(self, user: str, group: str = "") -> KeyPair:
        return self._issue(user, group, ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(self, name: str, group: str, usage: x509.ObjectIdentifier, hosts: list[x509.GeneralName]) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._begin(_name(name, group), key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        file = name.replace(":", "-")
        pair = KeyPair(self.folder / f"{file}.crt", self.folder / f"{file}.key")
        pair.cert.write_bytes(_pem(signed))
        _write_key(pair.key, key)
        return pair

    def _begin(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=1))
        )


def signing_key(folder: Path) -> KeyPair:
    """The key that signs service account tokens; `cert` is its public half."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pair = KeyPair(folder / "service-account.pub", folder / "service-account.key")
    _write_key(pair.key, key)
    pair.cert.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return pair


def write_kubeconfig(path: Path, server: str, authority: Path, *, pair: KeyPair | None = None, token: str = "") -> Path:
    """A kubeconfig with one context; JSON is YAML."""
    user: dict[str, str] = {"token": token} if token else {}
    if pair is not None:
        user = {"client-certificate": str(pair.cert), "client-key": str(pair.key)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path.write_text(json.dumps(content))
    path.chmod(0o600)
    return path


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    path.chmod(0o600)
