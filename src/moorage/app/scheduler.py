"""`moorage.Scheduler`: an engine with informers and an event recorder on an API client.

Corresponds to Setup and Run in cmd/kube-scheduler/app/server.go.
"""

from __future__ import annotations

import asyncio
import functools
import random as randomness
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from moorage.api.errors import MoorageError
from moorage.api.failures import failure_text
from moorage.api.pod import Pod
from moorage.app.clock import SystemClock
from moorage.app.configuration import ConfigSource, configure_any
from moorage.client.events import ApiEventRecorder
from moorage.client.http_client import TracedClient
from moorage.client.informers import InformerSet, OnMalformed, OnRewind
from moorage.client.probing import ServerProbe
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

    `config` is a path, a YAML or JSON text, a mapping with the structure of the file, a resolved Configuration, or None
    for the default profile. `streaming_lists` reads first listings as watches, which reduces the load on the API
    server. `probe_server` asks for the server's version every 20 seconds, to notice a restored backup and the end of an
    outage (`client.probing`).
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        config: ConfigSource = None,
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
        probe_server: bool = True,
    ) -> None:
        self.configuration = configure_any(config, plugins=plugins, discover=discover)
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
            behaviour=self.configuration.behaviour,
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
            on_rewind=_count_rewinds(metrics),
            backlog=self._backlog,
        )
        self._probe = ServerProbe(client, self.informers, self.clock) if probe_server else None
        self._applies_changes = False
        """Whether the engine applies the changes that informers deliver."""
        self._following: asyncio.Task[None] | None = None
        self.tasks: list[asyncio.Task[Any]] = []
        """The tasks that `start`, `follow` and `lead` created."""
        self.on_end: Callable[[str], object] | None = None
        """Called with a sentence when one of these tasks ends before `stop` is called."""

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
        """Return the length of the inbox; informers pause while it is too long. Before the engine applies changes it is
        0, because `start` waits for the informers."""
        return len(self.engine.inbox) if self._applies_changes else 0

    async def start(self) -> None:
        """Start the informers, wait until all have synced, then schedule."""
        self._spawn_client()
        await self.informers.wait_synced()
        await self.lead()

    async def follow(self) -> None:
        """Apply all changes without scheduling. Returns when the first listings of all informers are applied."""
        self._spawn_client()
        self._applies_changes = True
        self._following = self._spawn(self.engine.stand_by(), "follow")
        await self.informers.wait_synced()
        self.engine.drain()

    async def lead(self) -> asyncio.Task[Any]:
        """Schedule from now on, after `follow`. The returned task ends when the scheduler stops or fails."""
        if self._following is not None:
            following, self._following = self._following, None
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        self._applies_changes = True
        task = self._spawn(self.engine.run(), "engine")
        _log.info(1, "Scheduling", profiles=" ".join(self.engine.profiles))
        return task

    async def reload(self, config: ConfigSource, plugins: Iterable[type[Plugin]] = (), why: str = "") -> None:
        """Replace the configuration, after `follow` or `start`, and return when pods are scheduled by the new one;
        `why` is for the log. Plugins with the same class and arguments stay. Raises MoorageError and keeps the current
        configuration if the new one cannot be used. The emulated version stays as it is."""
        gates = self.configuration.gates
        configuration = configure_any(config, plugins=plugins, discover=self._discover, gates=gates)
        if configuration.gates.version != gates.version:
            raise MoorageError(
                f"the configuration is read for kube-scheduler {configuration.gates.version}, but this scheduler "
                f"emulates {gates.version}; restart it with another --emulated-version"
            )
        await self.informers.extend(configuration.resources())
        made = make_extenders(configuration.config.extenders, self.clock, self._metrics)
        source = configuration.config, configuration.profiles, configuration.registry
        in_thread = _in_daemon_thread if isinstance(self.clock, SystemClock) else None
        await reloading.reload(self.engine, *source, made, in_thread)
        self.configuration = configuration
        text = f"Reloaded the configuration{why and f' ({why})'}."
        _log.info(0, text, profiles=" ".join(self.engine.profiles))

    def _spawn_client(self) -> None:
        self._spawn(self.informers.run(), "informers")
        self._spawn(self._recorder.run(), "events")
        if self._probe is not None:
            self._spawn(self._probe.run(), "probe")

    def _spawn(self, coro: Any, name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coro, name=f"moorage:{name}")
        task.add_done_callback(functools.partial(self._ended, name))
        self.tasks.append(task)
        return task

    def _ended(self, name: str, task: asyncio.Task[Any]) -> None:
        """Report a task that ended for any reason but `stop`; `lead` ends the task "follow"."""
        error = None if task.cancelled() else task.exception()
        stopping = self.engine.stopping
        if error is None and (stopping or (name == "follow" and task is not self._following)):
            return
        how = "was cancelled" if task.cancelled() else "returned" if error is None else f"failed: {failure_text(error)}"
        _log.error("A task of the scheduler ended", error=error, stack=True, task=name, how=how)
        if self.on_end is not None and not stopping:
            self.on_end(f"the task {name} of the scheduler {how}")

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Stop scheduling, wait at most `grace` seconds for sent binds and a quarter of that for events, and stop the
        informers."""
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


async def _in_daemon_thread(work: Callable[[], object]) -> None:
    """Run a function in a thread that does not keep the process from ending, however long it takes."""
    done: Future[object] = Future()

    def run() -> None:
        done.set_running_or_notify_cancel()
        try:
            work()
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="reload", daemon=True).start()
    await asyncio.wrap_future(done)


def _count_malformed(metrics: SchedulerMetrics | None) -> OnMalformed | None:
    if metrics is None:
        return None
    return lambda resource, problem: metrics.malformed.inc(str(resource))


def _count_rewinds(metrics: SchedulerMetrics | None) -> OnRewind | None:
    return None if metrics is None else lambda resource: metrics.rewinds.inc(str(resource))
