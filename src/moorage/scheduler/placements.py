"""Placements in progress: pods between their assumption and the API server's confirmation.

A binding task posts its result. `Placements.apply` updates the cache between two cycles and returns
instructions for the queue.
"""

from __future__ import annotations

import msgspec

from moorage.api.pod import Pod
from moorage.framework.events import ASSIGNED_POD_DELETE
from moorage.framework.ports import Change, Clock
from moorage.runtime.binding import run_unreserve
from moorage.scheduler.cycle import PodPlacement
from moorage.scheduler.failing import AttemptOutcome, Failure
from moorage.scheduler.instructions import Activate, EndFlight, Instruction, Requeue, Wake
from moorage.state.cache import ClusterCache
from moorage.state.pod_entry import bound_to
from moorage.telemetry.metrics import SchedulerMetrics


class Permitted(msgspec.Struct, frozen=True):
    """The pod has passed Permit. If it fails from now on, it is retried after backoff."""

    placement: PodPlacement


class Bound(msgspec.Struct, frozen=True):
    """The API server has bound the pod."""

    placement: PodPlacement
    answered: float
    """When the API server responded."""


class Failed(msgspec.Struct, frozen=True):
    """The pod was not bound. It releases its node and is tried again."""

    placement: PodPlacement
    failure: Failure


class Dropped(msgspec.Struct, frozen=True):
    """The pod was deleted or bound by another scheduler. It releases its node and is not tried again."""

    placement: PodPlacement


BindingEvent = Permitted | Bound | Failed | Dropped


class Placements:
    """The placements in progress by UID. An older placement of a pod no longer counts."""

    def __init__(self, cache: ClusterCache, clock: Clock, metrics: SchedulerMetrics | None = None) -> None:
        self._cache = cache
        self._clock = clock
        self._metrics = metrics
        self._newest: dict[str, PodPlacement] = {}
        self._bound_at: dict[str, float] = {}
        """UID → when the API server confirmed the bind, until the watch shows it. Used to measure the lag of
        the watch."""

    def begin(self, placement: PodPlacement) -> None:
        """Add a placement."""
        self._newest[placement.pod.uid] = placement

    def __contains__(self, uid: object) -> bool:
        """Return whether the pod is assumed and its bind is not settled."""
        return uid in self._newest

    def apply(self, event: BindingEvent) -> list[Instruction]:
        """Update the cache, and return the instructions for the queue."""
        placement = event.placement
        if isinstance(event, Permitted):
            return [EndFlight(placement.pod.uid)]
        if isinstance(event, Bound):
            return self._bound(placement, event.answered)
        self._give_back(placement)
        leaving = bound_to(placement.pod, placement.node)  # as hints expect it: with the node that it leaves
        if isinstance(event, Dropped):
            return [EndFlight(placement.pod.uid), Wake(ASSIGNED_POD_DELETE, leaving)]
        if (meter := placement.profile.meter) is not None:
            meter.attempted(event.failure.outcome.value, self._clock.now() - placement.attempt.started)
        placement.note_failure(event.failure)
        # Requeue the pod first. The space that it releases must requeue other pods, but not the pod itself.
        info = placement.attempt.info
        requeue = Requeue(info, placement.profile.name, event.failure)
        return [requeue, Wake(ASSIGNED_POD_DELETE, leaving, besides=info.uid)]

    def _bound(self, placement: PodPlacement, answered: float) -> list[Instruction]:
        self._end(placement)
        if self._metrics is not None:
            self._count_bound(self._metrics, placement, answered)
        chosen = placement.attempt.state.to_activate
        return [Activate(tuple(chosen.values()))] if chosen else []

    def _count_bound(self, metrics: SchedulerMetrics, placement: PodPlacement, answered: float) -> None:
        info, meter = placement.attempt.info, placement.profile.meter
        if meter is not None:
            meter.attempted(AttemptOutcome.SCHEDULED.value, answered - placement.attempt.started)
        first = info.initial_attempt if info.initial_attempt is not None else answered
        metrics.bound(info.attempts, answered - first, info.was_flushed)
        if self._cache.is_assumed(info.uid):
            self._bound_at[info.uid] = answered
        else:
            metrics.watch_lag.observe(0.0)  # the watch was faster than the response

    def seen(self, change: Change) -> None:
        """Record how long the watch took to show one of our binds."""
        if not self._bound_at or self._metrics is None:
            return
        pod: Pod = change.new if change.new is not None else change.old
        answered = self._bound_at.pop(pod.uid, None) if pod.is_assigned or change.new is None else None
        if answered is not None:
            self._metrics.watch_lag.observe(self._clock.now() - answered)

    def _give_back(self, placement: PodPlacement) -> None:
        run_unreserve(placement.profile, placement.attempt.state, placement.pod, placement.node)
        # Do not forget a pod that was confirmed, or forgotten and placed again.
        if self._end(placement) and self._cache.is_assumed(placement.pod.uid):
            self._cache.forget(placement.pod.uid)

    def _end(self, placement: PodPlacement) -> bool:
        """Remove a placement. Return whether it was the newest of its pod."""
        newest = self._newest.get(placement.pod.uid) is placement
        if newest:
            del self._newest[placement.pod.uid]
        return newest
