"""`moorage.Scheduler`: a scheduler on an API client, with informers and event recorder around its engine."""

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
    """Everything between an API client and bound pods.

        async with Scheduler(client, config=Path("scheduler.yaml"), plugins=[Sample]):
            ...

    `config` is a path, a YAML or JSON text, a resolved Configuration, or None for the default profile.
    `streaming_lists` reads first listings as watches, which spares servers on the network.
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
        self._recorder = ApiEventRecorder(
            client, self.clock, self.random, instance=instance or socket.gethostname()
        )
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
        self._takes = False
        """Whether the engine takes what informers deliver."""
        self._following: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[Any]] = []

    @property
    def recorder(self) -> ApiEventRecorder:
        """Where events for users go."""
        return self._recorder

    @property
    def records(self) -> RecordRing:
        """The newest decision records."""
        return self.engine.records

    def where(self, pod: Pod) -> Location | None:
        """In which place of the queue a pending pod is, and why."""
        return self.engine.queue.pending.where(pod.uid)

    def _backlog(self) -> int:
        """What informers wait for when it is too much; `start` waits for them before anything is taken."""
        return len(self.engine.inbox) if self._takes else 0

    async def start(self) -> None:
        """Start the informers, wait until all have synced, then schedule."""
        self._spawn(self.informers.run(), "informers")
        self._spawn(self._recorder.run(), "events")
        await self.informers.wait_synced()
        await self.lead()

    async def follow(self) -> None:
        """Start the informers and keep everything current without scheduling; returns when all have synced
        and what they delivered is applied."""
        self._spawn(self.informers.run(), "informers")
        self._spawn(self._recorder.run(), "events")
        self._takes = True
        self._following = self._spawn(self.engine.stand_by(), "follow")
        await self.informers.wait_synced()
        self.engine.drain()

    async def lead(self) -> asyncio.Task[Any]:
        """Schedule from now on, after `follow`. The task ends when the scheduler stops, or breaks."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            self._following = None
        self._takes = True
        task = self._spawn(self.engine.run(), "engine")
        _log.info(1, "Scheduling", profiles=" ".join(self.engine.profiles))
        return task

    async def reload(
        self, config: Path | str | Configuration | None, plugins: Iterable[type[Plugin]] = ()
    ) -> None:
        """Go on by another configuration, after `follow` or `start`. Returns when pods are scheduled by it; a
        MoorageError says why they cannot be, and then the present one stays."""
        configuration = _configuration(config, plugins, self._discover)
        await self.informers.extend(configuration.resources())
        made = make_extenders(configuration.config.extenders, self.clock, self._metrics)
        given = configuration.config, configuration.profiles, configuration.registry
        await reloading.reload(self.engine, *given, made)
        self.configuration = configuration
        _log.info(1, "Reloaded the configuration", profiles=" ".join(self.engine.profiles))

    def _spawn(self, coro: Any, name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coro, name=f"moorage:{name}")
        task.add_done_callback(_report)
        self._tasks.append(task)
        return task

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Stop scheduling, drain sent binds and events, stop the informers. Binds are waited for `grace`
        seconds at most, events a quarter of that."""
        await self.engine.stop(grace)
        await self._recorder.flush(grace / 4)
        await self.informers.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def __aenter__(self) -> Scheduler:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _configuration(
    given: Path | str | Configuration | None, plugins: Iterable[type[Plugin]], discover: bool
) -> Configuration:
    match given:
        case Configuration():
            return given
        case Path():
            return configure_file(given, plugins=plugins, discover=discover)
        case None:
            return configure(EMPTY, plugins=plugins, discover=discover)
        case str():
            return configure(given, plugins=plugins, discover=discover)


def _count_malformed(metrics: SchedulerMetrics | None) -> OnMalformed | None:
    if metrics is None:
        return None
    return lambda resource, problem: metrics.malformed.inc(str(resource))


def _report(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("A part of the scheduler ended", error=error, stack=True, part=task.get_name())
