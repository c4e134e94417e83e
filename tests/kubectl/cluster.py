"""The cluster of `moorage up` for kubectl: API server over HTTPS, stand-ins, and the scheduler beside them.

It runs in a thread of its own with its own loop, so that tests can wait for kubectl in the ordinary way. Pods
start and stop in hundredths of a second.
"""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import msgspec

from moorage.api import resources
from moorage.app.clock import SystemClock
from moorage.app.scheduler import Scheduler
from moorage.client.connection import connect
from moorage.client.credentials import Credentials, Pem
from moorage.embedded.kubelet.decisions import KubeletSettings
from moorage.store.store import Store
from moorage.up import kubeconfig
from moorage.up.pools import Pool
from moorage.up.process import Orders
from moorage.up.server import EmbeddedServer

NODES = ("node-0", "node-1", "node-2")
_POOL = Pool(name="node", count=len(NODES), zones=["a", "b", "c"])
_QUICK = KubeletSettings(
    start_seconds=(0.01, 0.05), init_seconds=0.01, stop_seconds=0.05, job_run_seconds=0.2, usage_noise=0.0
)
_START_SECONDS = 30.0


class Cluster:
    """`start` returns when the API answers and the nodes are ready; `stop` when nothing runs any more."""

    def __init__(
        self,
        kubeconfig_path: Path,
        config: Path | str | None = None,
        capacity: dict[str, str | int] | None = None,
        numa: int = 0,
    ) -> None:
        self.kubeconfig = kubeconfig_path
        self._config = config
        """Of the scheduler; without, the default profile."""
        self._orders = Orders(pools=[msgspec.structs.replace(_POOL, capacity=capacity or {})], numa=numa)
        self._up = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._store: Store | None = None
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name="embedded cluster", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._up.wait(_START_SECONDS):
            raise TimeoutError(f"the cluster was not up after {_START_SECONDS:g} seconds")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_START_SECONDS)

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self._failure = error
        finally:
            self._up.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        clock = SystemClock()
        server = EmbeddedServer(self._orders, _QUICK)
        self._store = server.store
        ready = await server.start()
        ca = ready.ca.encode()
        kubeconfig.write(self.kubeconfig, kubeconfig.text(ready.server, ready.token, ca))
        credentials = Credentials(server=ready.server, source="test", ca=Pem(data=ca), token=ready.token)
        client = connect(credentials, clock, qps=1000.0, burst=1000)
        try:
            async with Scheduler(client, config=self._config, clock=clock, random=random.Random(1)):
                await self._nodes_ready()
                self._up.set()
                await self._stop.wait()
        finally:
            await client.close()
            await server.stop()

    async def _nodes_ready(self) -> None:
        while not all(self._is_ready(name) for name in NODES):
            await asyncio.sleep(0.01)

    def _is_ready(self, name: str) -> bool:
        assert self._store is not None
        status: dict[str, Any] = self._store.get(resources.NODES, name).raw.get("status") or {}
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())

    def make_namespace(self, name: str) -> None:
        async def make() -> None:
            assert self._store is not None
            self._store.create(resources.NAMESPACES, {"metadata": {"name": name}})

        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(make(), self._loop).result(_START_SECONDS)
