"""A `moorage up` to look at, and its API server."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml


class Client:
    """The API server of a kubeconfig of `moorage up`."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self._server = config["clusters"][0]["cluster"]["server"]
        self._headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    def send(self, method: str, path: str, body: dict[str, Any], kind: str = "application/json") -> None:
        headers = {**self._headers, "Content-Type": kind}
        request = urllib.request.Request(f"{self._server}{path}", json.dumps(body).encode(), headers)
        request.method = method
        with urllib.request.urlopen(request, context=self._tls) as answer:
            assert answer.status < 300

    def get(self, path: str) -> Any:
        request = urllib.request.Request(f"{self._server}{path}", headers=self._headers)
        with urllib.request.urlopen(request, context=self._tls) as answer:
            return json.load(answer)

    def create_pod(self, name: str, **spec) -> None:
        spec = {"containers": [{"name": "main", "image": "app"}], **spec}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self.send("POST", "/api/v1/namespaces/default/pods", body)

    def label(self, node: str, **labels) -> None:
        body = {"metadata": {"labels": labels}}
        self.send("PATCH", f"/api/v1/nodes/{node}", body, "application/merge-patch+json")


class Cluster(Client):
    """`moorage up` with two nodes."""

    def __init__(self, folder: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
        self.kubeconfig = str(folder / "kubeconfig")
        options = ("--no-ui", "--nodes", "2", "--port", "0", "--kubeconfig", self.kubeconfig)
        self.process = start("up", *options)
        assert self.process.stdout is not None
        found = None
        while found is None:
            line = self.process.stdout.readline()
            assert line, self.process.communicate()
            found = re.search(r"--server (\S+)", line)
        self.scheduler = found[1]
        super().__init__(folder / "kubeconfig")

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)
