"""Instructions: the work to do between two cycles, as values that tests can compare and logs can print.

Changes of objects (`handlers`), results of bindings (`placements`) and plugins produce instructions. The
engine first applies everything that has arrived to stores and cache, and then executes the instructions. So a
pod is never requeued into a state that does not show the event that requeued it.
"""

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
    """Add a pending pod to the queue."""

    pod: Pod


class UpdateQueued(msgspec.Struct, frozen=True):
    """Update a pending pod. A pod that is being bound is no longer in the queue."""

    old: Pod
    new: Pod


class Remove(msgspec.Struct, frozen=True):
    """Remove a pod that was deleted or bound.

    `pod` is the newest object, so that a pod bound to the node it was nominated to releases no space.
    """

    pod: Pod


class Wake(msgspec.Struct, frozen=True):
    """Requeue the unschedulable pods that an event may help."""

    event: ClusterEvent
    old: Any = None
    new: Any = None
    besides: str = ""
    """UID of a pod that the event does not concern: the pod that caused it."""


class Activate(msgspec.Struct, frozen=True):
    """Move pods to the active queue at the request of a plugin."""

    pods: tuple[Pod, ...]
    plugin: str = ""


class Resort(msgspec.Struct, frozen=True):
    """Sort the pods with these UIDs again, because their QueueSort keys have changed."""

    uids: tuple[str, ...]


class EndFlight(msgspec.Struct, frozen=True):
    """Stop keeping events for a pod that will not be requeued with them."""

    uid: str


class Requeue(msgspec.Struct, frozen=True):
    """Requeue a pod whose attempt failed, with an event and a condition."""

    info: QueuedPod
    profile: str
    failure: Failure


class Inspect(msgspec.Struct, frozen=True):
    """Look at stores, cache and queue while all are up to date and no cycle runs."""

    name: str
    look: Callable[[], object]


Instruction = Enqueue | UpdateQueued | Remove | Wake | Activate | Resort | EndFlight | Requeue | Inspect


class InstructionExecutor:
    """Executes instructions."""

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
        """Execute one instruction."""
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
