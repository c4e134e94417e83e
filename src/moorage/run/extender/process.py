"""The process behind `moorage extender`: informers and verbs on one loop, until a signal ends it.

It holds no lease: what it answers depends on the cluster alone, so any number of replicas may be asked.
"""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import time
from collections.abc import Callable
from typing import Any

import uvloop
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from moorage.api.resources import NODES, PODS
from moorage.app import gc_tuning
from moorage.app.clock import SystemClock
from moorage.app.scheduler import Scheduler
from moorage.client import connection
from moorage.client.connection import connect, default_user_agent
from moorage.client.http_client import HttpClient
from moorage.endpoints.health import PING, Check, Health, exposition, health_routes
from moorage.run import gauges
from moorage.run.comparer import Comparer
from moorage.run.endpoints import REFRESH_SECONDS
from moorage.run.extender.application import ServerMetrics, extender_app
from moorage.run.extender.options import ExtenderOptions
from moorage.run.extender.selecting import ServedProfile
from moorage.run.extender.verbs import ExtenderVerbs
from moorage.run.watchdog import FAILED, OK, Heart, Signals, Watchdog
from moorage.serving.certificates import ServingCertificate
from moorage.serving.connections import Connection, ConnectionLimits
from moorage.serving.server import Listener
from moorage.telemetry import logs
from moorage.telemetry.instruments import Exposed
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

LIMITS = ConnectionLimits(connections=1024, head_seconds=10.0)
"""kube-scheduler has a connection for each bind under way, and all come from one address."""
NOT_SYNCED = "the caches of the extender have not synced yet; try again"


class ExtenderProcess:
    """One run. `run` returns the exit code."""

    def __init__(self, served: ServedProfile, options: ExtenderOptions) -> None:
        self._served = served
        self._options = options
        self._clock = SystemClock()
        self._metrics, self._requests = SchedulerMetrics(time.monotonic), ServerMetrics()
        self._synced = False

    async def run(self) -> int:
        self._options.check(self._served.verbs)
        self._ended: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        heart = Heart(self._clock.now, self._metrics.loop_lag.child().observe)
        watchdog = Watchdog(heart, self._metrics)
        self._signals = Signals(self._on_signal, watchdog)
        heart.start()
        watchdog.start()
        try:
            return await self._run()
        finally:
            watchdog.stop()
            heart.stop()
            self._signals.remove()

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
        return connect(credentials, self._clock, qps=chosen.qps, burst=chosen.burst, user_agent=agent)

    async def _serve(
        self, listener: Listener, certificate: ServingCertificate | None, client: HttpClient
    ) -> int:
        scheduler = Scheduler(
            client,
            config=self._served.configuration,
            clock=self._clock,
            flush_after=None,
            metrics=self._metrics,
            streaming_lists=True,
        )
        verbs = ExtenderVerbs(scheduler.engine, self._served.verbs)
        work = [asyncio.create_task(self._follow(scheduler, verbs, client), name="follow")]
        if certificate is not None:
            work.append(asyncio.create_task(_refresh(certificate), name="certificate"))
        for task in work:
            task.add_done_callback(self._on_end)
        try:
            await listener.start(self._app(scheduler, verbs))
            url = dataclasses.replace(self._options, port=listener.port).url
            plugins = " ".join(self._served.plugins)
            _log.info(0, "Serving as an extender", plugins=plugins, verbs=" ".join(verbs.served), url=url)
            code, reason = await self._ended
            _log.info(0, "Stopping", reason=reason)
            return code
        finally:
            await listener.stop()
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            await scheduler.stop()

    def _certificate(self) -> ServingCertificate | None:
        options = self._options
        if not options.has_tls:
            return None
        if not options.client_ca_file and not options.is_loopback:
            _log.warning(
                "Any client that reaches the port may ask the verbs; --client-ca-file restricts that"
            )
        return ServingCertificate(
            cert_file=options.cert_file,
            key_file=options.key_file,
            host=options.bind_address,
            client_ca_file=options.client_ca_file,
        )

    async def _follow(self, scheduler: Scheduler, verbs: ExtenderVerbs, client: HttpClient) -> None:
        """Follow the cluster until cancelled."""
        await scheduler.follow()
        verbs.start_plugins()
        gc_tuning.settle()
        self._synced = True
        _log.info(0, "Caches are synced")
        engine, informers = scheduler.engine, scheduler.informers.informers
        comparer = Comparer(engine, informers[PODS], informers[NODES], client, self._clock, self._metrics)
        async with asyncio.TaskGroup() as group:
            group.create_task(comparer.run())
            group.create_task(gc_tuning.run(self._clock, lambda: not len(engine.inbox)))

    def _app(self, scheduler: Scheduler, verbs: ExtenderVerbs) -> Starlette:
        registry, known = CollectorRegistry(), self._metrics
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
                ]
            )
        )
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)

        async def metrics(request: Request) -> Response:
            gauges.refresh(known, scheduler.engine, scheduler.recorder)
            return exposition(generate_latest(registry))

        synced = Check("informer-sync", self._not_ready)
        health = Health({"healthz": (PING,), "livez": (PING,), "readyz": (PING, synced)})
        return extender_app(
            verbs,
            not_ready=self._not_ready,
            needs_certificate=bool(self._options.client_ca_file),
            metrics=self._requests,
            routes=[*health_routes(health), Route("/metrics", metrics)],
        )

    def _not_ready(self) -> str:
        return "" if self._synced else NOT_SYNCED

    def _on_signal(self, received: signal.Signals) -> None:
        self._end(OK, f"signal {received.name}")

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("A part of the extender broke", error=error, stack=True, part=task.get_name())
            self._end(FAILED, f"{task.get_name()}: {error}")

    def _end(self, code: int, reason: str) -> None:
        if not self._ended.done():
            self._signals.ending = True
            self._ended.set_result((code, reason))


async def _refresh(certificate: ServingCertificate) -> None:
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        certificate.refresh()


def run(
    served: ServedProfile,
    options: ExtenderOptions,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> int:
    """Serve until a signal ends it; the exit code of the process."""
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(ExtenderProcess(served, options).run())
