"""The server process of `moorage up`: store, API server, controllers and kubelets in one process.

Controllers and kubelets work on the store directly; all other clients use HTTPS. The process ends when its parent does.
"""

from __future__ import annotations

import asyncio
import gc
import random
import secrets
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from moorage.api.errors import MoorageError
from moorage.api.resources import NAMESPACES, NODES, STORAGE_CLASSES
from moorage.app.clock import SystemClock
from moorage.contrib.topology_match.topology import DEFINITION
from moorage.embedded.apiserver.app import ApiServer
from moorage.embedded.apiserver.authentication import ApiGuard, TokenSigner
from moorage.embedded.apiserver.server import HttpServer, new_token, offload
from moorage.embedded.builtin import CONTROLLERS, built_in_catalog, strict_rules
from moorage.embedded.catalog.crds.registrar import Registrar
from moorage.embedded.catalog.discovery import Discovery
from moorage.embedded.catalog.openapi.endpoint import OpenApi
from moorage.embedded.catalog.tables import table
from moorage.embedded.catalog.virtual import Metrics, Reviews
from moorage.embedded.controllers.controller import ControllerManager
from moorage.embedded.controllers.namespaces import NAMESPACES as FIRST_NAMESPACES
from moorage.embedded.durable.opening import DataDir, open_data_dir
from moorage.embedded.http import ADMIN
from moorage.embedded.kubelet.decisions import KubeletSettings
from moorage.embedded.kubelet.kubelets import Kubelets
from moorage.serving.certificates import Authority, User
from moorage.serving.server import PortInUse
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.telemetry import logs
from moorage.up import pools
from moorage.up.loading import Applier, SnapshotLoader
from moorage.up.numa import TopologyPublisher
from moorage.up.process import Answer, Orders, Ready, Refused, end_of_input

_log = logs.get(__name__)
_NODES_AT_ONCE = 200
_STORAGE_CLASS = {
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "moorage.dev/simulated",
    "volumeBindingMode": "WaitForFirstConsumer",
}
"""Nodes to create between two turns of the loop."""


class EmbeddedServer:
    """Everything but the scheduler. `stop` leaves a kept cluster complete."""

    def __init__(self, orders: Orders, kubelet: KubeletSettings | None = None) -> None:
        self._orders = orders
        self._clock = SystemClock()
        self._kept = _open(orders, self._clock)
        self.store: Store = self._kept.store if self._kept is not None else _in_memory(self._clock)
        self._random = random.Random()
        self._token = new_token()
        self._authority = Authority.new(self._clock.wall())
        self._client = LocalClient(self.store, self._clock)
        self._controllers = ControllerManager(self._client, self._clock, self._random, CONTROLLERS)
        self._kubelets = Kubelets(self._client, self._clock, self._random, kubelet, caches=self._controllers.caches)
        self._publisher = (
            TopologyPublisher(self._controllers.caches, self._client, self._clock, orders.numa) if orders.numa else None
        )
        self.catalog = built_in_catalog()
        self.app = self._application()
        self._http = HttpServer(self.app, host=orders.host, port=orders.port, tls=self._authority.server_context())
        self._registrar: Registrar | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self.lost_part: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when a controller, the kubelets or another part has ended by itself; its name."""

    def _application(self) -> ApiServer:
        signer = TokenSigner(secrets.token_bytes(32), self._clock.wall)

        def user_of(token: str) -> User | None:
            return ADMIN if secrets.compare_digest(token.encode(), self._token.encode()) else signer.user(token)

        return ApiServer(
            self.store,
            self.catalog,
            self._clock,
            guard=ApiGuard(self._token, signer),
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
        """Start everything. It listens last, so that clients find all nodes and objects."""
        loop = asyncio.get_running_loop()
        self._http.reserve()
        self._registrar = Registrar(self.store, self.catalog, self._clock.wall, loop.call_soon)
        # Before the controllers: they must not find a set without its pods, or a claim without its volume.
        loader = SnapshotLoader(self.store, self.catalog)
        unserved = await loader.load(self._orders.snapshot)
        self._spawn(self._controllers.run(), "controllers")
        self._spawn(self._kubelets.run(), "kubelets")
        await self._controllers.wait_synced()
        await self._until_namespaces()
        await self._make_nodes()
        self._make_storage_class()
        applier = Applier(self.app, self.catalog, self._clock)
        if self._publisher is not None:
            await applier.apply([dict(DEFINITION)], "--numa")
            self._spawn(self._publisher.run(), "publisher of zones")
        applied = await applier.apply(self._orders.objects, self._orders.objects_source)
        if self._orders.snapshot:
            loader.give_up(await loader.load(unserved))
            applied = [f"{self._orders.snapshot_source}: {loader.summary()}", *applied]
        await self._http.start()
        pair = self._authority.server()
        return Ready(
            server=self._http.url,
            token=self._token,
            ca=self._authority.pem.certificate.decode(),
            certificate=pair.certificate.decode(),
            key=pair.key.decode(),
            nodes=len(self.store.every(NODES)),
            first=[
                obj["metadata"]["uid"]
                for resource in {served.stored for served in self.catalog.all()}
                for obj in self.store.every(resource)
            ],
            applied=applied,
            warnings=[f"{self._orders.snapshot_source}: {text}" for text in loader.warnings()],
        )

    async def stop(self) -> None:
        self._stopping = True
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

    def _make_storage_class(self) -> None:
        """Create the default class of a new cluster. A snapshot has its own classes, or none."""
        if not self._orders.snapshot and not self.store.every(STORAGE_CLASSES):
            self.store.create(STORAGE_CLASSES, _STORAGE_CLASS)

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
        task.add_done_callback(self._part_ended)
        self._tasks.append(task)

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """Report a part that ended before `stop`. A cluster that lacks one would wait for it for ever."""
        error = None if task.cancelled() else task.exception()
        if self._stopping or self.lost_part.done():
            return
        _log.error("A part of the cluster ended", error=error, stack=True, part=task.get_name())
        self.lost_part.set_result(task.get_name())


def _open(orders: Orders, clock: SystemClock) -> DataDir | None:
    if not orders.data_dir:
        return None
    return open_data_dir(Path(orders.data_dir), clock.wall, rules=strict_rules())


def _in_memory(clock: SystemClock) -> Store:
    # Versions of two runs must not be confused: a watch of the previous run gets a 410.
    start = int(clock.wall())
    return Store(clock.wall, random.Random(secrets.randbits(128)), start_version=start, rules=strict_rules())


def main() -> int:
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    logs.setup(orders.verbosity, orders.logging_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(orders))


async def _serve(orders: Orders) -> int:
    parent_gone = asyncio.ensure_future(end_of_input())
    server: EmbeddedServer | None = None
    try:
        server = EmbeddedServer(orders)
        _say(await server.start())
    except MoorageError as error:
        _say(Refused(str(error), port_in_use=isinstance(error, PortInUse)))
        if server is not None:
            await server.stop()
        return 1
    _calm_collector()
    reasons: set[asyncio.Future[Any]] = {parent_gone, server.lost_part}
    await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
    await server.stop()
    return 0 if parent_gone.done() else 1


def _calm_collector() -> None:
    """Objects of the store are plain JSON without reference cycles. Scanning them again and again finds
    nothing, and stops the server for a long time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 1000)


def _say(answer: Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
