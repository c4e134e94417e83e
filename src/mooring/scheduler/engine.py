"""The engine: the single coroutine that drains the inbox, pops a pod, and runs its cycle.

    inbox ──drain──▶ stores, cache ──then──▶ queue ──pop──▶ cycle ──▶ binding task
      ▲                                                                  │
      └──────────────── permitted, bound, failed, dropped ◀──────────────┘

Nothing else changes stores, cache or queue, and nothing does while a cycle runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from mooring.api.pod import Pod
from mooring.api.resources import PODS
from mooring.framework.events import ASSIGNED_POD_DELETE
from mooring.framework.lifting import writes
from mooring.framework.ports import Change, Clock
from mooring.framework.queued import QueuedPod
from mooring.queue.scheduling_queue import SchedulingQueue
from mooring.runtime.committing import run_unreserve
from mooring.runtime.profile import Profile
from mooring.runtime.services import Services
from mooring.runtime.tasks import Tasks
from mooring.scheduler.attempt import Failure, Outcome
from mooring.scheduler.binding import BindingCycle
from mooring.scheduler.cycle import Placement, SchedulingCycle
from mooring.scheduler.failing import FailureHandler
from mooring.scheduler.fencing import MayWrite, always
from mooring.scheduler.handlers import Handlers, event_label
from mooring.scheduler.inbox import Inbox, WakeUp
from mooring.scheduler.records import RecordRing
from mooring.state.cache import ClusterCache
from mooring.state.pod_entry import bound_to
from mooring.state.stores import Stores
from mooring.telemetry import logs
from mooring.telemetry.instruments import Buckets
from mooring.telemetry.metrics import SchedulerMetrics

_log = logs.get(__name__)

SLICE_SECONDS = 0.005
"""Work between two turns of the event loop."""
GRACE_SECONDS = 20.0
"""How long a stopping engine waits for the outcome of binds."""
SLICE_CYCLES = 16
"""The same under virtual time, where work takes none."""


@dataclass(slots=True)
class Engine:
    """A scheduler that runs. Built by `assembly.assemble`; fed through `inbox`."""

    inbox: Inbox
    stores: Stores
    cache: ClusterCache
    queue: SchedulingQueue
    profiles: Mapping[str, Profile]
    handlers: Handlers
    cycle: SchedulingCycle
    binding: BindingCycle
    failures: FailureHandler
    records: RecordRing
    services: Services
    """What plugins reach through their Handle."""
    clock: Clock
    tasks: Tasks
    """Background work of plugins and status writes."""
    bindings: Tasks
    """Binding cycles under way."""
    _placed: dict[str, Placement] = field(default_factory=dict)
    """UID → the newest placement on its way; an older one has no say about the pod any more."""
    metrics: SchedulerMetrics | None = None
    _bound_at: dict[str, float] = field(default_factory=dict)
    """UID → when its bind was answered, until the watch shows it; for the watch's lag."""
    may_bind: MayWrite = always
    """Whether this replica leads. Without that nothing is popped."""
    _stopping: bool = False

    async def follow(self) -> None:
        """Keep stores, cache and queue current without scheduling, until cancelled: another replica leads."""
        while True:
            self.drain()
            await self.inbox.wait()

    async def run(self) -> None:
        """Schedule until `stop`. The informers' first listing should be in the inbox before this starts."""
        self._start_plugins()
        began, cycles = self.clock.now(), 0
        while not self._stopping:
            self.drain()
            self.queue.tick()
            info = self.queue.pop() if self.may_bind() else None
            if info is None:
                await self._idle()
                began, cycles = self.clock.now(), 0
                continue
            await self.schedule_one(info)
            cycles += 1
            if cycles >= SLICE_CYCLES or self.clock.now() - began > SLICE_SECONDS:
                await asyncio.sleep(0)
                began, cycles = self.clock.now(), 0

    def _start_plugins(self) -> None:
        for profile in self.profiles.values():
            for plugin in profile.plugins.values():
                if writes(plugin, "run"):
                    self.tasks.spawn(plugin.run(), plugin.name, "run")

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """No new attempts. Binds that have been sent are waited for, `grace` seconds at most: while the API
        is away nobody can say what became of them. Everything else is cancelled."""
        self._stopping = True
        self.inbox.post(lambda: None)
        await self.bindings.stop()
        if not await self.binding.drain(grace):
            _log.warning("Stopped without knowing the outcome of every bind", seconds=grace)
        self.drain()
        await self.tasks.stop()

    async def _idle(self) -> None:
        """Until something arrives or the queue has something due."""
        deadline = self.queue.next_deadline()
        if deadline is None:
            await self.inbox.wait()
            return
        timer = self.clock.call_later(max(0.0, deadline - self.clock.now()), self.inbox.post, lambda: None)
        try:
            await self.inbox.wait()
        finally:
            timer.cancel()

    def drain(self) -> None:
        """Apply everything that has arrived: all caches first, then the wake-ups, each in order."""
        applied: list[tuple[Buckets | None, float, list[WakeUp]]] = []
        timed = self.metrics is not None
        now = self.clock.now
        for item in self.inbox.drain():
            began = now() if timed else 0.0
            wake_ups: list[WakeUp] = []
            try:
                if isinstance(item, Change):
                    wake_ups = self.handlers.apply(item)
                elif (wake_up := item()) is not None:
                    wake_ups = [wake_up]
            except Exception as error:
                # One object must not stop the scheduler; the comparer finds what is left wrong.
                _log.error("Applying a change failed", error=error, stack=True, item=_describe(item))
            spread = self._spread_of(item)
            if wake_ups or spread is not None:
                applied.append((spread, now() - began if timed else 0.0, wake_ups))
        for spread, seconds, wake_ups in applied:
            began = now() if timed else 0.0
            for wake_up in wake_ups:
                try:
                    wake_up()
                except Exception as error:
                    _log.error("A wake-up failed", error=error, stack=True)
            if spread is not None:
                spread.observe(seconds + now() - began)

    def _spread_of(self, item: object) -> Buckets | None:
        """Where the time of an event is told; also notes how late the watch showed a bind of ours."""
        if self.metrics is None or not isinstance(item, Change):
            return None
        if self._bound_at and item.resource == PODS:
            pod = item.new if item.new is not None else item.old
            answered = self._bound_at.pop(pod.uid, None) if pod.is_assigned or item.new is None else None
            if answered is not None:
                self.metrics.watch_lag.observe(self.clock.now() - answered)
        return self.metrics.event_seconds.child(event_label(item))

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
            self.failures.handle(info, profile.name, result)
            return
        if result.attempt.state.to_activate:
            self.queue.activate(result.attempt.state.to_activate.values())
        self._placed[info.uid] = result
        self.bindings.spawn(self.binding.run(result), "binding", info.key)

    def is_placing(self, uid: str) -> bool:
        """Whether the pod is on its way to a node, its bind not yet settled."""
        return uid in self._placed

    # What binding tasks ask for, each carried out between cycles.

    def permitted(self, placement: Placement) -> None:
        def apply() -> None:
            self.queue.done(placement.pod.uid)

        self.inbox.post(apply)

    def bound(self, placement: Placement) -> None:
        answered = self.clock.now()

        def apply() -> WakeUp | None:
            self._end(placement)
            if self.metrics is not None:
                self._count_bound(self.metrics, placement, answered)
            chosen = placement.attempt.state.to_activate
            return (lambda: self.queue.activate(chosen.values())) if chosen else None

        self.inbox.post(apply)

    def _count_bound(self, metrics: SchedulerMetrics, placement: Placement, answered: float) -> None:
        info, meter = placement.attempt.info, placement.profile.meter
        if meter is not None:
            meter.attempted(Outcome.SCHEDULED.value, answered - placement.attempt.started)
        first = info.initial_attempt if info.initial_attempt is not None else answered
        metrics.bound(info.attempts, answered - first, info.was_flushed)
        if self.cache.is_assumed(info.uid):
            self._bound_at[info.uid] = answered
        else:
            metrics.watch_lag.observe(0.0)  # the watch was faster than the answer

    def failed(self, placement: Placement, failure: Failure) -> None:
        def apply() -> WakeUp:
            self._give_back(placement)
            if (meter := placement.profile.meter) is not None:
                meter.attempted(failure.outcome.value, self.clock.now() - placement.attempt.started)
            return lambda: self._requeue(placement, failure)

        self.inbox.post(apply)

    def dropped(self, placement: Placement) -> None:
        def apply() -> WakeUp:
            self._give_back(placement)
            self.queue.done(placement.pod.uid)
            return lambda: self.queue.on_event(ASSIGNED_POD_DELETE, _left(placement), None)

        self.inbox.post(apply)

    def _give_back(self, placement: Placement) -> None:
        run_unreserve(placement.profile, placement.attempt.state, placement.pod, placement.node)
        # A pod that was confirmed meanwhile, or forgotten and placed anew, is not ours to forget.
        if self._end(placement) and self.cache.is_assumed(placement.pod.uid):
            self.cache.forget(placement.pod.uid)

    def _end(self, placement: Placement) -> bool:
        """The placement is over; whether it was still the pod's newest."""
        newest = self._placed.get(placement.pod.uid) is placement
        if newest:
            del self._placed[placement.pod.uid]
        return newest

    def _requeue(self, placement: Placement, failure: Failure) -> None:
        """The pod returns first and the room that it leaves wakes others only: its own must not wake it."""
        info = placement.attempt.info
        placement.note_failure(failure)
        self.failures.handle(info, placement.profile.name, failure)
        self.queue.on_event(
            ASSIGNED_POD_DELETE, _left(placement), None, only=lambda other: other.uid != info.uid
        )


def _left(placement: Placement) -> Pod:
    """The pod as hints expect one that had a place: with the node that it leaves."""
    return bound_to(placement.pod, placement.node)


def _describe(item: object) -> str:
    if not isinstance(item, Change):
        return repr(item)
    obj = item.new if item.new is not None else item.old
    return f"{item.resource} {getattr(obj, 'key', '?')}"
