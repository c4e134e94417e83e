"""An embedded cluster that runs: the API server's process, and the scheduler here, joined over HTTPS."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.pod import DEFAULT_SCHEDULER_NAME
from moorage.app.clock import SystemClock
from moorage.app.reloading import Reloader
from moorage.app.scheduler import Scheduler
from moorage.client.connection import connect
from moorage.client.credentials import Credentials, Pem
from moorage.client.http_client import HttpClient
from moorage.endpoints.health import ENDPOINTS, PING, Health
from moorage.run.endpoints import Endpoints, loop_check, process_view
from moorage.run.options import ServingOptions
from moorage.run.watchdog import Heart, Signals, Watchdog
from moorage.serving.certificates import Certificate
from moorage.serving.server import PortInUse
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.up import kubeconfig
from moorage.up.cluster_plan import ClusterPlan
from moorage.up.process import Ready, ServerProcess, UiProcess

QPS, BURST = 5000.0, 10_000
"""The API server is our own: nothing is spared by being slow."""


@dataclass(frozen=True, slots=True)
class Counts:
    """As the scheduler sees the cluster."""

    nodes: int = 0
    bound: int = 0
    pending: int = 0


class EmbeddedCluster:
    """`async with EmbeddedCluster(ClusterPlan.of()) as cluster:`, up inside and gone after. `until_signal`:
    the process lives as long as the cluster, and waits for `ended`."""

    def __init__(self, plan: ClusterPlan, *, until_signal: bool = False) -> None:
        self._plan = plan
        self._until_signal = until_signal
        self._process: ServerProcess | None = None
        self._client: HttpClient | None = None
        self._stop = asyncio.Event()
        self._heart = Heart(SystemClock().now)
        self._watchdog = Watchdog(self._heart)
        self._signals: Signals | None = None
        self._reloading: asyncio.Future[None] | None = None
        self._endpoints: Endpoints | None = None
        self._ui = UiProcess()
        self.scheduler: Scheduler | None = None
        self.kubeconfig = Path()

    @property
    def ready(self) -> Ready:
        assert self._process is not None
        return self._process.ready

    async def start(self) -> None:
        try:
            self._process = await self._serve()
            port = urlsplit(self.ready.server).port or 0
            self.kubeconfig = self._plan.kubeconfig_at(port)
            text = kubeconfig.text(self.ready.server, self.ready.token, self.ready.ca.encode())
            kubeconfig.write(self.kubeconfig, text)
            if self._plan.configuration is not None:
                self._client = self.connect()
                metrics = SchedulerMetrics(time.monotonic)
                self.scheduler = Scheduler(
                    self._client,
                    config=self._plan.configuration,
                    flush_after=self._plan.flush_after,
                    metrics=metrics,
                    streaming_lists=True,
                )
                reloader = None
                if self._plan.source is not None:
                    reloader = Reloader(self.scheduler, self._plan.source, SystemClock(), metrics)
                self._show(self.scheduler, metrics, reloader, port)
                self._heart.start()
                self._watchdog.start()
                if self._until_signal:
                    # Before any plugin is called: one that never returns must not keep signals out.
                    self._take_signals()
                await self.scheduler.start()
                if reloader is not None:
                    self._reloading = asyncio.ensure_future(reloader.run())
                if self._plan.ui:
                    # Last, so that its start takes nothing from ours.
                    await self._ui.start(self.endpoints, self.ready)
        except BaseException:
            await self.stop()
            raise

    async def _serve(self) -> ServerProcess:
        try:
            return await ServerProcess.start(self._plan.orders)
        except PortInUse:
            if not self._plan.any_port_will_do:
                raise
        return await ServerProcess.start(msgspec.structs.replace(self._plan.orders, port=0))

    def _show(
        self, scheduler: Scheduler, metrics: SchedulerMetrics, reloader: Reloader | None, port: int
    ) -> None:
        """Serve the scheduler's endpoints on the port after the API server's, or on any that is free. The API
        server says whose tokens are good."""
        checks = (PING, loop_check(self._heart))
        health = Health(dict.fromkeys(ENDPOINTS, checks))
        view = process_view(
            scheduler, metrics, health, started=time.time(), reloader=reloader, flags={}, writable=True
        )
        pair = Certificate(self.ready.certificate.encode(), self.ready.key.encode())

        def listen(port: int) -> Endpoints:
            options = ServingOptions(port=port, skip_client_ca_lookup=True, configuration_changes=True)
            credentials = self._credentials()
            return Endpoints(options, view, credentials, credentials, pair=pair)

        try:
            self._endpoints = listen(min(port + 1, 65535))
        except MoorageError:
            self._endpoints = listen(0)
        self._endpoints.start()

    @property
    def endpoints(self) -> str:
        """The address of the scheduler's endpoints; empty without a scheduler."""
        return f"https://127.0.0.1:{self._endpoints.port}" if self._endpoints is not None else ""

    def connect(self) -> HttpClient:
        """A client of the cluster, for whoever started it."""
        return connect(self._credentials(), SystemClock(), qps=QPS, burst=BURST)

    def _credentials(self) -> Credentials:
        return Credentials(
            server=self.ready.server,
            source="moorage up",
            ca=Pem(data=self.ready.ca.encode()),
            token=self.ready.token,
        )

    async def stop(self) -> None:
        """The scheduler before what it talks to: it may have binds under way."""
        await self._ui.stop()
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.gather(self._reloading, return_exceptions=True)
        if self._endpoints is not None:
            await asyncio.to_thread(self._endpoints.stop)
        if self.scheduler is not None:
            await self.scheduler.stop()
            self.scheduler = None
        if self._client is not None:
            await self._client.close()
            self._client = None
        if self._process is not None:
            await self._process.stop()
        self._watchdog.stop()
        self._heart.stop()
        if self._signals is not None:
            self._signals.remove()

    async def ended(self) -> None:
        """Returns when SIGINT or SIGTERM asks for the end; a MoorageError when the API server went first. A
        second signal ends the process at once, and the API server with it."""
        assert self._process is not None
        self._take_signals()
        gone = asyncio.ensure_future(self._process.ended())
        asked = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({gone, asked}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not asked.done():
                raise MoorageError(f"the API server ended with exit code {gone.result()}; see its log above")
        finally:
            gone.cancel()
            asked.cancel()

    def _take_signals(self) -> None:
        if self._signals is None:
            self._signals = Signals(lambda received: self._stop.set(), self._watchdog)

    def counts(self) -> Counts:
        if self.scheduler is None:
            return Counts(nodes=self.ready.nodes)
        engine = self.scheduler.engine
        return Counts(
            nodes=len(engine.cache.table.nodes()),
            bound=len(engine.cache),
            pending=len(engine.queue),
        )

    def greeting(self) -> Iterator[str]:
        """What happened, and what to type next."""
        yield from self.ready.applied
        yield from (f"Warning: {text}" for text in self.ready.warnings)
        profiles = " ".join(self.scheduler.engine.profiles) if self.scheduler is not None else "none"
        yield f"The cluster is up: {self.ready.nodes} nodes at {self.ready.server}, schedulers: {profiles}."
        if self._plan.orders.data_dir:
            yield f"It is kept in {self._plan.orders.data_dir}."
        yield "In another terminal:\n"
        yield f"  export KUBECONFIG={self.kubeconfig.resolve()}"
        yield "  kubectl get nodes"
        yield from self._first_pods()
        yield "  kubectl get pods -o wide"
        if self.endpoints:
            yield f"  moorage explain pod/NAME --server {self.endpoints}"
            if not self._plan.ui:
                yield f"  moorage ui --server {self.endpoints}"
        yield ""
        if self._ui.line:
            yield f"{self._ui.line}\n"

    def _first_pods(self) -> Iterator[str]:
        """Commands whose pods are scheduled by what runs here."""
        if self.scheduler is None:
            yield "  moorage run      # in a terminal of its own; no scheduler runs here"
        elif DEFAULT_SCHEDULER_NAME not in self.scheduler.engine.profiles:
            name = next(iter(self.scheduler.engine.profiles))
            spec = json.dumps({"spec": {"schedulerName": name}})
            yield f"  kubectl run web --image=nginx --overrides={shlex.quote(spec)}"
            return
        yield "  kubectl create deployment web --image=nginx --replicas=5"

    def farewell(self) -> str:
        kept = self._plan.orders.data_dir
        return (
            f"The cluster is kept in {kept}." if kept else "The cluster is gone; --data-dir would keep one."
        )

    async def __aenter__(self) -> EmbeddedCluster:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
