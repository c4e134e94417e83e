"""What every process with a scheduler needs around it, for `moorage run`, `moorage up` and `moorage extender`: metrics,
heartbeat, watchdog, signals, background tasks, reloads, endpoints, and a reason to end."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from typing import Any

from moorage.api.failures import text_of
from moorage.api.resources import NODES, PODS
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.app import gc_tuning
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration
from moorage.app.reloading import ConfigurationSource, Reloader
from moorage.app.scheduler import Scheduler
from moorage.client.credentials import Credentials
from moorage.client.http_client import HttpClient
from moorage.endpoints.health import Health
from moorage.run.comparer import Comparer
from moorage.run.dump import dump
from moorage.run.endpoints import Endpoints, process_view
from moorage.run.options import ServingOptions
from moorage.run.watchdog import FAILED, OK, Heart, Signals, Watchdog
from moorage.scheduler.engine import GRACE_SECONDS, Engine
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)


class SchedulerHost:
    """Holds a scheduler and everything that runs beside it. Create it on the loop of the scheduler."""

    scheduler: Scheduler
    client: HttpClient

    def __init__(self, behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> None:
        self.clock = SystemClock()
        self.metrics = SchedulerMetrics(time.monotonic, behaviour)
        self.heart = Heart(self.clock.now, self.metrics.loop_lag.child().observe)
        self.watchdog = Watchdog(self.heart, self.metrics)
        self.reloader: Reloader | None = None
        self.endpoints: Endpoints | None = None
        self.started = time.time()
        self.ended: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        """Done when the process has a reason to end: the exit code, and the reason."""
        self._signals: Signals | None = None
        self._comparer: Comparer | None = None
        self._dumping = False
        self._tasks: set[asyncio.Task[Any]] = set()

    # Starting

    def take_signals(self, on_hangup: Callable[[], object] | None = None) -> None:
        """End at SIGTERM and SIGINT; a second signal ends the process at once. Write a dump at SIGUSR2."""

        def on_first(received: signal.Signals) -> None:
            self.end(OK, f"signal {received.name}")

        if self._signals is None:
            others = {signal.SIGUSR2: self._dump, **({signal.SIGHUP: on_hangup} if on_hangup is not None else {})}
            self._signals = Signals(on_first, self.watchdog, others)

    def _dump(self) -> None:
        if not hasattr(self, "scheduler") or self._dumping:
            _log.warning("SIGUSR2 is ignored: there is no scheduler yet, or a dump is being written")
            return
        self._dumping = True
        self.run(self._write_dump(self.scheduler.engine), "dump", returns=True)

    async def _write_dump(self, engine: Engine) -> None:
        try:
            await dump(engine, self.clock, self._comparer)
        finally:
            self._dumping = False

    def make_scheduler(
        self, client: HttpClient, configuration: Configuration, source: ConfigurationSource | None = None, **more: Any
    ) -> Scheduler:
        """Create the scheduler, and the reloader if its configuration has a source."""
        self.client = client
        self.scheduler = Scheduler(
            client, config=configuration, clock=self.clock, metrics=self.metrics, streaming_lists=True, **more
        )
        self.scheduler.on_end = lambda text: self.end(FAILED, text)
        if source is not None:
            self.reloader = Reloader(self.scheduler, source, self.clock, self.metrics)
        return self.scheduler

    def watch(self) -> None:
        """Start the heartbeat, and the watchdog that reports when it is late."""
        self.heart.start()
        self.watchdog.start()

    def serve(
        self,
        options: ServingOptions,
        health: Health,
        reviewer: Credentials,
        authorizer: Credentials,
        *,
        leads: Callable[[], bool] = lambda: True,
        without: frozenset[str] = frozenset(),
        flags: dict[str, str] | None = None,
        **more: Any,
    ) -> Endpoints:
        """Start the endpoints; `more` is for `Endpoints`."""
        view = process_view(
            self.scheduler,
            self.metrics,
            health,
            started=self.started,
            leads=leads,
            reloader=self.reloader,
            flags=flags or {},
            without=without,
            writable=options.configuration_changes,
        )
        self.endpoints = Endpoints(options, view, reviewer, authorizer, **more)
        self.endpoints.start()
        return self.endpoints

    def run_reloader(self) -> None:
        """Reload the configuration when its source changes. Call it when the caches are synced."""
        if self.reloader is not None:
            self.run(self.reloader.run(), "reloader")

    def run_comparer(self, is_idle: Callable[[], bool]) -> None:
        """Compare the caches with the API server, and collect garbage while `is_idle`."""
        informers = self.scheduler.informers.informers
        self._comparer = comparer = Comparer(
            self.scheduler.engine,
            informers[PODS],
            informers[NODES],
            self.client,
            self.clock,
            self.metrics,
            self.scheduler.informers.rewound,
        )
        self.run(comparer.run(), "comparer")
        self.run(gc_tuning.run(self.clock, is_idle), "garbage collection")

    def run(self, work: Coroutine[Any, Any, Any], name: str, *, returns: bool = False) -> None:
        """Run a background task. If it ends before the process does, the process ends, unless the task `returns`."""

        def done(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                _log.error("A background task failed", error=error, stack=True, task=name)
                self.end(FAILED, f"{name}: {text_of(error)}")
            elif not self.stopping and (task.cancelled() or not returns):
                self.end(FAILED, f"the task {name} {'was cancelled' if task.cancelled() else 'returned'}")

        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(done)

    # Ending

    @property
    def stopping(self) -> bool:
        return self.ended.done()

    @property
    def failure(self) -> str:
        """Why the process ends, if something failed."""
        code, reason = self.ended.result() if self.ended.done() else (OK, "")
        return reason if code else ""

    def end(self, code: int, reason: str) -> None:
        """Ask the process to end; only the first reason counts."""
        if not self.ended.done():
            if self._signals is not None:
                self._signals.ending = True
            if code:
                _log.error("The process ends", reason=reason)
            self.ended.set_result((code, reason))

    async def until_ended(self) -> int:
        """Wait for a reason to end. Returns the exit code."""
        code, reason = await self.ended
        _log.info(0, "Stopping", reason=reason)
        return code

    async def stop(self, seconds: float = GRACE_SECONDS) -> None:
        """Cancel the background tasks, then stop the scheduler, which waits for bindings."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.scheduler.stop(seconds)

    async def close(self) -> None:
        """Stop the endpoints, the watchdog and the signals."""
        if self.endpoints is not None:
            await asyncio.to_thread(self.endpoints.stop)
        self.watchdog.stop()
        self.heart.stop()
        if self._signals is not None:
            self._signals.remove()
