"""The engine: the coroutine that drains the inbox, pops a pod, and runs its scheduling cycle.

    inbox ──drain──▶ stores, cache ──then──▶ queue ──pop──▶ cycle ──▶ binding task
      ▲                                                                  │
      └──────────────── permitted, bound, failed, dropped ◀──────────────┘

Only the engine changes stores, cache and queue, and it never does so while a cycle runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from moorage.api.failures import is_interruption
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
from moorage.scheduler.handlers import Handlers
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
"""Maximum seconds of work before the event loop gets its turn."""
GRACE_SECONDS = 20.0
"""How long a stopping engine waits for the outcome of binds."""
SLICE_CYCLES = 16
"""Maximum cycles before the event loop gets its turn. Needed in virtual time, where work takes no time."""

Item = Change | Served | BindingEvent | Instruction


class Inbox:
    """Holds everything that will change stores, cache or queue until no cycle runs.

    Informers post changes, binding tasks post their results, and plugins post instructions. The inbox is
    ordered and unbounded, because a dropped item would be lost.
    """

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._arrived = asyncio.Event()

    def post(self, item: Item) -> None:
        """Add an item and wake the engine."""
        self._items.append(item)
        self._arrived.set()

    def wake(self) -> None:
        """Wake the engine although nothing was posted."""
        self._arrived.set()

    def drain(self) -> list[Item]:
        """Remove and return all items, in order."""
        items = list(self._items)
        self._items.clear()
        self._arrived.clear()
        return items

    def __len__(self) -> int:
        return len(self._items)

    async def wait(self) -> None:
        """Wait until something is posted.

        If items are present already, plugins posted them between cycles. The event loop gets its turn first,
        so that a plugin that keeps posting does not block it.
        """
        if self._items:
            await asyncio.sleep(0)
        await self._arrived.wait()


@dataclass(slots=True)
class Engine:
    """A scheduler. `assembly.assemble` builds it, and `inbox` feeds it."""

    inbox: Inbox
    stores: Stores
    cache: ClusterCache
    queue: SchedulingQueue
    profiles: dict[str, Profile]
    """The profiles of the current generation. The dictionary stays the same object across reloads."""
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
    """Background tasks of plugins, and writes of pod status."""
    bindings: Tasks
    """Binding cycles in progress."""
    metrics: SchedulerMetrics | None = None
    tracing: Tracing | None = None
    may_bind: MayWrite = always
    """Returns whether this replica leads. Only the leader pops pods."""
    _stopping: bool = False
    _leads: bool = False
    """Whether the `run` methods of plugins should be running."""
    _between: deque[tuple[Callable[[], object], asyncio.Future[None]]] = field(default_factory=deque)

    @property
    def stopping(self) -> bool:
        """Return whether `stop` was called."""
        return self._stopping

    @property
    def services(self) -> Services:
        """The services that plugins use through their Handle."""
        return self.generation.services

    async def between_cycles(self, work: Callable[[], object]) -> None:
        """Call `work` when no cycle runs, before received changes are applied.

        Raises what `work` raises. The call is cancelled if the engine stops first.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._between.append((work, done))
        self.inbox.wake()
        await done

    async def stand_by(self) -> None:
        """Keep stores, cache and queue current without scheduling, until cancelled. Used while another
        replica leads."""
        while True:
            self.drain()
            await self.inbox.wait()

    async def run(self) -> None:
        """Schedule pods until `stop` is called. The first listing of the informers should be in the inbox
        before this starts."""
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
        """Start the `run` methods of the generation's plugins if this replica leads."""
        if self._leads and not self._stopping:
            self.generation.start(self.clock, self.metrics)

    def run_plugins(self) -> None:
        """Start the `run` methods now and after every reload, in an engine that follows without scheduling."""
        self._leads = True
        self.start_runs()

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Stop scheduling, and wait up to `grace` seconds for binds that were sent.

        If the API server does not respond in time, the outcome of these binds stays unknown. Everything else
        is cancelled.
        """
        self._stopping = True
        self.inbox.wake()
        self.binding.stopping = True
        await self.bindings.stop()
        if not await self.binding.drain(grace):
            _log.warning("Stopped before the outcome of every bind was known", seconds=grace)
        self.drain()
        while self._between:
            self._between.popleft()[1].cancel()
        await self.tasks.stop()
        for extender in self.services.extenders:
            await extender.close()

    async def _idle(self) -> None:
        """Wait until something is posted or the queue has a deadline."""
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
        """Apply everything in the inbox: update all caches, then call the plugins' callbacks, then execute
        the instructions, each in order."""
        while self._between and not self._stopping:
            self._do(*self._between.popleft())
        applied: list[tuple[Buckets | None, float, Sequence[Instruction]]] = []
        timed, now = self.metrics is not None, self.clock.now
        for item in self.inbox.drain():
            began = now() if timed else 0.0
            instructions: Sequence[Instruction] = ()
            try:
                instructions = self._apply(item)
            except BaseException as error:
                if is_interruption(error):
                    raise
                # A single object must not stop the scheduler. The comparer finds what stays wrong.
                _log.error("Cannot apply a change", error=error, stack=True, item=_describe(item))
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
                except BaseException as error:
                    if is_interruption(error):
                        raise
                    name = type(instruction).__name__
                    _log.error("Cannot execute an instruction", error=error, stack=True, instruction=name)
            if histogram is not None:
                histogram.observe(seconds + now() - began)

    def _do(self, work: Callable[[], object], done: asyncio.Future[None]) -> None:
        if done.cancelled():
            return
        try:
            work()
            done.set_result(None)
        except BaseException as error:
            if is_interruption(error):
                raise
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
        """Return the histogram that records the handling time of a change."""
        if self.metrics is None or not isinstance(item, Change):
            return None
        if item.resource == PODS:
            self.placements.seen(item)
        return self.metrics.event_seconds.child(self.handlers.event_label(item))

    async def _trace_one(self, info: QueuedPod, tracing: Tracing) -> None:
        """Run `schedule_one` in a span that also covers the binding."""
        pod = info.pod

        def outcome() -> dict[str, str | int]:
            record = self.records.last(pod.key)
            if record is None or (record.uid, record.attempt) != (pod.uid, info.attempts):
                return {}  # the pod was skipped
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
        """Run one attempt, then start the binding or handle the failure."""
        profile = self.profiles.get(info.pod.scheduler_name)
        if profile is None or self.cycle.must_skip(info.pod, profile):
            self.queue.done(info.uid)
            return
        result = await self.cycle.run(info, profile)
        if self._stopping:
            return  # the engine stopped during an extender call or PostFilter; nothing is sent any more
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
