"""Pods in flight and nominated pods.

InFlight follows pkg/scheduler/backend/queue/active_queue.go. One shared list holds the events that arrive
while pods are in flight. Each pod remembers the position at which it was popped and reads the events from
there when it returns. The list is cut behind the oldest pod in flight, so it is empty when no pod is in
flight. A pod that is never reported as done would make it grow without bound (k/k#120622, k/k#126962).

PodNominator follows pkg/scheduler/backend/queue/nominator.go. A nomination reserves space on a node in
memory, before the API server knows of it. When a nomination ends because the pod was deleted or nominated to
another node, `scheduling_queue` requeues the pods that may use the space.
"""

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
"""The label under which pods in flight are counted among the events."""


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """A cluster event with the old and the new object."""

    event: ClusterEvent
    old: Any = None
    new: Any = None
    target: str = ""
    """UID of the only pod that the event concerns, or empty if it concerns all pods."""
    only: Callable[[Pod], bool] | None = None
    """If set, the event concerns only pods for which this returns True."""

    def concerns(self, pod: Pod) -> bool:
        """Return whether the event concerns a pod."""
        if self.target and self.target != pod.uid:
            return False
        return self.only is None or self.only(pod)


class InFlightPod:
    """A pod that has been popped and is neither bound nor requeued yet."""

    latest: Pod | None = None
    """A newer object that arrived during the attempt. The attempt continues with the old object."""
    gone = False
    """Whether the pod was deleted, or bound by any scheduler, and must not be requeued."""

    def __init__(self, info: QueuedPod, uid: str, start: int, since: float) -> None:
        self.info = info
        self.uid = uid
        """The UID that the pod had when it was popped."""
        self.start = start
        """Position in the list of events at which the pod was popped."""
        self.since = since


class InFlight:
    """All pods in flight, oldest first, and the events since the oldest was popped."""

    def __init__(self) -> None:
        # An OrderedDict, because finding the first entry of a plain dict gets slower as entries are removed.
        self._flights: OrderedDict[str, InFlightPod] = OrderedDict()
        self._samples: dict[str, Pod] = {}
        """Scheduler name → a pod of that name that was in flight at some time since the list was last empty."""
        self._events: deque[ReceivedEvent] = deque()
        self._first = 0

    def begin(self, info: QueuedPod, now: float) -> None:
        """Add a pod that has just been popped."""
        pod = info.pod
        uid = pod.metadata.uid
        self._flights[uid] = InFlightPod(info, uid, self._first + len(self._events), now)
        if pod.spec.scheduler_name not in self._samples:
            self._samples[pod.spec.scheduler_name] = pod

    def end(self, uid: str) -> None:
        """Remove a pod. Unknown UIDs are ignored, so this may be called twice."""
        if self._flights.pop(uid, None) is not None:
            self._trim()
            if not self._flights:
                self._samples.clear()

    def record(self, happening: ReceivedEvent) -> None:
        """Keep an event for the pods in flight. Call this only if there are any."""
        self._events.append(happening)

    def since(self, flight: InFlightPod) -> Iterator[ReceivedEvent]:
        """Yield the events since the pod was popped, in order."""
        return islice(self._events, flight.start - self._first, None)

    def get(self, uid: str) -> InFlightPod | None:
        """Return the pod in flight with this UID, or None."""
        return self._flights.get(uid)

    def revive(self, uid: str) -> None:
        """Clear `gone` for a pod that is reported as pending again."""
        flight = self._flights.get(uid)
        if flight is not None:
            flight.gone = False

    def is_gone(self, uid: str) -> bool:
        """Return whether the pod is in flight and must not be requeued."""
        flight = self._flights.get(uid)
        return flight is not None and flight.gone

    def popped_as(self, info: QueuedPod) -> str | None:
        """Return the UID under which `info` was popped. It differs from the current UID if the pod was recreated."""
        flight = self._flights.get(info.uid)
        if flight is not None and flight.info is info:
            return info.uid
        return next((uid for uid, flight in self._flights.items() if flight.info is info), None)

    def one_per_profile(self) -> Collection[Pod]:
        """Return one pod of every profile with pods in flight. The pod itself may have returned recently."""
        return self._samples.values()

    def event_counts(self) -> dict[str, int]:
        """Return the number of events by label, including the pods in flight."""
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
        """Return the violated invariants as text."""
        starts = [flight.start for flight in self._flights.values()]
        problems = [] if starts == sorted(starts) else ["pods in flight are not in the order in which they were popped"]
        needed = self._first + len(self._events) - starts[0] if starts else 0
        if len(self._events) != needed:
            problems.append(f"{len(self._events)} in-flight events are kept, {needed} are needed")
        return problems

    def _trim(self) -> None:
        """Drop the events that no pod needs. Later pods start at later positions, so the oldest pod in flight
        decides."""
        oldest = next(iter(self._flights.values()), None)
        keep_from = self._first + len(self._events) if oldest is None else oldest.start
        while self._first < keep_from:
            self._events.popleft()
            self._first += 1


class PodNominator:
    """Nominations by node and by pod. A pod has at most one nomination."""

    def __init__(self, is_gone: Callable[[str], bool]) -> None:
        self._is_gone = is_gone
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, Pod]] = {}

    def nodes(self) -> Collection[str]:
        """Return the names of the nodes to which pods are nominated."""
        return tuple(self._pods_on) if self._pods_on else ()

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods that are nominated to a node, in the order of their nomination."""
        return tuple(self._pods_on.get(node_name, {}).values())

    def nominated_node(self, uid: str) -> str | None:
        """Return the node to which a pod is nominated, or None."""
        return self._node_of.get(uid)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod to a node, replacing an earlier nomination. An empty name removes the nomination.

        A pod that was deleted during its attempt is not nominated, because no event would end it.
        """
        self.forget(pod.uid)
        if node_name and not self._is_gone(pod.uid):
            self._node_of[pod.uid] = node_name
            self._pods_on.setdefault(node_name, {})[pod.uid] = pod

    def hold(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod unless it has a nomination already."""
        if pod.uid not in self._node_of:
            self.nominate(pod, node_name)

    def forget(self, uid: str) -> None:
        """Remove the nomination of a pod."""
        if not self._node_of:
            return
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        del self._pods_on[node][uid]
        if not self._pods_on[node]:
            del self._pods_on[node]

    def refresh(self, pod: Pod) -> None:
        """Store a newer object of a pod and keep its nomination."""
        node = self._node_of.get(pod.uid)
        if node is not None:
            self._pods_on[node][pod.uid] = pod

    def updated(self, old: Pod, new: Pod) -> None:
        """Follow a change of status.nominatedNodeName.

        Other updates leave the nomination alone: an update that was sent before our own patch arrived must
        not undo a decision made here.
        """
        if old.nominated_node_name == new.nominated_node_name:
            self.refresh(new)
        else:
            self.nominate(new, new.nominated_node_name)

    def validate(self) -> list[str]:
        """Return the violated invariants as text."""
        listed = {uid: node for node, pods in self._pods_on.items() for uid in pods}
        return [] if listed == self._node_of else ["nominations by node and by pod differ"]


def holding(pod: Pod, node_name: str) -> Pod:
    """Return the pod with the node in its status, as hints expect a pod that held space on that node."""
    if pod.nominated_node_name == node_name:
        return pod
    status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
    return msgspec.structs.replace(pod, status=status)
