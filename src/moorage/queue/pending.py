"""Questions about the pending pods: where each is and why, how many there are, which plugins hold them.

Nothing here moves a pod; that is `scheduling_queue`'s part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.framework.events import FORCE_ACTIVATE, QueuedPod
from moorage.queue.inflight import InFlight, InFlightPod, PodNominator
from moorage.queue.places import (
    ACTIVE,
    BACKOFF,
    GATED,
    INFLIGHT,
    UNSCHEDULABLE,
    Entrance,
    Place,
    QueuePlaces,
    Slot,
)
from moorage.queue.unschedulable import Flush


class QueueCorrupted(RuntimeError):
    """An invariant of the queue does not hold: a bug in it, never a fault of its callers' data."""


@dataclass(frozen=True, slots=True)
class Location:
    """One pod's place. Times are monotonic seconds of the queue's clock."""

    place: Place
    why: str
    """A sentence for people."""
    since: float
    until: float | None = None
    """When it moves on by itself; None when only an event or its turn moves it."""
    plugins: tuple[str, ...] = ()
    """Who holds it there, sorted."""


def locate(info: QueuedPod, place: Place, since: float, until: float | None) -> Location:
    """Describe a place that has been found."""
    plugins = (info.gating_plugin,) if place == GATED else tuple(sorted(info.unschedulable_plugins))
    return Location(place, _WHY[place](info), since, until, plugins)


def _active(info: QueuedPod) -> str:
    cause = f", moved by {info.woken_by}" if info.woken_by else ""
    asked = f" (hint of {info.woken_hint})" if info.woken_hint else ""
    if info.woken_by == FORCE_ACTIVATE.label:
        asked = f" of {info.woken_hint}" if info.woken_hint else ""
    return f"Waits for its turn{cause}{asked}."


def _backoff(info: QueuedPod) -> str:
    if info.unschedulable_plugins:
        refused = f"Refused {_times(info.unschedulable_count)}"
        return f"{refused}, last by {_names(info.unschedulable_plugins)}; backs off."
    return f"Failed by an error {_times(info.consecutive_errors)} in a row; backs off."


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
    """All pending pods by UID, those in flight included, as one reads them."""

    def __init__(
        self,
        places: QueuePlaces,
        inflight: InFlight,
        nominator: PodNominator,
        entrance: Entrance,
        flush: Flush,
    ) -> None:
        self._places = places
        self._inflight = inflight
        self._nominator = nominator
        self._entrance = entrance
        self._flush = flush

    def where(self, uid: str) -> Location | None:
        """Where a pod is and why; None for unknown pods and for those that will not come back."""
        slot = self._places.slots.get(uid)
        if slot is not None:
            return locate(slot.info, slot.place, slot.since, self._until(slot.info, slot.place))
        flight = self._inflight.get(uid)
        if flight is None or flight.gone:
            return None
        return locate(flight.info, INFLIGHT, flight.since, None)

    def get(self, uid: str) -> QueuedPod | None:
        slot = self._places.slots.get(uid)
        if slot is not None:
            return slot.info
        flight = self._inflight.get(uid)
        return flight.info if flight is not None and not flight.gone else None

    def newest(self, uid: str) -> Pod | None:
        """The newest object that is known of a pod, also of one that will not come back."""
        slot = self._places.slots.get(uid)
        if slot is not None:
            return slot.info.pod
        flight = self._inflight.get(uid)
        return (flight.latest or flight.info.pod) if flight is not None else None

    def __iter__(self) -> Iterator[tuple[QueuedPod, Location]]:
        """Every pending pod with its location, those in flight last."""
        flying = [flight.info.uid for flight in self._inflight]
        for uid in [*self._places.slots, *flying]:
            info, location = self.get(uid), self.where(uid)
            if info is not None and location is not None:
                yield info, location

    def copied(self) -> tuple[list[Slot], list[InFlightPod]]:
        """All of them, for a reader on another thread: the lists are its own, what is in them goes on to
        change. A copy of 50,000 costs less than an attempt."""
        return list(self._places.slots.values()), [flight for flight in self._inflight if not flight.gone]

    def by_place(self) -> dict[str, int]:
        """How many there are in each place."""
        found: dict[str, int] = dict(self._places.counts().items())
        found[INFLIGHT] = sum(not flight.gone for flight in self._inflight)
        return found

    def counts(self) -> dict[str, int]:
        """Waiting pods by the labels of the metric pending_pods: active, backoff, unschedulable, gated."""
        return dict(self._places.counts().items())

    def inflight_events(self) -> dict[str, int]:
        """Kept events by label, with the pods in flight as PodPopped; empty at rest."""
        return self._inflight.event_counts()

    def rejections(self) -> dict[tuple[str, str], int]:
        """(plugin, scheduler name) → waiting pods that it has refused or holds back, for unschedulable_pods.
        A plugin that has ever refused one is named, with 0 where none remains: gauges do not vanish. Costs a
        look at every waiting pod."""
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
        """Raise QueueCorrupted with all that is wrong; costs a look at every pod."""
        problems = [
            f"{slot.info.key} waits in {slot.place} and is in flight"
            for uid, slot in self._places.slots.items()
            if uid in self._inflight
        ]
        problems += self._places.validate() + self._inflight.validate() + self._nominator.validate()
        if problems:
            raise QueueCorrupted("; ".join(problems))

    def _until(self, info: QueuedPod, place: Place) -> float | None:
        if place == BACKOFF:
            return info.backoff_until
        return (
            self._flush.due(self._places.unschedulable.since(info.uid))
            if place in (UNSCHEDULABLE, GATED)
            else None
        )
