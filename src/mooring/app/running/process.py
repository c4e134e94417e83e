"""The process behind `mooring run`: starts the parts in order, waits for a reason to end, ends them in order.

    informers sync ─▶ lease won ─▶ cache proven new ─▶ scheduling ─▶ SIGTERM, or lease lost, or a bug
                                                                        │
              exit code ◀─ endpoints stop ◀─ lease released ◀─ events sent ◀─ binds drained

A replica that does not lead keeps its caches current and serves its endpoints.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import signal
from collections.abc import Callable
from typing import Any

from mooring.api.coordination import Lease
from mooring.api.resources import PODS
from mooring.app.clock import LeaseClock, SystemClock
from mooring.app.configuring import Configuration
from mooring.app.running import takeover
from mooring.app.running.electing import ElectionThread, make_candidate
from mooring.app.running.heart import Heart
from mooring.app.running.options import RunOptions
from mooring.app.scheduler import Scheduler
from mooring.client import finding
from mooring.client.connecting import connect, default_user_agent
from mooring.client.credentials import Credentials
from mooring.client.http_client import HttpClient
from mooring.client.lease import Fence, Terms
from mooring.telemetry import logs

_log = logs.get(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
OK, LOST = 0, 1


class Process:
    """One run. `run` returns the exit code."""

    def __init__(self, configuration: Configuration, options: RunOptions) -> None:
        self._configuration = configuration
        self._config = configuration.config
        self._options = options
        self._clock = SystemClock()
        election = self._config.leader_election
        self._terms = Terms(election.lease_duration, election.renew_deadline, election.retry_period)
        self._fence = self._make_fence()
        self._heart = Heart(self._clock.now)
        self._ended: asyncio.Future[tuple[int, str]] | None = None
        self._work: set[asyncio.Task[Any]] = set()
        self._election: ElectionThread | None = None

    def _make_fence(self) -> Fence:
        now = LeaseClock().now
        return Fence(now, self._terms) if self._config.leader_election.leader_elect else Fence.open(now)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        credentials = await self._credentials()
        self._heart.start()
        client = self._connect(credentials)
        self._scheduler = self._make_scheduler(client)
        try:
            self._start(self._live(client, credentials), "start")
            code, reason = await self._ended
            _log.info(0, "Stopping", reason=reason)
            await self._stop()
            return code
        finally:
            self._heart.stop()
            await client.close()

    # Starting

    async def _credentials(self) -> Credentials:
        path = self._options.kubeconfig or self._config.client_connection.kubeconfig
        found = await finding.find(path)
        return dataclasses.replace(found, server=self._options.master) if self._options.master else found

    def _connect(self, credentials: Credentials) -> HttpClient:
        connection = self._config.client_connection
        return connect(
            credentials,
            self._clock,
            qps=connection.qps,
            burst=connection.burst,
            user_agent=default_user_agent(),
            fence=self._fence.spend if self._config.leader_election.leader_elect else None,
        )

    def _make_scheduler(self, client: HttpClient) -> Scheduler:
        return Scheduler(
            client,
            config=self._configuration,
            clock=self._clock,
            flush_after=self._options.flush_after or None,
            may_bind=self._fence.allows,
            streaming_lists=True,
        )

    async def _live(self, client: HttpClient, credentials: Credentials) -> None:
        """Until this replica schedules, or for ever as a follower."""
        election = self._config.leader_election
        if not election.leader_elect:
            await self._follow()
            await self._lead(client)
            return
        if not self._config.delay_cache_until_active:
            await self._follow()
        won = asyncio.get_running_loop().create_future()
        self._won: asyncio.Future[Lease] = won
        self._election = ElectionThread(
            connect=lambda clock: connect(
                credentials, clock, user_agent=default_user_agent("leader-election")
            ),
            candidate=make_candidate(
                self._options.identity, election.resource_name, election.resource_namespace, self._terms
            ),
            fence=self._fence,
            beats=lambda: self._heart.age() < self._terms.renew_deadline,
            loop=asyncio.get_running_loop(),
            watcher=self,
        )
        self._election.start()
        lease = await won
        if self._config.delay_cache_until_active:
            await self._follow()
        await takeover.catch_up(client, self._scheduler.informers.informers[PODS], self._clock)
        await self._lead(client)
        self._tell_lease(lease, "became leader")

    async def _follow(self) -> None:
        await self._scheduler.follow()
        _log.info(1, "Caches are synced")
        gc.collect()
        gc.freeze()

    async def _lead(self, client: HttpClient) -> None:
        engine = await self._scheduler.lead()
        engine.add_done_callback(self._on_engine_end)

    def _tell_lease(self, lease: Lease, what: str) -> None:
        """The event on the lease that kube-scheduler writes too."""
        identity = lease.spec.holder_identity or ""
        self._scheduler.recorder.event(
            lease,
            type="Normal",
            reason="LeaderElection",
            action="LeaderElection",
            note=f"{identity} {what}",
            controller=next(iter(self._scheduler.engine.profiles)),
        )

    # Reasons to end

    def on_leading(self, lease: Lease) -> None:
        if not self._won.done():
            self._won.set_result(lease)

    def on_lost(self, reason: str) -> None:
        self._end(LOST, f"leader election lost: {reason}")

    def _on_engine_end(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._end(LOST, f"the scheduling loop broke: {task.exception()!r}")

    def _on_signal(self, number: int) -> None:
        if self._ended is not None and self._ended.done():
            _log.warning("Second signal: ending at once", signal=signal.Signals(number).name)
            os._exit(LOST)
        self._end(OK, f"signal {signal.Signals(number).name}")

    def _end(self, code: int, reason: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result((code, reason))

    def _start(self, coro: Any, name: str) -> None:
        """Work of the process itself: when it breaks the process ends."""

        def ended(task: asyncio.Task[Any]) -> None:
            self._work.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("Cannot go on", error=error, stack=True, part=name)
                self._end(LOST, f"{name}: {error}")

        task = asyncio.get_running_loop().create_task(coro, name=name)
        self._work.add(task)
        task.add_done_callback(ended)

    # Ending

    async def _stop(self) -> None:
        """Drain what was sent, then give the lease back, and nothing the other way round."""
        for task in list(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._scheduler.stop()
        if self._election is not None:
            await self._election.release()


def run(configuration: Configuration, options: RunOptions, runner: Callable[[Any], int] | None = None) -> int:
    """Run a scheduler until it is told to stop or loses the lease; the exit code of the process."""
    process = Process(configuration, options)
    if runner is not None:
        return runner(process.run())
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        return loop.run(process.run())
