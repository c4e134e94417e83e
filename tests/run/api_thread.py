"""The embedded API server on a loopback port, in a thread, for processes that speak HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moorage.embedded.apiserver.server import HttpServer
from tests.embedded.apiserver.load import build

ROOT = Path(__file__).resolve().parents[2]


class ApiThread:
    """Started by `with`; objects are put and read by plain requests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        app, self.store, self.token = build()
        self._server = server = HttpServer(app)
        await server.start()
        self.url = server.url
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        await self._stop.wait()
        await server.stop()

    def __enter__(self) -> ApiThread:
        self._thread.start()
        assert self._started.wait(20)
        self.kubeconfig = self.folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            "users": [{"name": "test", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        self.kubeconfig.write_text(json.dumps(config))
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def do(self, call: Callable[[], object]) -> None:
        """On the server's own loop; returns when it is done."""
        assert self._loop is not None

        async def run() -> None:
            call()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)

    def cut(self) -> None:
        """Abort every connection."""
        self.do(self._server.reserve().abort_connections)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def add_node(self, name: str = "n") -> None:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        self.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        self.request(
            "PUT",
            f"/api/v1/nodes/{name}/status",
            {"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}},
        )

    def add_pod(self, name: str, **requests: str) -> None:
        spec = {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]}
        self.request("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})

    def node_of(self, name: str) -> str:
        pod = self.request("GET", f"/api/v1/namespaces/default/pods/{name}")
        return str(pod["spec"].get("nodeName", ""))

    def lease(self) -> dict[str, Any]:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
        found: dict[str, Any] = self.request("GET", path)["spec"]
        return found


class Running:
    """`moorage run` as a process; killed at the end if it still lives."""

    def __init__(self, api: ApiThread, *flags: str, plugin: str = "", config: str = "") -> None:
        self.log = api.folder / "moorage.log"
        if plugin:
            (api.folder / "plugin_under_test.py").write_text(plugin)
            flags = (*flags, f"--plugin-path={api.folder}")
        if config:
            file = api.folder / "config.yaml"
            file.write_text(config)
            flags = (*flags, f"--config={file}")
        command = [sys.executable, "-m", "moorage", "run", f"--kubeconfig={api.kubeconfig}", "-v=2", *flags]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=api.folder, env=environment, stderr=log, stdout=log)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)

    def cpu_seconds(self) -> float:
        """What the process has used of a processor."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def text(self) -> str:
        return self.log.read_text()

    def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s:\n{self.text()[-4000:]}"
            time.sleep(0.05)
