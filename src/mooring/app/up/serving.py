"""The embedded cluster in one process: store, API server, controllers and kubelets, put together.

Runs in the child of `mooring up`; controllers and kubelets work on the store directly, everybody else comes
over HTTPS.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from mooring.api.resources import NAMESPACES, NODES
from mooring.app.clock import SystemClock
from mooring.app.up import pools
from mooring.app.up.applying import Applier
from mooring.app.up.messages import Orders, Ready
from mooring.embedded.admission.strict import StrictRules
from mooring.embedded.apiserver.app import ApiServer
from mooring.embedded.apiserver.authentication import Guard, Signer
from mooring.embedded.apiserver.server import HttpServer, new_token, offload
from mooring.embedded.catalog.builtin import built_in_catalog
from mooring.embedded.catalog.crds.registrar import Registrar
from mooring.embedded.catalog.discovery import Discovery
from mooring.embedded.catalog.metrics import Metrics
from mooring.embedded.catalog.openapi.endpoint import OpenApi
from mooring.embedded.catalog.printing.tables import table
from mooring.embedded.catalog.reviews import Reviews
from mooring.embedded.controllers.manager import ControllerManager
from mooring.embedded.controllers.namespaces import NAMESPACES as FIRST_NAMESPACES
from mooring.embedded.durable.opening import DataDir, open_data_dir
from mooring.embedded.http import ADMIN
from mooring.embedded.kubelet.kubelets import Kubelets
from mooring.embedded.kubelet.scripts import KubeletSettings
from mooring.serving.certificates import Authority, User
from mooring.store.local import LocalClient
from mooring.store.store import Store
from mooring.telemetry import logs

_log = logs.get(__name__)

_NODES_AT_ONCE = 200
"""Nodes made between two turns of the loop."""


class EmbeddedServer:
    """Everything but the scheduler. `start` says where it is; `stop` leaves a kept cluster complete."""

    def __init__(self, orders: Orders, kubelet: KubeletSettings | None = None) -> None:
        self._orders = orders
        self._clock = SystemClock()
        self._kept = _open(orders, self._clock)
        self.store: Store = self._kept.store if self._kept is not None else _in_memory(self._clock)
        self._random = random.Random()
        self._token = new_token()
        self._authority = Authority.new(self._clock.wall())
        self._client = LocalClient(self.store, self._clock)
        self._controllers = ControllerManager(self._client, self._clock, self._random)
        self._kubelets = Kubelets(
            self._client, self._clock, self._random, kubelet, caches=self._controllers.caches
        )
        self.catalog = built_in_catalog()
        self.app = self._application()
        self._http = HttpServer(
            self.app, host=orders.host, port=orders.port, tls=self._authority.server_context()
        )
        self._registrar: Registrar | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def _application(self) -> ApiServer:
        signer = Signer(secrets.token_bytes(32), self._clock.wall)

        def user_of(token: str) -> User | None:
            return (
                ADMIN if secrets.compare_digest(token.encode(), self._token.encode()) else signer.user(token)
            )

        return ApiServer(
            self.store,
            self.catalog,
            self._clock,
            guard=Guard(self._token, signer),
            signer=signer,
            endpoints=(
                Discovery(self.catalog),
                OpenApi(self.catalog),
                Metrics(self.store, self._kubelets.usage, self._clock.wall),
                Reviews(user_of),
            ),
            printer=table,
            offload=offload,
        )

    async def start(self) -> Ready:
        """Listens last: whoever is answered finds the nodes and objects that were asked for."""
        loop = asyncio.get_running_loop()
        self._http.reserve()
        self._registrar = Registrar(self.store, self.catalog, self._clock.wall, loop.call_soon)
        self._spawn(self._controllers.run(), "controllers")
        self._spawn(self._kubelets.run(), "kubelets")
        await self._controllers.wait_synced()
        await self._until_namespaces()
        await self._make_nodes()
        applied = await Applier(self.app, self.catalog, self._clock, self._token).apply(
            self._orders.objects, self._orders.objects_source
        )
        await self._http.start()
        return Ready(
            server=self._http.url,
            token=self._token,
            ca=self._authority.pem.certificate.decode(),
            nodes=len(self.store.every(NODES)),
            applied=applied,
        )

    async def stop(self) -> None:
        await self._http.stop()
        await self._kubelets.stop()
        await self._controllers.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._registrar is not None:
            self._registrar.close()
        if self._kept is not None:
            self._kept.close()

    async def _until_namespaces(self) -> None:
        while any(self.store.find(NAMESPACES, name) is None for name in FIRST_NAMESPACES):
            await asyncio.sleep(0.001)

    async def _make_nodes(self) -> None:
        if self._orders.only_if_empty and self.store.every(NODES):
            return
        for number, node in enumerate(pools.nodes(self._orders.pools), 1):
            if self.store.find(NODES, node["metadata"]["name"]) is None:
                self.store.create(NODES, node)
            if number % _NODES_AT_ONCE == 0:
                await asyncio.sleep(0)
        await self.store.settled()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        task.add_done_callback(_report)
        self._tasks.append(task)


def _open(orders: Orders, clock: SystemClock) -> DataDir | None:
    if not orders.data_dir:
        return None
    return open_data_dir(Path(orders.data_dir), clock.wall, rules=StrictRules())


def _in_memory(clock: SystemClock) -> Store:
    # Versions of two runs must not be mistaken for each other: a watch of the former run gets a 410.
    start = int(clock.wall())
    return Store(clock.wall, random.Random(secrets.randbits(128)), start_version=start, rules=StrictRules())


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("A part of the cluster ended", error=error, stack=True, part=task.get_name())
