"""The embedded cluster as `moorage up` starts it, without its scheduler: the other world of the scenarios."""

from __future__ import annotations

import base64
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import Api, ApiProblem
from tests.cluster.processes import Daemon

START_SECONDS = 60.0


class EmbeddedPlane:
    """One `moorage up` with no nodes; tests make their own."""

    kind = "embedded"

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "embedded.kubeconfig"
        command = [
            sys.executable, "-m", "moorage", "up", "--no-scheduler", "--nodes=0", "--port=0",
            f"--kubeconfig={self.kubeconfig}",
        ]  # fmt: skip
        self._folder = folder
        self._process = Daemon("moorage-up", command, folder)
        self.api: Api

    def start(self) -> None:
        self._process.start()
        self._process.wait_until(self._ready, START_SECONDS)

    def stop(self) -> None:
        self._process.stop()
        if hasattr(self, "api"):
            self.api.close()

    def _ready(self) -> bool:
        if not self.kubeconfig.exists():
            return False
        try:
            self.api = api_of(self.kubeconfig, self._folder)
            self.api.request("GET", "/readyz")
        except (OSError, ApiProblem, yaml.YAMLError, KeyError, TypeError):
            return False
        return True


def api_of(kubeconfig: Path, folder: Path) -> Api:
    """A client for the only context of a kubeconfig."""
    content = yaml.safe_load(kubeconfig.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    authority = _file(cluster, "certificate-authority", folder)
    context = ssl.create_default_context(cafile=str(authority))
    if "client-certificate-data" in user or "client-certificate" in user:
        context.load_cert_chain(_file(user, "client-certificate", folder), _file(user, "client-key", folder))
    return Api(cluster["server"], context, user.get("token", ""))


def _file(section: dict[str, Any], key: str, folder: Path) -> Path:
    """A PEM file: named by the kubeconfig, or written from what it holds."""
    if key in section:
        return Path(section[key])
    path = folder / f"{key}.pem"
    path.write_bytes(base64.b64decode(section[f"{key}-data"]))
    return path


@contextmanager
def running_embedded(folder: Path) -> Iterator[EmbeddedPlane]:
    plane = EmbeddedPlane(folder)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
