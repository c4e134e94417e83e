"""Read access to the pending pods: where each pod is and why, how many there are, and which plugins hold them.

This module never moves a pod; `scheduling_queue` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.framework.events import FORCE_ACTIVATE, QueuedPod
from moorage.queue.inflight import InFlight, InFlightPod, PodNominator
from moorage.queue.places import ACTIVE, BACKOFF, GATED, INFLIGHT, UNSCHEDULABLE, Entrance, Place, QueuePlaces, Slot
from moorage.queue.slowness import is_slow
from moorage.queue.unschedulable import Flush


class QueueCorrupted(RuntimeError):
    """An invariant of the queue is violated. This is a bug in the queue, never the fault of its input."""


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a pod in the queue. Times are monotonic seconds of the queue's clock."""

    place: Place
    why: str
    """Why the pod is there, as a sentence for users."""
    since: float
    until: float | None = None
    """When the pod moves without an event, or None if it moves only by an event or when it is popped."""
    plugins: tuple[str, ...] = ()
    """The plugins that keep the pod there, sorted."""


def locate(info: QueuedPod, place: Place, since: float, until: float | None) -> Location:
    """Describe the place of a pod."""
    plugins = (info.gating_plugin,) if place == GATED else tuple(sorted(info.unschedulable_plugins))
    return Location(place, _WHY[place](info), since, until, plugins)


def _active(info: QueuedPod) -> str:
    cause = f", moved by {info.woken_by}" if info.woken_by else ""
    asked = f" (hint of {info.woken_hint})" if info.woken_hint else ""
    if info.woken_by == FORCE_ACTIVATE.label:
        asked = f" of {info.woken_hint}" if info.woken_hint else ""
    behind = " Its attempts are slow, so it is tried behind all other pods." if is_slow(info) else ""
    return f"Waits for its turn{cause}{asked}.{behind}"


def _backoff(info: QueuedPod) -> str:
    if info.slow_attempts:
        return f"Its last attempt took {info.slow_seconds:.1f}s and held up other pods; backs off."
    if info.unschedulable_plugins:
        refused = f"Refused {_times(info.unschedulable_count)}"
        return f"{refused}, last by {_names(info.unschedulable_plugins)}; backs off."
    return f"Failed with an error {_times(info.consecutive_errors)} in a row; backs off."


def _unschedulable(info: QueuedPod) -> str:
    return f"Refused by {_names(info.unschedulable_plugins)}; waits for an event that may change that."


def _gated(info: QueuedPod) -> str:
    reason = f": {info.gating_reason}" if info.gating_reason else ""
    return f"Held back by {info.gating_plugin}{reason}."


def _inflight(info: QueuedPod) -> str:
    return f"Attempt {info.attempts} is under way."


_WHY = {ACTIVE: _active, BACKOFF: _backoff, UNSCHEDULABLE: _unschedulable, GATED: _gated, INFLIGHT: _inflight}


def _names(plugins: Iterable[str]) -> str:
    return ", ".join(sorted(plugins))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


class PendingPodsView:
    """All pending pods by UID, including those in flight."""

    def __init__(
        self, places: QueuePlaces, inflight: InFlight, nominator: PodNominator, entrance: Entrance, flush: Flush
    ) -> None:
        self._places = places
        self._inflight = inflight
        self._nominator = nominator
        self._entrance = entrance
        self._flush = flush

    def where(self, uid: str) -> Location | None:
        """Return where a pod is and why, or None for unknown pods and pods that will not be requeued."""
        slot = self._places.slots.get(uid)
        if slot is not None:
            return locate(slot.info, slot.place, slot.since, self._until(slot.info, slot.place))
        flight = self._inflight.get(uid)
        if flight is None or flight.gone:
            return None
        return locate(flight.info, INFLIGHT, flight.since, None)

    def get(self, uid: str) -> QueuedPod | None:
        """Return the pending pod with this UID, or None."""
        slot = self._places.slots.get(uid)
        if slot is not None:
            return slot.info
        flight = self._inflight.get(uid)
        return flight.info if flight is not None and not flight.gone else None

    def newest(self, uid: str) -> Pod | None:
        """Return the newest known object of a pod, even if the pod will not be requeued."""
        slot = self._places.slots.get(uid)
        if slot is not None:
            return slot.info.pod
        flight = self._inflight.get(uid)
        return (flight.latest or flight.info.pod) if flight is not None else None

    def __iter__(self) -> Iterator[tuple[QueuedPod, Location]]:
        """Iterate over all pending pods with their locations. Pods in flight come last."""
        flying = [flight.info.uid for flight in self._inflight]
        for uid in [*self._places.slots, *flying]:
            info, location = self.get(uid), self.where(uid)
            if info is not None and location is not None:
                yield info, location

    def copied(self) -> tuple[list[Slot], list[InFlightPod]]:
        """Return copies of the lists of waiting pods and pods in flight, for a reader on another thread.

        The elements are shared and keep changing. Copying 50,000 pods takes less time than an attempt.
        """
        return list(self._places.slots.values()), [flight for flight in self._inflight if not flight.gone]

    def by_place(self) -> dict[str, int]:
        """Return the number of pods in each place."""
        found: dict[str, int] = dict(self._places.counts().items())
        found[INFLIGHT] = sum(not flight.gone for flight in self._inflight)
        return found

    def counts(self) -> dict[str, int]:
        """Return the number of waiting pods by label of the metric pending_pods: active, backoff,
        unschedulable, gated."""
        return dict(self._places.counts().items())

    def inflight_events(self) -> dict[str, int]:
        """Return the number of kept events by label, with the pods in flight as PodPopped. Empty if no pod is
        in flight."""
        return self._inflight.event_counts()

    def rejections(self) -> dict[tuple[str, str], int]:
        """Return (plugin, scheduler name) → number of waiting pods that the plugin rejected or gates.

        The metric unschedulable_pods reports this. Plugins that rejected a pod earlier are listed with 0, so
        that gauges do not disappear. Visits every waiting pod.
        """
        found: Counter[tuple[str, str]] = Counter(dict.fromkeys(self._entrance.refusers, 0))
        for slot in self._places.slots.values():
            info = slot.info
            if info.unschedulable_plugins or info.gating_plugin:
                profile = info.pod.scheduler_name
                found.update((plugin, profile) for plugin in info.unschedulable_plugins)
                if info.gating_plugin and info.gating_plugin not in info.unschedulable_plugins:
                    found[info.gating_plugin, profile] += 1
        return dict(found)

    def validate(self) -> None:
        """Raise QueueCorrupted with all violated invariants. Visits every pod."""
        problems = [
            f"{slot.info.key} is in {slot.place} and in flight"
            for uid, slot in self._places.slots.items()
            if uid in self._inflight
        ]
        problems += self._places.validate() + self._inflight.validate() + self._nominator.validate()
        if problems:
            raise QueueCorrupted("; ".join(problems))

    def _until(self, info: QueuedPod, place: Place) -> float | None:
        if place == BACKOFF:
            return info.backoff_until
        return self._flush.due(self._places.unschedulable.since(info.uid)) if place in (UNSCHEDULABLE, GATED) else None
