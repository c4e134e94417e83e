"""The embedded cluster in one process: store, API server, controllers and kubelets, put together.

Runs in the child of `moorage up`; controllers and kubelets work on the store directly, all others come over
HTTPS. Manifests are applied as kubectl would: created, or patched to what the file says.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.resources import NAMESPACES, NODES
from moorage.app.clock import SystemClock
from moorage.client.transport import Request
from moorage.contrib.topology_match.topology import DEFINITION
from moorage.embedded.admission.strict import StrictRules
from moorage.embedded.apiserver.app import ApiServer
from moorage.embedded.apiserver.authentication import Guard, Signer
from moorage.embedded.apiserver.in_process import AsgiTransport
from moorage.embedded.apiserver.server import HttpServer, new_token, offload
from moorage.embedded.catalog.builtin import built_in_catalog
from moorage.embedded.catalog.crds.registrar import Registrar
from moorage.embedded.catalog.discovery import Discovery
from moorage.embedded.catalog.kinds import Catalog, Served
from moorage.embedded.catalog.metrics import Metrics
from moorage.embedded.catalog.openapi.endpoint import OpenApi
from moorage.embedded.catalog.printing.tables import table
from moorage.embedded.catalog.reviews import Reviews
from moorage.embedded.controllers.manager import ControllerManager
from moorage.embedded.controllers.namespaces import NAMESPACES as FIRST_NAMESPACES
from moorage.embedded.durable.opening import DataDir, open_data_dir
from moorage.embedded.http import ADMIN
from moorage.embedded.kubelet.kubelets import Kubelets
from moorage.embedded.kubelet.scripts import KubeletSettings
from moorage.framework.ports import Clock, PatchType
from moorage.serving.certificates import Authority, User
from moorage.store.local import LocalClient
from moorage.store.store import Store
from moorage.telemetry import logs
from moorage.up import pools
from moorage.up.loading import SnapshotLoader
from moorage.up.numa import TopologyPublisher
from moorage.up.process import Orders, Ready

_HOST = "127.0.0.1"
_PATIENCE = 2.0
"""Seconds that a kind may take to be served after its CustomResourceDefinition."""
_LIMIT = 16 << 20
_log = logs.get(__name__)
_NODES_AT_ONCE = 200
"""Nodes made between two turns of the loop."""


class Applier:
    """Speaks to the application in process; the objects pass the same checks as those of any client."""

    def __init__(self, app: ApiServer, catalog: Catalog, clock: Clock, token: str) -> None:
        self._catalog = catalog
        self._clock = clock
        headers = {"Authorization": f"Bearer {token}"}
        self._transport = AsgiTransport(app, clock, headers=headers, host=_HOST)

    async def apply(self, objects: Sequence[dict[str, Any]], source: str) -> list[str]:
        """What became of each object; a MoorageError names the first that is refused, and why."""
        return [await self._apply_one(obj, source) for obj in objects]

    async def _apply_one(self, obj: dict[str, Any], source: str) -> str:
        served = await self._served(obj, source)
        meta = obj["metadata"]
        path = _path(served, str(meta.get("namespace") or "default"))
        label = f"{_label(served)}/{meta.get('name') or meta['generateName']}"
        content = msgspec.json.encode(obj)
        status, body = await self._send("POST", path, content, "application/json")
        if status == 201:
            return f"{label} created"
        if status == 409:
            custom = served.rules is not None
            patch_type = PatchType.MERGE if custom else PatchType.STRATEGIC
            status, body = await self._send("PATCH", f"{path}/{meta['name']}", content, patch_type)
            if status == 200:
                return f"{label} configured"
        message = msgspec.json.decode(body).get("message", f"status {status}")
        raise MoorageError(f"{source}: {label} was refused: {message}")

    async def _served(self, obj: dict[str, Any], source: str) -> Served:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        deadline = self._clock.now() + _PATIENCE
        while (served := self._catalog.of_kind(group, version, str(obj["kind"]))) is None:
            if self._clock.now() > deadline:
                raise MoorageError(
                    f"{source}: the cluster has no kind {obj['kind']} in {obj['apiVersion']}; put its "
                    "CustomResourceDefinition first, or correct apiVersion and kind"
                )
            await asyncio.sleep(0.01)
        return served

    async def _send(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        request = Request(method, path, headers={"content-type": content_type}, body=body)
        async with self._transport.send(request) as response:
            return response.status, await response.read(_LIMIT)


def _path(served: Served, namespace: str) -> str:
    resource = served.resource
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    inside = f"/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}{inside}/{resource.plural}"


def _label(served: Served) -> str:
    """As kubectl names objects: `deployment.apps`, or `service` in the core group."""
    group = served.resource.group
    return f"{served.singular}.{group}" if group else served.singular


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
        self._publisher = (
            TopologyPublisher(self._controllers.caches, self._client, self._clock, orders.numa)
            if orders.numa
            else None
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
        # Before the controllers: none may find a set without its pods, or a claim without its volume.
        loader = SnapshotLoader(self.store, self.catalog)
        unserved = await loader.load(self._orders.snapshot)
        self._spawn(self._controllers.run(), "controllers")
        self._spawn(self._kubelets.run(), "kubelets")
        await self._controllers.wait_synced()
        await self._until_namespaces()
        await self._make_nodes()
        applier = Applier(self.app, self.catalog, self._clock, self._token)
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
