"""Engines without an API server: for questions, checks and measurements in memory.

`offline_engine` builds a whole engine that can schedule. `question_engine` builds what questions need of one:
stores, cache and profiles, without a queue, binding cycles or records. `load` fills either with objects.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.api.failures import is_interruption
from moorage.api.pod import Pod
from moorage.api.resources import Resource
from moorage.app.clock import SystemClock
from moorage.app.configuration import Configuration
from moorage.framework.ports import Change, Clock, Extender, ObjectList, Served, WatchEvent
from moorage.queue.inflight import PodNominator
from moorage.runtime.profile import Profile
from moorage.runtime.services import Services, Tasks, WaitingPods
from moorage.scheduler.assembly import assemble
from moorage.scheduler.engine import Engine
from moorage.scheduler.generation import Builder, Generation, Ports
from moorage.scheduler.handlers import Handlers
from moorage.scheduler.instructions import Enqueue, Instruction, Remove, UpdateQueued
from moorage.scheduler.queue_hooks import run_pre_enqueue
from moorage.state.cache import ClusterCache
from moorage.state.cluster import ClusterState
from moorage.state.stores import Stores
from moorage.telemetry import logs

_log = logs.get(__name__)

BATCH = 10_000
"""Objects that are delivered before they are applied."""


def offline_engine(
    configured: Configuration, seed: int = 0, extenders: Sequence[Extender] = (), clock: Clock | None = None
) -> Engine:
    """Build an engine with all profiles of the configuration; writes succeed and change nothing."""
    ports = _ports(seed, extenders, clock)
    return assemble(configured.config, configured.profiles, configured.registry, ports, behaviour=configured.behaviour)


def _ports(seed: int = 0, extenders: Sequence[Extender] = (), clock: Clock | None = None) -> Ports:
    return Ports(NoApi(), clock or SystemClock(), random.Random(seed), NoEvents(), extenders=extenders)


class Mailbox(deque[Change | Served | Instruction]):
    """Changes that have been delivered and not applied yet."""

    post = deque.append


@dataclass(slots=True)
class QuestionEngine:
    """A cluster in memory and the profiles that are asked about it. It never schedules by itself."""

    stores: Stores
    cache: ClusterCache
    handlers: Handlers
    generation: Generation
    nominator: PodNominator
    tasks: Tasks
    inbox: Mailbox

    @property
    def profiles(self) -> Mapping[str, Profile]:
        return self.generation.profiles

    @property
    def services(self) -> Services:
        """What plugins reach through their Handle."""
        return self.generation.services

    def drain(self) -> None:
        """Apply everything that was posted, then call the callbacks of plugins, as the engine does."""
        items = list(self.inbox)
        self.inbox.clear()
        for item in items:
            try:
                self._apply(item)
            except BaseException as error:  # one object must not end the question
                if is_interruption(error):
                    raise
                _log.error("Applying a change failed", error=error, stack=True, item=repr(item)[:200])
        if self.generation.callbacks.noted:
            self.generation.callbacks.call()

    def _apply(self, item: Change | Served | Instruction) -> None:
        if isinstance(item, Served):
            self.handlers.serve(item)
        elif isinstance(item, Change):
            for instruction in self.handlers.apply(item):
                self._nominate(instruction)

    def _nominate(self, instruction: Instruction) -> None:
        """Keep the nominations of pending pods, which the queue of an engine would keep. Up to 1.36 a gated pod held
        no space that others could use."""
        gated_too = self.services.cluster.behaviour.gated_pods_keep_nomination
        match instruction:
            case Enqueue(pod) if node := pod.nominated_node_name:
                if gated_too or run_pre_enqueue(self.profiles[pod.scheduler_name], pod) is None:
                    self.nominator.nominate(pod, node)
            case UpdateQueued(old, new):
                self.nominator.updated(old, new)
            case Remove(pod):
                self.nominator.forget(pod.uid)


def question_engine(
    configured: Configuration,
    changes: Iterable[Change | Served] = (),
    *,
    clock: Clock | None = None,
    extenders: Sequence[Extender] = (),
) -> QuestionEngine:
    """Build all profiles of the configuration, looking at all nodes, and load the objects. Only the given extenders are
    asked, and not those of the configuration."""
    configured = configured.looking_at_all_nodes()
    cluster, tasks, inbox = ClusterState(configured.behaviour), Tasks(), Mailbox()
    ports = _ports(clock=clock)
    waiting, nominator = WaitingPods(ports.clock), PodNominator(lambda uid: False)
    builder = Builder(ports, inbox.post, cluster, nominator, tasks, waiting, lambda uid, reason: False)
    generation = builder.build(configured.profiles, configured.registry, extenders)

    def serves(pod: Pod) -> bool:
        return pod.scheduler_name in generation.profiles

    handlers = Handlers(cluster.stores, cluster.cache, waiting, serves, behaviour=configured.behaviour)
    engine = QuestionEngine(cluster.stores, cluster.cache, handlers, generation, nominator, tasks, inbox)
    load(engine, changes)
    return engine


AnyEngine = Engine | QuestionEngine
"""Both can be loaded and asked."""


def load(engine: AnyEngine, changes: Iterable[Change | Served]) -> None:
    """Deliver changes to an engine and apply them, in batches."""
    for number, change in enumerate(changes, 1):
        engine.inbox.post(change)
        if number % BATCH == 0:
            engine.drain()
    engine.drain()


class NoEvents:
    """An event recorder that drops all events."""

    def event(self, regarding: Any, **_: Any) -> None:
        pass


class NoApi:
    """An API client whose writes succeed and change nothing."""

    async def list(self, resource: Resource, **_: Any) -> ObjectList:
        return ObjectList((), "0")

    async def watch(self, resource: Resource, **_: Any) -> AsyncIterator[WatchEvent]:
        return
        yield

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        return None

    async def create(self, resource: Resource, obj: Any, **_: Any) -> Any:
        return obj

    async def replace(self, resource: Resource, obj: Any, **_: Any) -> Any:
        return obj

    async def patch(self, resource: Resource, name: str, patch: Any, **_: Any) -> Any:
        return None

    async def delete(self, resource: Resource, name: str, **_: Any) -> None:
        return None

    async def bind(self, name: str, namespace: str, uid: str, node: str) -> None:
        return None
