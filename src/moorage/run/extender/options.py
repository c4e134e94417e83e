"""Options of `moorage extender`, their check, and the block for the configuration of kube-scheduler."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from moorage.api import yaml_text
from moorage.api.errors import MoorageError
from moorage.run.extender.selecting import ServedProfile

PORT = 8888
HTTP_TIMEOUT = "5s"
FILES = "/etc/kubernetes/moorage-extender"
"""The folder of certificates on the machine of kube-scheduler."""


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """The extender uses HTTPS if it has a certificate or a client CA, or listens beyond loopback; else plain HTTP."""

    kubeconfig: str = ""
    bind_address: str = "127.0.0.1"
    port: int = PORT
    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    """PEM file; only clients with a certificate of these authorities may call the verbs. Needed beyond loopback."""

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.bind_address).is_loopback

    @property
    def has_tls(self) -> bool:
        return bool(self.cert_file or self.client_ca_file) or not self.is_loopback

    @property
    def url(self) -> str:
        host = f"[{self.bind_address}]" if ":" in self.bind_address else self.bind_address
        return f"{'https' if self.has_tls else 'http'}://{host}:{self.port}"

    def check(self) -> None:
        """Raise a MoorageError that names the wrong option and what to do."""
        try:
            ipaddress.ip_address(self.bind_address)
        except ValueError:
            raise MoorageError(
                f"--bind-address: {self.bind_address!r} is not an IP address; use 127.0.0.1 or ::1"
            ) from None
        if not 0 <= self.port <= 65535:
            raise MoorageError(f"--port: {self.port} is not a port; expected a number from 0 to 65535")
        if bool(self.cert_file) != bool(self.key_file):
            raise MoorageError("--tls-cert-file and --tls-private-key-file belong together: set both or none")
        if not self.is_loopback and not self.client_ca_file:
            raise MoorageError(
                f"--bind-address: any client that reaches {self.bind_address} could call the verbs; "
                "set --client-ca-file, or listen on 127.0.0.1"
            )


def config_block(served: ServedProfile, options: ExtenderOptions, url: str = "") -> str:
    """Return `extenders:` for kube-scheduler, which reaches the extender at `url`, or else at its own address."""
    found = urlsplit(url or options.url)
    if found.scheme not in ("http", "https") or not found.netloc:
        raise MoorageError(f"--url: {url!r} is not a URL; expected http://host:port or https://host:port")
    if not url and ipaddress.ip_address(options.bind_address).is_unspecified:
        raise MoorageError(
            f"--bind-address: clients cannot connect to {options.bind_address}; "
            "set --url to the address at which kube-scheduler reaches the extender"
        )
    extender: dict[str, Any] = {"urlPrefix": found.geturl()}
    extender |= {f"{verb}Verb": verb for verb in served.verbs}
    if "prioritize" in served.verbs:
        extender["weight"] = served.weight
    if found.scheme == "https":
        extender |= {"enableHTTPS": True, "tlsConfig": {"caFile": f"{FILES}/ca.crt"}}
        if options.client_ca_file:
            extender["tlsConfig"] |= {"certFile": f"{FILES}/tls.crt", "keyFile": f"{FILES}/tls.key"}
    extender |= {"nodeCacheCapable": True, "httpTimeout": HTTP_TIMEOUT}
    return yaml_text.dump({"extenders": [extender]})
