"""Pods on their way through a cycle or a binding, and the events that happened meanwhile.

One shared list holds the events; each pod remembers the position at which it was popped and reads from there
when it returns. The list is cut behind the oldest pod still under way, so at rest it is empty: a pod that is
never reported as done would make it grow for ever (k/k#120622, #126962).
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mooring.api.pod import Pod
from mooring.framework.events import ClusterEvent
from mooring.framework.queued import QueuedPod

POD_POPPED = "PodPopped"
"""The label under which pods under way are counted among the events."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One event with its objects."""

    event: ClusterEvent
    old: Any = None
    new: Any = None
    target: str = ""
    """UID of the only pod that it concerns; empty: all."""
    only: Callable[[Pod], bool] | None = None
    """Pods for which this says no are not concerned."""

    def concerns(self, pod: Pod) -> bool:
        if self.target and self.target != pod.uid:
            return False
        return self.only is None or self.only(pod)


class Flight:
    """One pod under way."""

    latest: Pod | None = None
    """A newer object that arrived meanwhile; the attempt goes on with the old one."""
    gone = False
    """The pod was deleted, or placed by any scheduler: it must not come back."""

    def __init__(self, info: QueuedPod, uid: str, start: int, since: float) -> None:
        self.info = info
        self.uid = uid
        """As it was popped."""
        self.start = start
        """Position in the list of events at its pop."""
        self.since = since


class InFlight:
    """All flights, oldest first, and the events since the oldest of them began."""

    def __init__(self) -> None:
        # Ordered, because a plain dict that loses its first entries one by one finds the next ever slower.
        self._flights: OrderedDict[str, Flight] = OrderedDict()
        self._samples: dict[str, Pod] = {}
        """Scheduler name → a pod of that name that has been under way since the list was last empty."""
        self._events: deque[Happening] = deque()
        self._first = 0

    def begin(self, info: QueuedPod, now: float) -> None:
        pod = info.pod
        uid = pod.metadata.uid
        self._flights[uid] = Flight(info, uid, self._first + len(self._events), now)
        if pod.spec.scheduler_name not in self._samples:
            self._samples[pod.spec.scheduler_name] = pod

    def end(self, uid: str) -> None:
        """Forget a flight; unknown UIDs are ignored, so that it may be called twice."""
        if self._flights.pop(uid, None) is not None:
            self._trim()
            if not self._flights:
                self._samples.clear()

    def record(self, happening: Happening) -> None:
        """Keep an event for the pods under way; call it only if there is one."""
        self._events.append(happening)

    def since(self, flight: Flight) -> Iterator[Happening]:
        """What happened since the pod was popped, in order."""
        return islice(self._events, flight.start - self._first, None)

    def get(self, uid: str) -> Flight | None:
        return self._flights.get(uid)

    def revive(self, uid: str) -> None:
        """A pod that is reported as pending again is not gone, whatever was said before."""
        flight = self._flights.get(uid)
        if flight is not None:
            flight.gone = False

    def is_gone(self, uid: str) -> bool:
        flight = self._flights.get(uid)
        return flight is not None and flight.gone

    def popped_as(self, info: QueuedPod) -> str | None:
        """The UID under which `info` was popped: another than its own if its pod was exchanged since."""
        flight = self._flights.get(info.uid)
        if flight is not None and flight.info is info:
            return info.uid
        return next((uid for uid, flight in self._flights.items() if flight.info is info), None)

    def one_per_profile(self) -> Collection[Pod]:
        """Of every profile with pods under way one that is, or was not long ago; no profile is left out."""
        return self._samples.values()

    def event_counts(self) -> dict[str, int]:
        """Label to number, the pods under way included."""
        counts = Counter(happening.event.label for happening in self._events)
        if self._flights:
            counts[POD_POPPED] = len(self._flights)
        return dict(counts)

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, uid: object) -> bool:
        return uid in self._flights

    def __iter__(self) -> Iterator[Flight]:
        return iter(self._flights.values())

    def validate(self) -> list[str]:
        starts = [flight.start for flight in self._flights.values()]
        problems = [] if starts == sorted(starts) else ["flights are not in order of their pop"]
        needed = self._first + len(self._events) - starts[0] if starts else 0
        if len(self._events) != needed:
            problems.append(f"{len(self._events)} in-flight events are kept, {needed} are needed")
        return problems

    def _trim(self) -> None:
        """Later flights begin at later positions, so the oldest one decides what is still needed."""
        oldest = next(iter(self._flights.values()), None)
        keep_from = self._first + len(self._events) if oldest is None else oldest.start
        while self._first < keep_from:
            self._events.popleft()
            self._first += 1
