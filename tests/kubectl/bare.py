"""The embedded API server alone, without controllers, kubelets and scheduler, in a thread of its own."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from pathlib import Path

from moorage.api import resources
from moorage.app.clock import SystemClock
from moorage.embedded.apiserver.app import ApiServer
from moorage.embedded.apiserver.authentication import ApiGuard, TokenSigner
from moorage.embedded.apiserver.server import HttpServer, new_token
from moorage.embedded.builtin import built_in_catalog, strict_rules
from moorage.embedded.catalog.crds.registrar import Registrar
from moorage.embedded.catalog.discovery import Discovery
from moorage.embedded.catalog.openapi.endpoint import OpenApi
from moorage.embedded.catalog.tables import table
from moorage.embedded.catalog.virtual import Reviews
from moorage.serving.certificates import Authority
from moorage.store.store import Store
from moorage.up import kubeconfig

_SECONDS = 30.0


class BareServer:
    """Up from `start` to `stop`."""

    def __init__(self, kubeconfig_path: Path) -> None:
        self.kubeconfig = kubeconfig_path
        self._up, self._stop = threading.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._up.wait(_SECONDS):
            raise TimeoutError("the API server is not up")

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_SECONDS)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        store, catalog, clock = (
            Store(time.time, random.Random(1), rules=strict_rules()),
            built_in_catalog(),
            SystemClock(),
        )
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            store.create(resources.NAMESPACES, {"metadata": {"name": name}})
        registrar = Registrar(store, catalog, time.time, self._loop.call_soon)
        token, signer, authority = (new_token(), TokenSigner(b"secret" * 6, time.time), Authority.new(time.time()))
        app = ApiServer(
            store,
            catalog,
            clock,
            guard=ApiGuard(token, signer),
            signer=signer,
            endpoints=[Discovery(catalog), OpenApi(catalog), Reviews(signer.user)],
            printer=table,
        )
        server = HttpServer(app, tls=authority.server_context())
        await server.start()
        kubeconfig.write(self.kubeconfig, kubeconfig.text(server.url, token, authority.pem.certificate))
        self._up.set()
        await self._stop.wait()
        registrar.close()
        await server.stop()
