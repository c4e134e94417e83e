"""The engine: the single coroutine that drains the inbox, pops a pod, and runs its cycle.

    inbox ──drain──▶ stores, cache ──then──▶ queue ──pop──▶ cycle ──▶ binding task
      ▲                                                                  │
      └──────────────── permitted, bound, failed, dropped ◀──────────────┘

Nothing else changes stores, cache or queue, and nothing does while a cycle runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from moorage.api.resources import PODS
from moorage.framework.events import QueuedPod
from moorage.framework.ports import Change, Clock, Served
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.runtime.profile import Profile
from moorage.runtime.services import MayWrite, Services, Tasks, always
from moorage.scheduler.binding import BindingCycle
from moorage.scheduler.cycle import SchedulingCycle
from moorage.scheduler.failing import Failure, FailureHandler
from moorage.scheduler.generation import Builder, Generation
from moorage.scheduler.handlers import Handlers, event_label
from moorage.scheduler.instructions import Instruction, InstructionExecutor, Requeue
from moorage.scheduler.placements import BindingEvent, Placements
from moorage.scheduler.queue_hooks import ProfileHooks
from moorage.scheduler.records import RecordRing
from moorage.state.cache import ClusterCache
from moorage.state.stores import Stores
from moorage.telemetry import logs
from moorage.telemetry.instruments import Buckets
from moorage.telemetry.metrics import SchedulerMetrics
from moorage.telemetry.tracing import Tracing

_log = logs.get(__name__)

SLICE_SECONDS = 0.005
"""Work between two turns of the event loop."""
GRACE_SECONDS = 20.0
"""How long a stopping engine waits for the outcome of binds."""
SLICE_CYCLES = 16
"""Cycles between two turns under virtual time, where work takes none."""

Item = Change | Served | BindingEvent | Instruction


class Inbox:
    """Everything that wants to change stores, cache or queue waits here until no cycle runs: changes of
    informers, events of binding tasks, instructions of plugins. Ordered and unbounded: what is dropped here
    would be lost."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._arrived = asyncio.Event()

    def post(self, item: Item) -> None:
        self._items.append(item)
        self._arrived.set()

    def wake(self) -> None:
        """End the engine's idling although nothing has arrived."""
        self._arrived.set()

    def drain(self) -> list[Item]:
        """All that has arrived, in order."""
        items = list(self._items)
        self._items.clear()
        self._arrived.clear()
        return items

    def __len__(self) -> int:
        return len(self._items)

    async def wait(self) -> None:
        """Until something has arrived. What is there already was posted by plugins while they were called
        between cycles; a plugin that always posts more must not hold the loop up."""
        if self._items:
            await asyncio.sleep(0)
        await self._arrived.wait()


@dataclass(slots=True)
class Engine:
    """A scheduler that runs. Built by `assembly.assemble`; fed through `inbox`."""

    inbox: Inbox
    stores: Stores
    cache: ClusterCache
    queue: SchedulingQueue
    profiles: dict[str, Profile]
    """Those of the generation; the same dictionary over all reloads."""
    hooks: ProfileHooks
    builder: Builder
    generation: Generation
    handlers: Handlers
    placements: Placements
    failures: FailureHandler
    executor: InstructionExecutor
    cycle: SchedulingCycle
    binding: BindingCycle
    records: RecordRing
    clock: Clock
    tasks: Tasks
    """Background work of plugins and status writes."""
    bindings: Tasks
    """Binding cycles under way."""
    metrics: SchedulerMetrics | None = None
    tracing: Tracing | None = None
    may_bind: MayWrite = always
    """Whether this replica leads. Without that nothing is popped."""
    _stopping: bool = False
    _leads: bool = False
    """Whether `run` of the plugins is to be running."""
    _between: deque[tuple[Callable[[], object], asyncio.Future[None]]] = field(default_factory=deque)

    @property
    def services(self) -> Services:
        """What plugins reach through their Handle."""
        return self.generation.services

    async def between_cycles(self, work: Callable[[], object]) -> None:
        """Do `work` when no cycle runs, before anything that has arrived is applied. Raises what it raises;
        cancelled when the engine stops first."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._between.append((work, done))
        self.inbox.wake()
        await done

    async def stand_by(self) -> None:
        """Keep stores, cache and queue current without scheduling, until cancelled: another replica leads."""
        while True:
            self.drain()
            await self.inbox.wait()

    async def run(self) -> None:
        """Schedule until `stop`. The informers' first listing should be in the inbox before this starts."""
        self._leads = True
        self.start_runs()
        began, cycles = self.clock.now(), 0
        while not self._stopping:
            self.drain()
            self.queue.tick()
            info = self.queue.pop() if self.may_bind() else None
            if info is None:
                await self._idle()
                began, cycles = self.clock.now(), 0
                continue
            await (self.schedule_one(info) if self.tracing is None else self._trace_one(info, self.tracing))
            cycles += 1
            if cycles >= SLICE_CYCLES or self.clock.now() - began > SLICE_SECONDS:
                await asyncio.sleep(0)
                began, cycles = self.clock.now(), 0

    def start_runs(self) -> None:
        """Start `run` of the generation's plugins, on the leader."""
        if self._leads and not self._stopping:
            self.generation.start(self.clock, self.metrics)

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """No new attempts. Binds that have been sent are waited for, `grace` seconds at most: while the API
        is away it is not known what became of them. Everything else is cancelled."""
        self._stopping = True
        self.inbox.wake()
        await self.bindings.stop()
        if not await self.binding.drain(grace):
            _log.warning("Stopped without knowing the outcome of every bind", seconds=grace)
        self.drain()
        while self._between:
            self._between.popleft()[1].cancel()
        await self.tasks.stop()
        for extender in self.services.extenders:
            await extender.close()

    async def _idle(self) -> None:
        """Until something arrives or the queue has something due."""
        deadline = self.queue.next_deadline()
        if deadline is None:
            await self.inbox.wait()
            return
        timer = self.clock.call_later(max(0.0, deadline - self.clock.now()), self.inbox.wake)
        try:
            await self.inbox.wait()
        finally:
            timer.cancel()

    def drain(self) -> None:
        """Apply everything that has arrived: all caches first, then the callbacks of plugins, then the
        instructions, each in order."""
        while self._between and not self._stopping:
            self._do(*self._between.popleft())
        applied: list[tuple[Buckets | None, float, Sequence[Instruction]]] = []
        timed, now = self.metrics is not None, self.clock.now
        for item in self.inbox.drain():
            began = now() if timed else 0.0
            instructions: Sequence[Instruction] = ()
            try:
                instructions = self._apply(item)
            except Exception as error:
                # One object must not stop the scheduler; the comparer finds what stays wrong.
                _log.error("Applying a change failed", error=error, stack=True, item=_describe(item))
            histogram = self._histogram_of(item)
            if instructions or histogram is not None:
                applied.append((histogram, now() - began if timed else 0.0, instructions))
        if self.generation.callbacks.noted:
            self.generation.callbacks.call()
        for histogram, seconds, instructions in applied:
            began = now() if timed else 0.0
            for instruction in instructions:
                try:
                    self.executor.execute(instruction)
                except Exception as error:
                    name = type(instruction).__name__
                    _log.error("An instruction failed", error=error, stack=True, instruction=name)
            if histogram is not None:
                histogram.observe(seconds + now() - began)

    def _do(self, work: Callable[[], object], done: asyncio.Future[None]) -> None:
        if done.cancelled():
            return
        try:
            work()
            done.set_result(None)
        except Exception as error:
            done.set_exception(error)

    def _apply(self, item: Item) -> Sequence[Instruction]:
        if isinstance(item, Change):
            return self.handlers.apply(item)
        if isinstance(item, BindingEvent):
            return self.placements.apply(item)
        if isinstance(item, Served):
            return self.handlers.serve(item)
        return (item,)

    def _histogram_of(self, item: Item) -> Buckets | None:
        """Where the time of a change is recorded."""
        if self.metrics is None or not isinstance(item, Change):
            return None
        if item.resource == PODS:
            self.placements.seen(item)
        return self.metrics.event_seconds.child(event_label(item))

    async def _trace_one(self, info: QueuedPod, tracing: Tracing) -> None:
        """`schedule_one` in a span, which the binding belongs to as well."""
        pod = info.pod

        def outcome() -> dict[str, str | int]:
            record = self.records.last(pod.key)
            if record is None or (record.uid, record.attempt) != (pod.uid, info.attempts):
                return {}  # it was skipped
            counts = {
                "moorage.nodes.evaluated": record.evaluated_nodes,
                "moorage.nodes.feasible": record.feasible_nodes,
            }
            where = {"k8s.node.name": record.node} if record.node else {"moorage.message": record.message}
            return {"moorage.result": record.result, **where, **counts}

        attributes = {
            "k8s.pod.name": pod.name,
            "k8s.namespace.name": pod.namespace,
            "k8s.pod.uid": pod.uid,
            "moorage.profile": pod.scheduler_name,
            "moorage.attempt": info.attempts,
        }
        await tracing.attempt(self.schedule_one(info), pod.annotations, attributes, outcome)

    async def schedule_one(self, info: QueuedPod) -> None:
        """One attempt, and its binding started or its failure handled."""
        profile = self.profiles.get(info.pod.scheduler_name)
        if profile is None or self.cycle.must_skip(info.pod, profile):
            self.queue.done(info.uid)
            return
        result = await self.cycle.run(info, profile)
        if self._stopping:
            return  # an extender or PostFilter took its time; nothing is sent any more
        if isinstance(result, Failure):
            self.executor.execute(Requeue(info, profile.name, result))
            return
        if result.attempt.state.to_activate:
            self.queue.activate(result.attempt.state.to_activate.values())
        self.placements.begin(result)
        self.bindings.spawn(self.binding.run(result), "binding", info.key)


def _describe(item: object) -> str:
    if not isinstance(item, Change):
        return repr(item)
    obj = item.new if item.new is not None else item.old
    return f"{item.resource} {getattr(obj, 'key', '?')}"
