"""Where the extender listens and how it is reached: the options, the check of them, and the block for
kube-scheduler's configuration."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from moorage.api import yaml_text
from moorage.api.errors import MoorageError
from moorage.run.extender.selecting import ServedProfile

PORT = 8888
HTTP_TIMEOUT = "5s"
FILES = "/etc/kubernetes/moorage-extender"
"""Where the block expects certificates, on the machine of kube-scheduler."""


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """Plain HTTP on loopback, unless a certificate is given or asked for; beyond loopback always HTTPS."""

    kubeconfig: str = ""
    bind_address: str = "127.0.0.1"
    port: int = PORT
    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    """PEM; then the verbs are for clients with a certificate of these authorities."""

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

    def check(self, verbs: Collection[str]) -> None:
        """Raise a MoorageError that names the option and the way out."""
        try:
            ipaddress.ip_address(self.bind_address)
        except ValueError:
            raise MoorageError(
                f"--bind-address: {self.bind_address!r} is no address; write 127.0.0.1, ::1 or another one"
            ) from None
        if not 0 <= self.port <= 65535:
            raise MoorageError(f"--port: {self.port} is no port; write a number from 0 to 65535")
        if bool(self.cert_file) != bool(self.key_file):
            raise MoorageError("--tls-cert-file and --tls-private-key-file go together: set both or none")
        if "bind" in verbs and not self.is_loopback and not self.client_ca_file:
            raise MoorageError(
                f"--bind-address: any client that reaches {self.bind_address} could bind pods by the verb "
                "bind; set --client-ca-file, or listen on 127.0.0.1"
            )


def config_block(served: ServedProfile, options: ExtenderOptions, url: str = "") -> str:
    """`extenders:` for kube-scheduler, which reaches the extender by `url`; without, by its own address."""
    found = urlsplit(url or options.url)
    if found.scheme not in ("http", "https") or not found.netloc:
        raise MoorageError(f"--url: {url!r} is no address; write http://host:port or https://host:port")
    if not url and ipaddress.ip_address(options.bind_address).is_unspecified:
        raise MoorageError(
            f"--bind-address: {options.bind_address} is no address to connect to; "
            "set --url to the one by which kube-scheduler reaches the extender"
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
