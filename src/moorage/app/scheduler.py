"""`moorage.Scheduler`: an engine with informers and an event recorder on an API client.

Corresponds to Setup and Run in cmd/kube-scheduler/app/server.go.
"""

from __future__ import annotations

import asyncio
import random as randomness
import socket
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from moorage.api.pod import Pod
from moorage.app.clock import SystemClock
from moorage.app.configuration import EMPTY, Configuration, configure, configure_file
from moorage.client.events import ApiEventRecorder
from moorage.client.http_client import TracedClient
from moorage.client.informers import InformerSet, OnMalformed
from moorage.extender.connecting import make_extenders
from moorage.framework.points import Plugin
from moorage.framework.ports import ApiClient, Clock
from moorage.queue.pending import Location
from moorage.runtime.services import MayWrite, always
from moorage.scheduler import reloading
from moorage.scheduler.assembly import FLUSH_AFTER, assemble
from moorage.scheduler.engine import GRACE_SECONDS, Engine
from moorage.scheduler.generation import Ports
from moorage.scheduler.records import RecordRing
from moorage.telemetry import logs
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.telemetry.tracing import Tracing

_log = logs.get(__name__)


class Scheduler:
    """A scheduler that binds pods through an API client.

        async with Scheduler(client, config=Path("scheduler.yaml"), plugins=[Sample]):
            ...

    `config` is a path, a YAML or JSON text, a resolved Configuration, or None for the default profile.
    `streaming_lists` reads first listings as watches, which reduces the load on the API server.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        config: Path | str | Configuration | None = None,
        plugins: Iterable[type[Plugin]] = (),
        clock: Clock | None = None,
        random: randomness.Random | None = None,
        discover: bool = True,
        instance: str = "",
        flush_after: float | None = FLUSH_AFTER,
        may_bind: MayWrite = always,
        metrics: SchedulerMetrics | None = None,
        tracing: Tracing | None = None,
        streaming_lists: bool = False,
    ) -> None:
        self.configuration = _configuration(config, plugins, discover)
        self.clock = clock or SystemClock()
        self.random = random or randomness.Random()
        self._client = client
        self._recorder = ApiEventRecorder(client, self.clock, self.random, instance=instance or socket.gethostname())
        self._discover = discover
        self._metrics = metrics
        if tracing is not None and metrics is not None:
            metrics.make_meter = tracing.meter
        ports = Ports(
            client if tracing is None else TracedClient(client, tracing),
            self.clock,
            self.random,
            self._recorder,
            extenders=make_extenders(self.configuration.config.extenders, self.clock, metrics),
            metrics=metrics,
            tracing=tracing,
            may_bind=may_bind,
        )
        self.engine: Engine = assemble(
            self.configuration.config,
            self.configuration.profiles,
            self.configuration.registry,
            ports,
            flush_after=flush_after,
        )
        self.informers = InformerSet(
            client,
            self.engine.inbox.post,
            self.clock,
            self.random,
            self.configuration.resources(),
            use_streaming_list=streaming_lists,
            on_malformed=_count_malformed(metrics),
            on_served=self.engine.inbox.post,
            backlog=self._backlog,
        )
        self._applies_changes = False
        """Whether the engine applies the changes that informers deliver."""
        self._following: asyncio.Task[None] | None = None
        self.tasks: list[asyncio.Task[Any]] = []
        """The tasks that `start`, `follow` and `lead` created."""

    @property
    def recorder(self) -> ApiEventRecorder:
        """The recorder of events for users."""
        return self._recorder

    @property
    def records(self) -> RecordRing:
        """The latest decision records."""
        return self.engine.records

    def where(self, pod: Pod) -> Location | None:
        """Return the place of a pending pod in the queue and the reason, or None."""
        return self.engine.queue.pending.where(pod.uid)

    def _backlog(self) -> int:
        """Return the length of the inbox. Informers pause while it is too long.

        Before the engine applies changes it is 0, because `start` waits for the informers.
        """
        return len(self.engine.inbox) if self._applies_changes else 0

    async def start(self) -> None:
        """Start the informers, wait until all have synced, then schedule."""
        self._spawn(self.informers.run(), "informers")
        self._spawn(self._recorder.run(), "events")
        await self.informers.wait_synced()
        await self.lead()

    async def follow(self) -> None:
        """Start the informers and apply all changes without scheduling.

        Returns when all informers have synced and their objects are applied.
        """
        self._spawn(self.informers.run(), "informers")
        self._spawn(self._recorder.run(), "events")
        self._applies_changes = True
        self._following = self._spawn(self.engine.stand_by(), "follow")
        await self.informers.wait_synced()
        self.engine.drain()

    async def lead(self) -> asyncio.Task[Any]:
        """Schedule from now on, after `follow`. The returned task ends when the scheduler stops or fails."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            self._following = None
        self._applies_changes = True
        task = self._spawn(self.engine.run(), "engine")
        _log.info(1, "Scheduling", profiles=" ".join(self.engine.profiles))
        return task

    async def reload(self, config: Path | str | Configuration | None, plugins: Iterable[type[Plugin]] = ()) -> None:
        """Replace the configuration, after `follow` or `start`.

        Returns when pods are scheduled by the new one. Raises MoorageError and keeps the current one if it
        cannot be used.
        """
        configuration = _configuration(config, plugins, self._discover)
        await self.informers.extend(configuration.resources())
        made = make_extenders(configuration.config.extenders, self.clock, self._metrics)
        source = configuration.config, configuration.profiles, configuration.registry
        await reloading.reload(self.engine, *source, made)
        self.configuration = configuration
        _log.info(1, "Reloaded the configuration", profiles=" ".join(self.engine.profiles))

    def _spawn(self, coro: Any, name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coro, name=f"moorage:{name}")
        task.add_done_callback(_report)
        self.tasks.append(task)
        return task

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Stop scheduling, finish sent binds and events, and stop the informers.

        Waits at most `grace` seconds for binds and a quarter of that for events.
        """
        await self.engine.stop(grace)
        await self._recorder.flush(grace / 4)
        await self.informers.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()

    async def __aenter__(self) -> Scheduler:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _configuration(
    source: Path | str | Configuration | None, plugins: Iterable[type[Plugin]], discover: bool
) -> Configuration:
    match source:
        case Configuration():
            return source
        case Path():
            return configure_file(source, plugins=plugins, discover=discover)
        case None:
            return configure(EMPTY, plugins=plugins, discover=discover)
        case str():
            return configure(source, plugins=plugins, discover=discover)


def _count_malformed(metrics: SchedulerMetrics | None) -> OnMalformed | None:
    if metrics is None:
        return None
    return lambda resource, problem: metrics.malformed.inc(str(resource))


def _report(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("A task of the scheduler failed", error=error, stack=True, task=task.get_name())
