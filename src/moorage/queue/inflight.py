"""Pods between the queue and a node: in flight through a cycle or a binding, or nominated to a node.

One shared list holds the events that happen while pods are in flight; each pod remembers the position at
which it was popped and reads from there when it returns. The list is cut behind the oldest pod still under
way, so at rest it is empty: a pod that is never reported as done would make it grow for ever (k/k#120622,
#126962).

A nomination holds the space on a node in memory, before the API server knows of it. When it ends by the pod's
deletion or by another choice, `scheduling_queue` wakes the pods that may use the space."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from moorage.api.pod import Pod
from moorage.framework.events import ClusterEvent, QueuedPod

POD_POPPED = "PodPopped"
"""The label under which pods under way are counted among the events."""


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
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


class InFlightPod:
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
        self._flights: OrderedDict[str, InFlightPod] = OrderedDict()
        self._samples: dict[str, Pod] = {}
        """Scheduler name → a pod of that name that has been under way since the list was last empty."""
        self._events: deque[ReceivedEvent] = deque()
        self._first = 0

    def begin(self, info: QueuedPod, now: float) -> None:
        pod = info.pod
        uid = pod.metadata.uid
        self._flights[uid] = InFlightPod(info, uid, self._first + len(self._events), now)
        if pod.spec.scheduler_name not in self._samples:
            self._samples[pod.spec.scheduler_name] = pod

    def end(self, uid: str) -> None:
        """Forget a flight; unknown UIDs are ignored, so that it may be called twice."""
        if self._flights.pop(uid, None) is not None:
            self._trim()
            if not self._flights:
                self._samples.clear()

    def record(self, happening: ReceivedEvent) -> None:
        """Keep an event for the pods under way; call it only if there is one."""
        self._events.append(happening)

    def since(self, flight: InFlightPod) -> Iterator[ReceivedEvent]:
        """What happened since the pod was popped, in order."""
        return islice(self._events, flight.start - self._first, None)

    def get(self, uid: str) -> InFlightPod | None:
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

    def __iter__(self) -> Iterator[InFlightPod]:
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


class PodNominator:
    """Nominations by node and by pod; a pod has at most one."""

    def __init__(self, is_gone: Callable[[str], bool]) -> None:
        self._is_gone = is_gone
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}

    def nodes(self) -> Collection[str]:
        """Names of the nodes that pods are nominated to."""
        return tuple(self._pods_on) if self._pods_on else ()

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        """The pods nominated there, in the order of their nomination."""
        return tuple(self._pods_on.get(node_name, {}).values())

    def nominated_node(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Replaces an earlier nomination; an empty name ends it. A pod whose deletion was seen while its
        attempt was still under way gets none: no event would ever end it."""
        self.forget(pod.uid)
        if node_name and not self._is_gone(pod.uid):
            self._node_of[pod.uid] = node_name
            self._pods_on.setdefault(node_name, {})[pod.uid] = pod

    def forget(self, uid: str) -> None:
        if not self._node_of:
            return
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        del self._pods_on[node][uid]
        if not self._pods_on[node]:
            del self._pods_on[node]

    def refresh(self, pod: Pod) -> None:
        """A newer object of a pod whose nomination stays as it is."""
        node = self._node_of.get(pod.uid)
        if node is not None:
            self._pods_on[node][pod.uid] = pod

    def updated(self, old: Pod, new: Pod) -> None:
        """Follow the object only where it changed: an update that left before our own patch arrived must not
        undo what is decided here."""
        if old.nominated_node_name == new.nominated_node_name:
            self.refresh(new)
        else:
            self.nominate(new, new.nominated_node_name)

    def validate(self) -> list[str]:
        listed = {uid: node for node, pods in self._pods_on.items() for uid in pods}
        return [] if listed == self._node_of else ["nominations by node and by pod differ"]


def holding(pod: Pod, node_name: str) -> Pod:
    """The pod as hints expect one that held space on a node: with the node in its status."""
    if pod.nominated_node_name == node_name:
        return pod
    status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
    return msgspec.structs.replace(pod, status=status)
