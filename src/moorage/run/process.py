"""The process behind `moorage run`: starts the parts in order, waits for a reason to end, ends them in order.

    informers sync ─▶ lease won ─▶ cache proven new ─▶ scheduling ─▶ SIGTERM, or lease lost, or a bug
                                                                        │
              exit code ◀─ endpoints stop ◀─ lease released ◀─ events sent ◀─ binds drained

A replica that does not lead keeps its caches current and serves its endpoints.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import time
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from moorage.api.core import Lease
from moorage.api.resources import NODES, PODS
from moorage.app import gc_tuning
from moorage.app.clock import LeaseClock, SystemClock
from moorage.app.configuration import Configuration
from moorage.app.reloading import Reloader
from moorage.app.scheduler import Scheduler
from moorage.client import connection
from moorage.client.connection import connect, default_user_agent
from moorage.client.credentials import Credentials
from moorage.client.http_client import HttpClient
from moorage.client.lease import Fence, Terms
from moorage.endpoints.health import PING, Check, Health, ProcessView
from moorage.run import metrics as process_metrics
from moorage.run import takeover
from moorage.run.comparer import Comparer
from moorage.run.election import ElectionThread, make_candidate
from moorage.run.endpoints import Endpoints, loop_check, process_view
from moorage.run.metrics import RequestMeter
from moorage.run.options import RunOptions
from moorage.run.watchdog import FAILED, OK, Heart, Signals, Watchdog
from moorage.runtime.background import STEADY_SECONDS
from moorage.scheduler.engine import GRACE_SECONDS
from moorage.telemetry import logs, tracing
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

WATCHDOG_TOLERANCE = 20.0
"""Seconds after the end of a lease that was not given up, from which health fails."""
LOST_GRACE_SECONDS = 5.0
"""How long sent binds are waited for when the lease is lost: another replica leads by then, and whoever
restarts this one should not wait."""


class Process:
    """One run. `run` returns the exit code."""

    def __init__(self, configuration: Configuration, options: RunOptions) -> None:
        self._configuration = configuration
        self._config = configuration.config
        self._options = options
        self._clock = SystemClock()
        election = self._config.leader_election
        self._elects = election.leader_elect
        self._terms = Terms(election.lease_duration, election.renew_deadline, election.retry_period)
        now = LeaseClock().now
        self._fence = Fence(now, self._terms) if self._elects else Fence.open(now)
        self._metrics = SchedulerMetrics(time.monotonic)
        self._tracing = tracing.from_environment(os.environ, self._clock.now, self._clock.wall)
        self._heart = Heart(self._clock.now, self._metrics.loop_lag.child().observe)
        self._started = time.time()
        self._synced = False
        self._leads = False
        self._stopping = False
        self._lost = False
        """Whether the lease was lost, so that there is none to give back."""
        self._work: set[asyncio.Task[Any]] = set()
        self._election: ElectionThread | None = None
        self._endpoints: Endpoints | None = None
        self._reloader: Reloader | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[tuple[int, str]] = loop.create_future()
        self._won: asyncio.Future[Lease] = loop.create_future()
        watchdog = Watchdog(self._heart, self._metrics)
        self._signals = Signals(self._on_signal, watchdog, self._on_hangup)
        try:
            return await self._run(watchdog)
        finally:
            self._signals.remove()

    async def _run(self, watchdog: Watchdog) -> int:
        process_metrics.describe(self._metrics, self._options.gates)
        credentials = await self._credentials(self._options.kubeconfig)
        self._client = self._connect(credentials)
        try:
            self._scheduler = self._make_scheduler()
            if self._options.source is not None:
                self._reloader = Reloader(self._scheduler, self._options.source, self._clock, self._metrics)
            self._heart.start()
            watchdog.start()
            await self._serve(credentials)
            self._start(self._live(credentials), "start")
            code, reason = await self._ended
            _log.info(0, "Stopping", reason=reason)
            await self._stop()
            return code
        finally:
            if self._endpoints is not None:
                await asyncio.to_thread(self._endpoints.stop)
            watchdog.stop()
            self._heart.stop()
            await self._client.close()
            if self._tracing is not None:
                await asyncio.to_thread(self._tracing.close)

    # Starting

    async def _credentials(self, named: str) -> Credentials:
        found = await connection.find(named or self._config.client_connection.kubeconfig)
        return dataclasses.replace(found, server=self._options.master) if self._options.master else found

    def _connect(self, credentials: Credentials) -> HttpClient:
        connection = self._config.client_connection
        return connect(
            credentials,
            self._clock,
            qps=connection.qps,
            burst=connection.burst,
            user_agent=default_user_agent(),
            fence=self._fence.spend if self._elects else None,
            observer=RequestMeter(self._metrics, credentials.server),
        )

    def _make_scheduler(self) -> Scheduler:
        return Scheduler(
            self._client,
            config=self._configuration,
            clock=self._clock,
            flush_after=self._options.flush_after or None,
            may_bind=self._fence.allows,
            metrics=self._metrics,
            tracing=self._tracing,
            streaming_lists=True,
        )

    async def _live(self, credentials: Credentials) -> None:
        """Until this replica schedules, or for ever as a standby."""
        if self._elects:
            await self._win(credentials)
        else:
            await self._follow()
        self._leads = True
        engine = await self._scheduler.lead()
        engine.add_done_callback(self._on_engine_end)
        informers = self._scheduler.informers.informers
        comparer = Comparer(
            self._scheduler.engine,
            informers[PODS],
            informers[NODES],
            self._client,
            self._clock,
            self._metrics,
        )
        self._start(comparer.run(), "comparer")
        self._start(gc_tuning.run(self._clock, self._is_idle), "garbage collection")

    async def _win(self, credentials: Credentials) -> None:
        """Return when the lease is ours and the cache is as new as that."""
        election = self._config.leader_election
        self._metrics.leader.set(election.resource_name, to=0)
        name, namespace = election.resource_name, election.resource_namespace
        free = await takeover.free_version(self._client, name, namespace)
        if not self._config.delay_cache_until_active:
            await self._follow()
        candidate = make_candidate(self._options.identity, name, namespace, self._terms)
        agent = default_user_agent("leader-election")
        self._election = ElectionThread(
            connect=lambda clock: connect(credentials, clock, user_agent=agent),
            candidate=candidate,
            fence=self._fence,
            beats=lambda: self._heart.age() < self._terms.renew_deadline,
            loop=asyncio.get_running_loop(),
            watcher=self,
            on_conflict=lambda: self._metrics.slow_path.inc(election.resource_name),
        )
        self._election.start()
        lease = await self._won
        self._metrics.leader.set(election.resource_name, to=1)
        if self._config.delay_cache_until_active:
            await self._follow()
        self._record_lease(lease, "became leader")
        pods = self._scheduler.informers.informers[PODS]
        if candidate.taken_from != free or not pods.status().is_current:
            await takeover.catch_up(self._client, pods, self._clock)

    async def _follow(self) -> None:
        await self._scheduler.follow()
        gc_tuning.settle()
        self._synced = True
        _log.info(1, "Caches are synced")
        if self._reloader is not None:
            self._start(self._reloader.run(), "reloading")

    def _record_lease(self, lease: Lease, what: str) -> None:
        """The event on the lease that kube-scheduler writes too."""
        self._scheduler.recorder.event(
            lease,
            type="Normal",
            reason="LeaderElection",
            action="LeaderElection",
            note=f"{lease.spec.holder_identity or ''} {what}",
            controller=next(iter(self._scheduler.engine.profiles)),
        )

    def _is_idle(self) -> bool:
        engine = self._scheduler.engine
        return (
            not len(engine.inbox) and not len(engine.bindings) and not engine.queue.pending.counts()["active"]
        )

    # Endpoints

    async def _serve(self, credentials: Credentials) -> None:
        serving = self._options.serving
        if not serving.port:
            return
        reviewer = authorizer = credentials
        if serving.authentication_kubeconfig:
            reviewer = await self._credentials(serving.authentication_kubeconfig)
        if serving.authorization_kubeconfig:
            authorizer = await self._credentials(serving.authorization_kubeconfig)
        loop = asyncio.get_running_loop()

        def refused(why: str) -> None:
            loop.call_soon_threadsafe(self._end, FAILED, why)

        self._endpoints = Endpoints(serving, self._process_view(), reviewer, authorizer, refused)
        self._endpoints.start()
        _log.info(0, "Serving securely", address=serving.bind_address, port=self._endpoints.port)

    def _process_view(self) -> ProcessView:
        return process_view(
            self._scheduler,
            self._metrics,
            self._health(),
            started=self._started,
            leads=lambda: self._leads,
            reloader=self._reloader,
            flags=self._options.flags,
            without=self._options.disabled_metrics,
            writable=self._options.serving.configuration_changes,
        )

    def _health(self) -> Health:
        """kube-scheduler's checks by their names, and whether the loop beats."""
        loop = loop_check(self._heart)
        election = [Check("leaderElection", self._lease_overdue)] if self._elects else []
        shutdown = Check("shutdown", lambda: "process is shutting down" if self._stopping else "")
        synced = Check("sched-handler-sync", self._not_synced)
        runs = Check("plugin-run", self._failing_runs, fails=False)
        return Health(
            {
                "healthz": (PING, *election, loop),
                "livez": (PING, loop),
                "readyz": (PING, *election, shutdown, synced, loop, runs),
            }
        )

    def _lease_overdue(self) -> str:
        overdue = self._fence.overdue(WATCHDOG_TOLERANCE)
        return "failed election to renew leadership on lease" if overdue else ""

    def _failing_runs(self) -> str:
        """Of the plugins whose `run` has not been steady since it failed."""
        now, failures = self._clock.now(), dict(self._scheduler.engine.generation.run_failures)
        return ", ".join(
            f"run() of {plugin} failed {times} times, {now - last:.0f}s ago the last time"
            for plugin, (times, last) in sorted(failures.items())
            if now - last < STEADY_SECONDS
        )

    def _not_synced(self) -> str:
        waiting = self._elects and self._config.delay_cache_until_active and not self._won.done()
        return "" if self._synced or waiting else "handlers are not fully synchronized"

    # Reasons to end

    def on_leading(self, lease: Lease) -> None:
        if not self._won.done():
            self._won.set_result(lease)

    def on_lost(self, reason: str) -> None:
        self._metrics.leader.set(self._config.leader_election.resource_name, to=0)
        self._lost = True
        self._end(FAILED, f"leader election lost: {reason}")

    def _on_engine_end(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._end(FAILED, f"the scheduling loop broke: {task.exception()!r}")

    def _on_signal(self, received: signal.Signals) -> None:
        self._end(OK, f"signal {received.name}")

    def _on_hangup(self) -> None:
        if self._reloader is None:
            _log.warning("SIGHUP: there is no configuration file to read again")
        else:
            self._reloader.request()

    def _end(self, code: int, reason: str) -> None:
        if not self._ended.done():
            self._stopping = self._signals.ending = True
            if code:
                _log.error("The scheduler ends", reason=reason)
            self._ended.set_result((code, reason))

    def _start(self, coro: Coroutine[Any, Any, Any], name: str) -> None:
        """Work of the process itself: when it breaks the process ends."""

        def ended(task: asyncio.Task[Any]) -> None:
            self._work.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("A part of the process broke", error=error, stack=True, part=name)
                self._end(FAILED, f"{name}: {error}")

        task = asyncio.get_running_loop().create_task(coro, name=name)
        self._work.add(task)
        task.add_done_callback(ended)

    # Ending

    async def _stop(self) -> None:
        """Drain what was sent, then give the lease back, and nothing the other way round."""
        for task in list(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._scheduler.stop(LOST_GRACE_SECONDS if self._lost else GRACE_SECONDS)
        self._leads = False
        if self._election is not None:
            await self._election.release(give_back=not self._lost)


def run(
    configuration: Configuration,
    options: RunOptions,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> int:
    """Run a scheduler until it is asked to stop or loses the lease; the exit code of the process."""
    process = Process(configuration, options)
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(process.run())
