"""The heaps of the active queue and the backoff queue.

Like pkg/scheduler/backend/heap, a heap finds its pods by UID, so any pod can be removed, replaced or
re-sorted. Ties are broken by arrival, so the same input always gives the same order. `scheduling_queue`
decides which queue a pod is in and when it moves.

The backoff queue follows pkg/scheduler/backend/queue/backoff_queue.go and consists of two heaps. Pods that
plugins rejected may be popped early while the active queue is empty (KEP-5142). Pods whose attempt failed
with an error are never popped early, because the cause of the error (for example, the API server) needs the
pause; nor are pods whose attempt was slow. Backoff ends on whole seconds, so pods whose backoff ends in the
same second are popped in QueueSort's order and not in the order of their failures.
"""

from __future__ import annotations

import copy
import functools
import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from moorage.framework.events import QueuedPod

Less = Callable[[QueuedPod, QueuedPod], bool]
Key = Callable[[QueuedPod], Any]

_MAX_DEAD_ENTRIES = 64
"""A heap is rebuilt when its dead entries outnumber the live ones by more than this."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order of pods: the ranks compare the way the pods should be sorted."""

    rank: Key
    frozen: bool
    """False if comparing two ranks calls a plugin, so that ranks computed earlier can change."""


def order_of(*, key: Key | None = None, less: Less | None = None) -> Order:
    """Return the order of a QueueSort plugin.

    `key` takes precedence over `less`. Without either, pods are sorted as PrioritySort does.
    """
    if key is not None:
        return Order(key, frozen=True)
    if less is None:
        return Order(by_priority, frozen=True)
    ranked = functools.cmp_to_key(functools.partial(_compare, less))
    # Copy the pod, because the heap may still hold the old rank of a pod whose object was replaced.
    return Order(lambda pod: ranked(copy.copy(pod)), frozen=False)


def by_priority(pod: QueuedPod) -> tuple[int, float]:
    """Rank pods by priority, highest first, then by the time at which they were last queued."""
    return (-pod.pod.priority, pod.timestamp)


def _compare(less: Less, a: QueuedPod, b: QueuedPod) -> int:
    if less(a, b):
        return -1
    return 1 if less(b, a) else 0


class _HeapEntry(NamedTuple):
    """An entry of the heap. Python compares it as a plain tuple, which is fast; the unique `serial` ends
    every comparison before it reaches `uid` and `info`."""

    rank: Any
    arrival: int
    serial: int
    uid: str
    info: QueuedPod


class PodHeap:
    """A heap of pods with the lowest rank first. Entries of removed pods stay in the list until they reach the top."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._live: dict[str, _HeapEntry] = {}
        self._entries: list[_HeapEntry] = []
        self._serials = itertools.count()

    def add(self, info: QueuedPod) -> None:
        """Add a pod that is not in the heap yet."""
        self._push(info, next(self._serials))

    def remove(self, uid: str) -> None:
        """Remove the pod with this UID."""
        del self._live[uid]
        self._tidy()

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod."""
        entries, live = self._entries, self._live
        while entries:
            entry = heapq.heappop(entries)
            if live.get(entry.uid) is entry:
                del live[entry.uid]
                return entry.info
        return None

    def peek(self) -> QueuedPod | None:
        """Return the first pod without removing it."""
        entries = self._entries
        while entries and self._live.get(entries[0].uid) is not entries[0]:
            heapq.heappop(entries)
        return entries[0].info if entries else None

    def replaced(self, uid: str) -> None:
        """Sort a pod again after its object has changed. Its arrival stays the same."""
        self._push(self._live[uid].info, self._live[uid].arrival)
        self._tidy()

    def resort(self, uids: Iterable[str]) -> None:
        """Sort these pods again after something other than their objects has changed their rank."""
        here = [uid for uid in uids if uid in self._live]
        if here and not self._order.frozen:
            self._rebuild()
            return
        for uid in here:
            self.replaced(uid)

    def sort_by(self, order: Order) -> None:
        """Sort all pods by another order."""
        self._order = order
        self._rebuild()

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: object) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """Iterate in order of arrival, not of rank."""
        return (entry.info for entry in self._live.values())

    def validate(self) -> list[str]:
        """Return the violated invariants as text; the list is empty if the heap is intact."""
        held = {id(entry) for entry in self._entries}
        lost = [f"{uid} is not in its heap" for uid, entry in self._live.items() if id(entry) not in held]
        unsorted = [
            f"{self._entries[i].info.key} is before its parent in a heap"
            for i in range(1, len(self._entries))
            if self._entries[i] < self._entries[(i - 1) // 2]
        ]
        return lost + unsorted

    def _push(self, info: QueuedPod, arrival: int) -> None:
        uid = info.uid
        entry = self._live[uid] = _HeapEntry(self._order.rank(info), arrival, next(self._serials), uid, info)
        heapq.heappush(self._entries, entry)

    def _tidy(self) -> None:
        if len(self._entries) > 2 * len(self._live) + _MAX_DEAD_ENTRIES:
            self._entries = list(self._live.values())
            heapq.heapify(self._entries)

    def _rebuild(self) -> None:
        for uid, entry in self._live.items():
            self._live[uid] = entry._replace(rank=self._order.rank(entry.info))
        self._entries = list(self._live.values())
        heapq.heapify(self._entries)


class HeapPair:
    """Two heaps that hold each pod in one of them."""

    def __init__(self, first: Order, second: Order) -> None:
        self._first = PodHeap(first)
        self._second = PodHeap(second)

    def remove(self, uid: str) -> None:
        """Remove the pod with this UID."""
        self._heap_of(uid).remove(uid)

    def replaced(self, uid: str) -> None:
        """Sort a pod again after its object has changed."""
        self._heap_of(uid).replaced(uid)

    def resort(self, uids: Iterable[str]) -> None:
        """Sort these pods again, in either heap."""
        uids = list(uids)
        self._first.resort(uids)
        self._second.resort(uids)

    def sort_by(self, order: Order) -> None:
        """Sort all pods by another order."""
        self._first.sort_by(order)
        self._second.sort_by(order)

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def __contains__(self, uid: object) -> bool:
        return uid in self._first or uid in self._second

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._first
        yield from self._second

    def validate(self) -> list[str]:
        """Return the violated invariants as text."""
        both = [f"{info.key} is in two heaps of one queue" for info in self._first if info.uid in self._second]
        return both + self._first.validate() + self._second.validate()

    def _heap_of(self, uid: str) -> PodHeap:
        return self._first if uid in self._first else self._second


class ActiveQueue(HeapPair):
    """Pods that wait for their turn. Those whose attempts are slow are popped only while there are no others."""

    def __init__(self, order: Order) -> None:
        super().__init__(order, order)

    def add(self, info: QueuedPod, *, behind: bool) -> None:
        """Add a pod, behind all others if its attempts are slow."""
        (self._second if behind else self._first).add(info)

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod."""
        return self._first.pop() or self._second.pop()


WINDOW = 1.0
"""Length in seconds of a backoff window. Backoffs that end within a window all end at its end."""
_MAX_DOUBLINGS = 62


class BackoffQueue(HeapPair):
    """Pods in backoff, sorted by the end of their backoff and then by QueueSort. The first heap holds the pods that may
    be popped early."""

    def __init__(self, order: Order, initial: float, longest: float) -> None:
        super().__init__(_by_end(order), _by_end(order))
        self.configure(initial, longest)

    def configure(self, initial: float, longest: float) -> None:
        """Set the initial and the maximum backoff in seconds. Backoffs that have started keep their end."""
        self._initial = initial
        self._longest = longest

    def until(self, info: QueuedPod, at_least: float = 0.0) -> float:
        """Return when the backoff of a pod that failed at `info.timestamp` ends, or 0 if the pod never failed.

        `at_least` is the number of seconds that the API server asked for (Retry-After).
        """
        failures = info.consecutive_errors or info.unschedulable_count
        if not failures:
            return 0.0
        wait = max(min(self._initial * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), self._longest), at_least)
        return (math.floor((info.timestamp + wait) / WINDOW) + 1) * WINDOW

    def add(self, info: QueuedPod) -> None:
        """Add a pod whose `backoff_until` is set."""
        early = info.unschedulable_plugins and not info.slow_attempts
        (self._first if early else self._second).add(info)

    def sort_by(self, order: Order) -> None:
        """Sort all pods by another order, within their backoff windows."""
        super().sort_by(_by_end(order))

    def pop_refused(self) -> QueuedPod | None:
        """Pop the first pod that plugins rejected, before its backoff has ended."""
        return self._first.pop()

    def first_completed(self, now: float) -> QueuedPod | None:
        """Return a pod whose backoff has ended. Rejected pods come before pods that failed with an error."""
        for heap in (self._first, self._second):
            info = heap.peek()
            if info is not None and info.backoff_until <= now:
                return info
        return None

    def next_deadline(self) -> float | None:
        """Return when the next backoff ends, or None if the queue is empty."""
        heads = (self._first.peek(), self._second.peek())
        return min((info.backoff_until for info in heads if info is not None), default=None)


def _by_end(order: Order) -> Order:
    def rank(info: QueuedPod) -> tuple[float, Any]:
        return (info.backoff_until, order.rank(info))

    return Order(rank, order.frozen)
