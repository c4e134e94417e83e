"""What is done between two cycles, as values: they are compared in tests, printed in logs, and executed in
order.

Changes of objects (`handlers`), the ends of bindings (`placements`) and plugins lead to instructions. The
engine first brings stores and cache up to date for everything that has arrived, and then executes the
instructions: so no pod is woken into a state that does not yet show what woke it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api.pod import Pod
from moorage.framework.events import ClusterEvent, QueuedPod
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.failing import Failure, FailureHandler
from moorage.state.cache import ClusterCache


class Enqueue(msgspec.Struct, frozen=True):
    """A pending pod has appeared."""

    pod: Pod


class UpdateQueued(msgspec.Struct, frozen=True):
    """A pending pod has changed. One that is being bound is no longer the queue's."""

    old: Pod
    new: Pod


class Remove(msgspec.Struct, frozen=True):
    """A pod is no longer pending: deleted, or bound. `pod` is its newest object, so that a pod which is bound
    where it was nominated gives no space up."""

    pod: Pod


class Wake(msgspec.Struct, frozen=True):
    """Something happened that may make refused pods schedulable."""

    event: ClusterEvent
    old: Any = None
    new: Any = None
    besides: str = ""
    """UID of a pod that the event is not for: its own."""


class Activate(msgspec.Struct, frozen=True):
    """A plugin wants these pods in the active queue now."""

    pods: tuple[Pod, ...]
    plugin: str = ""


class Resort(msgspec.Struct, frozen=True):
    """The QueueSort keys of the pods with these UIDs have changed."""

    uids: tuple[str, ...]


class EndFlight(msgspec.Struct, frozen=True):
    """The events that a pod missed are no longer needed: it will not come back by itself."""

    uid: str


class Requeue(msgspec.Struct, frozen=True):
    """An attempt ended without a bound pod: back to the queue, with an event and a condition for the user."""

    info: QueuedPod
    profile: str
    failure: Failure


class Inspect(msgspec.Struct, frozen=True):
    """Look at stores, cache and queue while they are all up to date and no cycle runs."""

    name: str
    look: Callable[[], object]


Instruction = Enqueue | UpdateQueued | Remove | Wake | Activate | Resort | EndFlight | Requeue | Inspect


class InstructionExecutor:
    """Carries instructions out."""

    def __init__(self, queue: SchedulingQueue, cache: ClusterCache, failures: FailureHandler) -> None:
        self._queue = queue
        self._cache = cache
        self._failures = failures
        self._by_type: dict[type, Callable[[Any], object]] = {
            Enqueue: lambda it: queue.add(it.pod),
            UpdateQueued: self._update,
            Remove: lambda it: queue.delete(it.pod),
            Wake: self._wake,
            Activate: lambda it: queue.activate(it.pods, it.plugin),
            Resort: lambda it: queue.resort(it.uids),
            EndFlight: lambda it: queue.done(it.uid),
            Requeue: lambda it: failures.handle(it.info, it.profile, it.failure),
            Inspect: lambda it: it.look(),
        }

    def execute(self, instruction: Instruction) -> None:
        self._by_type[type(instruction)](instruction)

    def _update(self, update: UpdateQueued) -> None:
        uid = update.new.uid
        if uid in self._queue or not self._cache.is_assumed(uid):
            self._queue.update(update.old, update.new)

    def _wake(self, wake: Wake) -> None:
        if not wake.besides:
            self._queue.on_event(wake.event, wake.old, wake.new)
            return
        uid = wake.besides
        self._queue.on_event(wake.event, wake.old, wake.new, only=lambda other: other.uid != uid)
