"""The process behind `moorage extender`: informers and verbs on one loop, until a signal ends it.

It needs no lease: its answers depend on the cluster alone, so any number of replicas may serve.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable

import uvloop
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from moorage.app import gc_tuning
from moorage.app.reloading import ConfigurationSource
from moorage.app.scheduler import Scheduler
from moorage.client import connection
from moorage.client.connection import connect, default_user_agent
from moorage.client.http_client import HttpClient
from moorage.endpoints.health import PING, Check, Health, exposition, health_routes
from moorage.run import metrics as process_metrics
from moorage.run.endpoints import REFRESH_SECONDS, tasks_check
from moorage.run.extender.application import ServerMetrics, extender_app
from moorage.run.extender.options import ExtenderOptions
from moorage.run.extender.selecting import ServedProfile
from moorage.run.extender.verbs import ExtenderVerbs
from moorage.run.host import SchedulerHost
from moorage.serving.certificates import ServingCertificate
from moorage.serving.connections import Connection, ConnectionLimits
from moorage.serving.server import Listener
from moorage.telemetry import logs
from moorage.telemetry.instruments import Exposed

_log = logs.get(__name__)

LIMITS = ConnectionLimits(connections=1024, head_seconds=10.0)
"""kube-scheduler opens a connection for each running binding, all from one address."""
NOT_SYNCED = "the caches of the extender have not synced yet; try again"


class ExtenderProcess:
    """One run. `run` returns the exit code."""

    def __init__(
        self, served: ServedProfile, options: ExtenderOptions, source: ConfigurationSource | None = None
    ) -> None:
        self._served = served
        self._options = options
        self._source = source
        self._requests = ServerMetrics()
        self._synced = False

    async def run(self) -> int:
        self._options.check()
        self._host = SchedulerHost()
        self._host.take_signals(self._hung_up)
        self._host.watch()
        try:
            return await self._run()
        finally:
            await self._host.close()

    async def _run(self) -> int:
        certificate = self._certificate()
        listener = Listener(
            self._options.bind_address,
            self._options.port,
            certificate.context if certificate else None,
            limits=LIMITS,
            connection=Connection,
            flag="--port",
        )
        try:
            client = await self._connect()
            try:
                return await self._serve(listener, certificate, client)
            finally:
                await client.close()
        finally:
            await listener.stop()

    async def _connect(self) -> HttpClient:
        chosen = self._served.configuration.config.client_connection
        credentials = await connection.find(self._options.kubeconfig or chosen.kubeconfig)
        agent = default_user_agent("extender")
        return connect(credentials, self._host.clock, qps=chosen.qps, burst=chosen.burst, user_agent=agent)

    async def _serve(self, listener: Listener, certificate: ServingCertificate | None, client: HttpClient) -> int:
        host = self._host
        scheduler = host.make_scheduler(client, self._served.configuration, self._source, flush_after=None)
        if host.reloader is not None:
            host.reloader.sends_events = False  # it has no lease, and may not have the right
        verbs = ExtenderVerbs(scheduler.engine, self._served.verbs)
        host.run(self._follow(verbs), "follow", returns=True)
        if certificate is not None:
            host.run(_refresh(certificate), "certificate")
        try:
            await listener.start(self._app(scheduler, verbs))
            url = dataclasses.replace(self._options, port=listener.port).url
            plugins = " ".join(self._served.plugins)
            _log.info(0, "Serving as an extender", plugins=plugins, verbs=" ".join(verbs.served), url=url)
            return await host.until_ended()
        finally:
            await listener.stop()
            await host.stop()

    async def _follow(self, verbs: ExtenderVerbs) -> None:
        """Sync the caches, and answer the verbs from then on."""
        scheduler = self._host.scheduler
        await scheduler.follow()
        verbs.start_plugins()
        gc_tuning.settle()
        self._synced = True
        _log.info(0, "Caches are synced")
        self._host.run_comparer(lambda: not len(scheduler.engine.inbox))
        self._host.run_reloader()

    def _hung_up(self) -> None:
        if self._host.reloader is None or not self._synced:
            _log.warning("SIGHUP is ignored: there is no configuration to reload yet")
        else:
            self._host.reloader.request()

    def _certificate(self) -> ServingCertificate | None:
        options = self._options
        if not options.has_tls:
            return None
        return ServingCertificate(
            cert_file=options.cert_file,
            key_file=options.key_file,
            host=options.bind_address,
            client_ca_file=options.client_ca_file,
        )

    def _app(self, scheduler: Scheduler, verbs: ExtenderVerbs) -> Starlette:
        registry, known = CollectorRegistry(), self._host.metrics
        registry.register(
            Exposed(
                [
                    *self._requests.families(),
                    known.plugin_failures,
                    known.plugin_run_failures,
                    known.slow_hooks,
                    known.loop_lag,
                    known.malformed,
                    known.cache_size,
                    known.corrections,
                    known.rewinds,
                    known.config_reloads,
                    known.config_generation,
                ]
            )
        )
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)

        async def metrics(request: Request) -> Response:
            process_metrics.refresh(known, scheduler.engine, scheduler.recorder)
            return exposition(generate_latest(registry))

        synced = Check("informer-sync", self._not_ready)
        alive = (PING, tasks_check(lambda: self._host.failure))
        health = Health({"healthz": alive, "livez": alive, "readyz": (*alive, synced)})
        return extender_app(
            verbs,
            not_ready=self._not_ready,
            needs_certificate=bool(self._options.client_ca_file),
            metrics=self._requests,
            routes=[*health_routes(health), Route("/metrics", metrics)],
        )

    def _not_ready(self) -> str:
        return "" if self._synced else NOT_SYNCED


async def _refresh(certificate: ServingCertificate) -> None:
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        certificate.refresh()


def run(
    served: ServedProfile,
    options: ExtenderOptions,
    source: ConfigurationSource | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> int:
    """Serve until a signal ends it, with the configuration of `source` as it changes. Returns the exit code of the
    process."""
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(ExtenderProcess(served, options, source).run())
