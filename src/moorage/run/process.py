"""The process behind `moorage run`: starts the parts in order, waits for a reason to end, stops them in order.

    informers sync ─▶ lease won ─▶ cache caught up ─▶ scheduling ─▶ SIGTERM, or lease lost, or a bug
                                                                        │
              exit code ◀─ endpoints stop ◀─ lease released ◀─ events sent ◀─ bindings finished

A replica that does not lead keeps its caches current and serves its endpoints.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Callable

import uvloop

from moorage.api.core import Lease
from moorage.api.resources import PODS
from moorage.app import gc_tuning
from moorage.app.clock import LeaseClock
from moorage.app.configuration import Configuration
from moorage.client import connection
from moorage.client.connection import connect, default_user_agent
from moorage.client.credentials import Credentials
from moorage.client.http_client import HttpClient
from moorage.client.lease import Fence, Terms
from moorage.endpoints.health import PING, Check, Health
from moorage.run import metrics as process_metrics
from moorage.run import takeover
from moorage.run.election import ElectionThread, make_candidate
from moorage.run.endpoints import loop_check, tasks_check
from moorage.run.host import SchedulerHost
from moorage.run.options import COORDINATED, RunOptions
from moorage.run.watchdog import FAILED
from moorage.runtime.background import STEADY_SECONDS
from moorage.scheduler.engine import GRACE_SECONDS
from moorage.telemetry import logs, tracing

_log = logs.get(__name__)

WATCHDOG_TOLERANCE = 20.0
"""Seconds after the end of a lease that was not released, after which the health check fails."""
LOST_GRACE_SECONDS = 5.0
"""How long to wait for bindings if the lease is lost: another replica leads by then."""


class Process:
    """One run. `run` returns the exit code."""

    def __init__(self, configuration: Configuration, options: RunOptions) -> None:
        self._configuration = configuration
        self._config = configuration.config
        self._options = options
        election = self._config.leader_election
        self._elects = election.leader_elect
        self._terms = Terms(election.lease_duration, election.renew_deadline, election.retry_period)
        now = LeaseClock().now
        self._fence = Fence(now, self._terms) if self._elects else Fence.open(now)
        self._synced = False
        self._leads = False
        self._lost = False
        """Whether the lease was lost, so that it cannot be released."""
        self._election: ElectionThread | None = None

    async def run(self) -> int:
        self._host = host = SchedulerHost(self._options.gates.behaviour)
        self._won: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._tracing = tracing.from_environment(os.environ, host.clock.now, host.clock.wall)
        host.take_signals(self._on_hangup)
        process_metrics.describe(host.metrics, self._options.gates)
        client: HttpClient | None = None
        try:
            credentials = await self._credentials(self._options.kubeconfig)
            client = self._connect(credentials)
            host.make_scheduler(
                client,
                self._configuration,
                self._options.source,
                flush_after=self._options.flush_after or None,
                may_bind=self._fence.allows,
                tracing=self._tracing,
            )
            host.watch()
            await self._serve(credentials)
            host.run(self._live(credentials), "start", returns=True)
            code = await host.until_ended()
            await self._stop()
            return code
        finally:
            await host.close()
            if client is not None:
                await client.close()
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
            self._host.clock,
            qps=connection.qps,
            burst=connection.burst,
            user_agent=default_user_agent(),
            fence=self._fence.spend if self._elects else None,
            observer=process_metrics.RequestMeter(self._host.metrics, credentials.server),
        )

    async def _live(self, credentials: Credentials) -> None:
        """Start scheduling when this replica leads; a standby waits forever."""
        if self._elects:
            await self._win(credentials)
        else:
            await self._follow()
        self._leads = True
        await self._host.scheduler.lead()
        self._host.run_comparer(self._is_idle)

    async def _win(self, credentials: Credentials) -> None:
        """Return when this replica holds the lease and its cache has caught up with it."""
        election, host = self._config.leader_election, self._host
        host.metrics.leader.set(election.resource_name, to=0)
        name, namespace = election.resource_name, election.resource_namespace
        free = await takeover.free_version(host.client, name, namespace)
        if not self._config.delay_cache_until_active:
            await self._follow()
        coordinated = self._options.gates(COORDINATED)
        candidate = make_candidate(self._options.identity, name, namespace, self._terms, coordinated)
        agent = default_user_agent("leader-election")
        self._election = ElectionThread(
            connect=lambda clock: connect(credentials, clock, user_agent=agent),
            candidate=candidate,
            fence=self._fence,
            beats=lambda: host.heart.age() < self._terms.renew_deadline,
            loop=asyncio.get_running_loop(),
            watcher=self,
            on_conflict=lambda: host.metrics.slow_path.inc(election.resource_name),
            version=self._configuration.behaviour.release.removeprefix("v"),
        )
        self._election.start()
        lease = await self._won
        host.metrics.leader.set(election.resource_name, to=1)
        if self._config.delay_cache_until_active:
            await self._follow()
        self._record_lease(lease, "became leader")
        pods = host.scheduler.informers.informers[PODS]
        if candidate.taken_from != free or not pods.status().is_current:
            await takeover.catch_up(host.client, pods, host.clock)

    async def _follow(self) -> None:
        await self._host.scheduler.follow()
        gc_tuning.settle()
        self._synced = True
        _log.info(1, "Caches are synced")
        self._host.run_reloader()

    def _record_lease(self, lease: Lease, what: str) -> None:
        """Record the event on the lease that kube-scheduler records too."""
        self._host.scheduler.recorder.event(
            lease,
            type="Normal",
            reason="LeaderElection",
            action="LeaderElection",
            note=f"{lease.spec.holder_identity or ''} {what}",
            controller=next(iter(self._host.scheduler.engine.profiles)),
        )

    def _is_idle(self) -> bool:
        engine = self._host.scheduler.engine
        return not len(engine.inbox) and not len(engine.bindings) and not engine.queue.pending.counts()["active"]

    # Endpoints

    async def _serve(self, credentials: Credentials) -> None:
        serving, host = self._options.serving, self._host
        if not serving.port:
            return
        reviewer = authorizer = credentials
        if serving.authentication_kubeconfig:
            reviewer = await self._credentials(serving.authentication_kubeconfig)
        if serving.authorization_kubeconfig:
            authorizer = await self._credentials(serving.authorization_kubeconfig)
        loop = asyncio.get_running_loop()
        endpoints = host.serve(
            serving,
            self._health(),
            reviewer,
            authorizer,
            leads=lambda: self._leads,
            without=frozenset(self._options.disabled_metrics),
            flags=dict(self._options.flags),
            on_refused=lambda why: loop.call_soon_threadsafe(host.end, FAILED, why),
        )
        _log.info(0, "Serving securely", address=serving.bind_address, port=endpoints.port)

    def _health(self) -> Health:
        """Return kube-scheduler's checks by their names, and the check of the heartbeat."""
        alive = (loop_check(self._host.heart), tasks_check(lambda: self._host.failure))
        election = [Check("leaderElection", self._lease_overdue)] if self._elects else []
        shutdown = Check("shutdown", lambda: "process is shutting down" if self._host.stopping else "")
        synced = Check("sched-handler-sync", self._not_synced)
        runs = Check("plugin-run", self._failing_runs, fails=False)
        return Health(
            {
                "healthz": (PING, *election, *alive),
                "livez": (PING, *alive),
                "readyz": (PING, *election, shutdown, synced, *alive, runs),
            }
        )

    def _lease_overdue(self) -> str:
        overdue = self._fence.overdue(WATCHDOG_TOLERANCE)
        return "failed election to renew leadership on lease" if overdue else ""

    def _failing_runs(self) -> str:
        """Name the plugins whose `run` has failed and has not been steady since."""
        now, failures = self._host.clock.now(), dict(self._host.scheduler.engine.generation.run_failures)
        return ", ".join(
            f"run() of {plugin} failed {times} times, last {now - last:.0f}s ago"
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
        self._host.metrics.leader.set(self._config.leader_election.resource_name, to=0)
        self._lost = True
        self._host.end(FAILED, f"leader election lost: {reason}")

    def _on_hangup(self) -> None:
        if self._host.reloader is None:
            _log.warning("SIGHUP is ignored: there is no configuration file to reload")
        else:
            self._host.reloader.request()

    async def _stop(self) -> None:
        """Finish bindings first, then release the lease."""
        await self._host.stop(LOST_GRACE_SECONDS if self._lost else GRACE_SECONDS)
        self._leads = False
        if self._election is not None:
            await self._election.release(give_back=not self._lost)


def run(
    configuration: Configuration,
    options: RunOptions,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop,
) -> int:
    """Run a scheduler until it is asked to stop or loses the lease. Returns the exit code of the process."""
    process = Process(configuration, options)
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(process.run())
