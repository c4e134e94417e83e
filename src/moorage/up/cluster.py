"""A running embedded cluster: the process of the API server, and the scheduler in this one, over HTTPS."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.pod import DEFAULT_SCHEDULER_NAME
from moorage.api.versions import DEFAULT_BEHAVIOUR
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration
from moorage.app.scheduler import Scheduler
from moorage.client.connection import connect
from moorage.client.credentials import Credentials, Pem
from moorage.client.http_client import HttpClient
from moorage.endpoints.health import ENDPOINTS, PING, Health
from moorage.run.endpoints import loop_check, tasks_check
from moorage.run.host import SchedulerHost
from moorage.run.options import ServingOptions
from moorage.serving.certificates import Certificate
from moorage.serving.server import CannotListen, PortInUse
from moorage.up import kubeconfig
from moorage.up.cluster_plan import ClusterPlan
from moorage.up.process import Ready, ServerProcess, UiProcess

QPS, BURST = 5000.0, 10_000
"""The API server is our own, so there is no reason to be slow."""


@dataclass(frozen=True, slots=True)
class PodCounts:
    """The numbers of nodes and pods that the scheduler sees."""

    nodes: int = 0
    bound: int = 0
    pending: int = 0


class EmbeddedCluster:
    """`async with EmbeddedCluster(ClusterPlan.of()) as cluster:` runs a cluster. With `until_signal`, the
    process lives as long as the cluster and waits for `ended`."""

    def __init__(self, plan: ClusterPlan, *, until_signal: bool = False) -> None:
        self._plan = plan
        self._until_signal = until_signal
        self._process: ServerProcess | None = None
        self._host: SchedulerHost | None = None
        self._ui = UiProcess()
        self.scheduler: Scheduler | None = None
        self.kubeconfig = Path()

    @property
    def ready(self) -> Ready:
        assert self._process is not None
        return self._process.ready

    async def start(self) -> None:
        try:
            configuration = self._plan.configuration
            self._host = SchedulerHost(configuration.behaviour if configuration is not None else DEFAULT_BEHAVIOUR)
            self._process = await self._start_server()
            port = urlsplit(self.ready.server).port or 0
            self.kubeconfig = self._plan.kubeconfig_at(port)
            text = kubeconfig.text(self.ready.server, self.ready.token, self.ready.ca.encode())
            kubeconfig.write(self.kubeconfig, text)
            if self._plan.configuration is not None:
                await self._schedule(self._host, self._plan.configuration, port)
        except BaseException:
            await self.stop()
            raise

    async def _start_server(self) -> ServerProcess:
        try:
            return await ServerProcess.start(self._plan.orders)
        except PortInUse:
            if not self._plan.any_port_will_do:
                raise
        return await ServerProcess.start(msgspec.structs.replace(self._plan.orders, port=0))

    async def _schedule(self, host: SchedulerHost, configuration: Configuration, port: int) -> None:
        plan = self._plan
        self.scheduler = host.make_scheduler(self.connect(), configuration, plan.source, flush_after=plan.flush_after)
        self._serve(host, port)
        host.watch()
        if self._until_signal:
            # Before any plugin is called: signals must work even if a plugin never returns.
            host.take_signals()
        await self.scheduler.start()
        host.run_reloader()
        if plan.ui:
            # Last, so that its start does not slow ours down.
            await self._ui.start(self.endpoints, self.ready)

    def _serve(self, host: SchedulerHost, port: int) -> None:
        """Serve the endpoints on the port after the API server's, or on any free port. The API server reviews
        tokens."""
        health = Health(dict.fromkeys(ENDPOINTS, (PING, loop_check(host.heart), tasks_check(lambda: host.failure))))
        pair = Certificate(self.ready.certificate.encode(), self.ready.key.encode())
        options = ServingOptions(port=min(port + 1, 65535), skip_client_ca_lookup=True, configuration_changes=True)
        credentials = self._credentials()
        try:
            host.serve(options, health, credentials, credentials, pair=pair)
        except CannotListen:
            options = dataclasses.replace(options, port=0)
            host.serve(options, health, credentials, credentials, pair=pair)

    @property
    def endpoints(self) -> str:
        """Return the address of the scheduler's endpoints; empty without a scheduler."""
        found = self._host.endpoints if self._host is not None else None
        return f"https://127.0.0.1:{found.port}" if found is not None else ""

    def connect(self) -> HttpClient:
        """Return a new client of the cluster."""
        return connect(self._credentials(), SystemClock(), qps=QPS, burst=BURST)

    def _credentials(self) -> Credentials:
        return Credentials(
            server=self.ready.server, source="moorage up", ca=Pem(data=self.ready.ca.encode()), token=self.ready.token
        )

    async def stop(self) -> None:
        """Stop the scheduler before the API server: its bindings may still be running."""
        await self._ui.stop()
        if self.scheduler is not None and self._host is not None:
            self.scheduler = None
            await self._host.stop()
            await self._host.client.close()
        if self._process is not None:
            await self._process.stop()
        if self._host is not None:
            await self._host.close()

    async def ended(self) -> None:
        """Return when SIGINT or SIGTERM ends the cluster. Raises a MoorageError if the API server ended
        first. A second signal ends the process, and the API server with it, at once."""
        assert self._process is not None
        assert self._host is not None
        self._host.take_signals()
        gone = asyncio.ensure_future(self._process.ended())
        try:
            waiting: set[asyncio.Future[Any]] = {gone, self._host.ended}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not self._host.ended.done():
                raise MoorageError(f"the API server ended with exit code {gone.result()}; see its log above")
            code, reason = self._host.ended.result()
            if code:
                raise MoorageError(reason)
        finally:
            gone.cancel()

    def counts(self) -> PodCounts:
        if self.scheduler is None:
            return PodCounts(nodes=self.ready.nodes)
        engine = self.scheduler.engine
        return PodCounts(nodes=len(engine.cache.table.nodes()), bound=len(engine.cache), pending=len(engine.queue))

    def greeting(self) -> Iterator[str]:
        """Yield what happened, and what to type next."""
        yield from self.ready.applied
        yield from (f"Warning: {text}" for text in self.ready.warnings)
        profiles = " ".join(self.scheduler.engine.profiles) if self.scheduler is not None else "none"
        yield f"The cluster is up: {self.ready.nodes} nodes at {self.ready.server}, schedulers: {profiles}."
        if self._plan.orders.data_dir:
            yield f"Its data is kept in {self._plan.orders.data_dir}."
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
        """Yield commands whose pods this scheduler schedules."""
        if self.scheduler is None:
            yield "  moorage run      # in another terminal; no scheduler runs here"
        elif DEFAULT_SCHEDULER_NAME not in self.scheduler.engine.profiles:
            name = next(iter(self.scheduler.engine.profiles))
            spec = json.dumps({"spec": {"schedulerName": name}})
            yield f"  kubectl run web --image=nginx --overrides={shlex.quote(spec)}"
            return
        yield "  kubectl create deployment web --image=nginx --replicas=5"

    def farewell(self) -> str:
        kept = self._plan.orders.data_dir
        return f"The cluster is kept in {kept}." if kept else "The cluster is deleted. Use --data-dir to keep one."

    async def __aenter__(self) -> EmbeddedCluster:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
