"""`moorage run` as a process of its own, as an operator would start it."""

from __future__ import annotations

import json
import os
import re
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.cluster.processes import Daemon, free_port, with_free_ports

ROOT = Path(__file__).resolve().parents[2]
PATHS = os.pathsep.join((str(ROOT), str(ROOT / "src")))
"""The tests' own plugins, and the code of this checkout, whichever is installed."""
START_SECONDS = 60.0
LEASE = "moorage"
NAMESPACE = "moorage"
LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 15.0, 10.0, 2.0
"""These values are the same in all tests."""


class MoorageProcess(Daemon):
    """One replica."""

    def __init__(self, folder: Path, name: str, kubeconfig: Path, config: dict[str, Any], *arguments: str) -> None:
        file = folder / f"{name}.yaml"
        file.write_text(json.dumps(config))
        command = [
            sys.executable,
            "-m",
            "moorage",
            "--v=3",
            "run",
            f"--config={file}",
            f"--kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--leader-elect-resource-name={LEASE}",
            f"--leader-elect-resource-namespace={NAMESPACE}",
            *arguments,
        ]
        super().__init__(name, command, folder, {"PYTHONPATH": PATHS, "PYTHONUNBUFFERED": "1"})
        self._flags = self.command
        self.take_port()

    def take_port(self) -> None:
        self.port = free_port()
        self.command = [*self._flags, f"--secure-port={self.port}"]

    def start_ready(self) -> None:
        """Start and wait until it says that it is ready, so synced; a leader schedules from then on."""
        with_free_ports(self._start_ready)

    def _start_ready(self) -> None:
        self.take_port()
        self.start()
        self.wait_until(lambda: self.healthy("/readyz"), START_SECONDS)

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def healthy(self, path: str) -> bool:
        try:
            return self.get(path)[0] == 200
        except OSError:
            return False

    def get(self, path: str, token: str = "", sent: str | None = None) -> tuple[int, str]:
        """(status, text) of an endpoint; `sent` is posted to it, as YAML."""
        body = None if sent is None else sent.encode()
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", body)
        request.add_header("Content-Type", "application/yaml")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        context = ssl._create_unverified_context()  # its certificate is its own
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str, token: str, **labels: str) -> float:
        """The sum over all samples of a metric that have these labels."""
        status, text = self.get("/metrics", token)
        assert status == 200, f"/metrics answered {status}: {text[:300]}"
        total = 0.0
        for line in text.splitlines():
            found = re.match(rf"{re.escape(name)}(?:\{{(.*)\}})? (\S+)", line)
            if found and all(f'{key}="{value}"' in (found[1] or "") for key, value in labels.items()):
                total += float(found[2])
        return total
