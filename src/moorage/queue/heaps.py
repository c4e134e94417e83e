"""The heaps in which pods wait: for their turn, and for the end of their backoff.

A heap owns the order inside one place of the queue, and can also lose, replace and re-sort any of its pods;
ties are broken by arrival, so equal input gives equal output. Which place a pod is in, and when it moves, is
decided by `scheduling_queue`.

Pods that back off are in two heaps. Those that plugins refused may be taken early when nothing else is to do;
those that failed by an error never are, because what broke for them (the API server, say) needs the pause.
Waits end on whole seconds, so that the pods of one second come out in the order of the active queue instead
of in the order in which they failed (KEP-5142)."""

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
"""Dead entries a heap may hold beside as many as there are live ones before it is rebuilt."""


@dataclass(frozen=True, slots=True)
class Order:
    """How pods are ranked: values that sort as the pods should."""

    rank: Key
    frozen: bool
    """False when comparing asks a plugin again each time, so that old ranks change with what it reads."""


def order_of(*, key: Key | None = None, less: Less | None = None) -> Order:
    """The order of a QueueSort plugin; `key` wins over `less`, and without either PrioritySort's holds."""
    if key is not None:
        return Order(key, frozen=True)
    if less is None:
        return Order(by_priority, frozen=True)
    ranked = functools.cmp_to_key(functools.partial(_compare, less))
    # A copy, because the heap may still hold the old rank of a pod whose object was replaced.
    return Order(lambda pod: ranked(copy.copy(pod)), frozen=False)


def by_priority(pod: QueuedPod) -> tuple[int, float]:
    """Higher priority first, then who has waited longest since it was last put into the queue."""
    return (-pod.pod.priority, pod.timestamp)


def _compare(less: Less, a: QueuedPod, b: QueuedPod) -> int:
    if less(a, b):
        return -1
    return 1 if less(b, a) else 0


class _HeapEntry(NamedTuple):
    """Compared as a plain tuple, which is what makes the heap fast; `serial` keeps the rest out of it."""

    rank: Any
    arrival: int
    serial: int
    uid: str
    info: QueuedPod


class PodHeap:
    """Pods by UID, the least rank first. Removed entries stay in the list until they surface."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._live: dict[str, _HeapEntry] = {}
        self._entries: list[_HeapEntry] = []
        self._serials = itertools.count()

    def add(self, info: QueuedPod) -> None:
        """Put a pod in; it must not be there yet."""
        self._push(info, next(self._serials))

    def remove(self, uid: str) -> None:
        del self._live[uid]
        self._tidy()

    def pop(self) -> QueuedPod | None:
        """Take the first pod out."""
        entries, live = self._entries, self._live
        while entries:
            entry = heapq.heappop(entries)
            if live.get(entry.uid) is entry:
                del live[entry.uid]
                return entry.info
        return None

    def peek(self) -> QueuedPod | None:
        entries = self._entries
        while entries and self._live.get(entries[0].uid) is not entries[0]:
            heapq.heappop(entries)
        return entries[0].info if entries else None

    def replaced(self, uid: str) -> None:
        """The pod's object has changed, and perhaps its rank; its arrival stays."""
        self._push(self._live[uid].info, self._live[uid].arrival)
        self._tidy()

    def resort(self, uids: Iterable[str]) -> None:
        """What the order reads beside the pods has changed for these."""
        here = [uid for uid in uids if uid in self._live]
        if here and not self._order.frozen:
            self._rebuild()
            return
        for uid in here:
            self.replaced(uid)

    def sort_by(self, order: Order) -> None:
        self._order = order
        self._rebuild()

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: object) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[QueuedPod]:
        """In order of arrival, not of rank."""
        return (entry.info for entry in self._live.values())

    def validate(self) -> list[str]:
        """What is wrong, in words; empty when all is well."""
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


WINDOW = 1.0
"""Seconds; all waits that end within one window end together, at its end."""
_MAX_DOUBLINGS = 62


class BackoffQueue:
    """Pods that wait for a moment, by the end of their wait and then by QueueSort."""

    def __init__(self, order: Order, initial: float, longest: float) -> None:
        self.configure(initial, longest)
        self._refused = PodHeap(_by_end(order))
        self._errored = PodHeap(_by_end(order))

    def configure(self, initial: float, longest: float) -> None:
        """Seconds of the first wait and of the longest; waits that have begun end as they would."""
        self._initial = initial
        self._longest = longest

    def until(self, info: QueuedPod, at_least: float = 0.0) -> float:
        """When the wait of a pod ends that failed at `info.timestamp`; 0 when it never failed. `at_least` is
        the wait that a server has asked for."""
        failures = info.consecutive_errors or info.unschedulable_count
        if not failures:
            return 0.0
        wait = max(min(self._initial * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), self._longest), at_least)
        return (math.floor((info.timestamp + wait) / WINDOW) + 1) * WINDOW

    def add(self, info: QueuedPod) -> None:
        """`info.backoff_until` says until when."""
        (self._refused if info.unschedulable_plugins else self._errored).add(info)

    def remove(self, uid: str) -> None:
        self._heap_of(uid).remove(uid)

    def replaced(self, uid: str) -> None:
        self._heap_of(uid).replaced(uid)

    def resort(self, uids: Iterable[str]) -> None:
        uids = list(uids)
        self._refused.resort(uids)
        self._errored.resort(uids)

    def sort_by(self, order: Order) -> None:
        self._refused.sort_by(_by_end(order))
        self._errored.sort_by(_by_end(order))

    def pop_refused(self) -> QueuedPod | None:
        """Who may be taken early when nothing else is to do."""
        return self._refused.pop()

    def first_completed(self, now: float) -> QueuedPod | None:
        """A pod whose wait is over, the refused ones first."""
        for heap in (self._refused, self._errored):
            info = heap.peek()
            if info is not None and info.backoff_until <= now:
                return info
        return None

    def next_deadline(self) -> float | None:
        heads = (self._refused.peek(), self._errored.peek())
        return min((info.backoff_until for info in heads if info is not None), default=None)

    def __len__(self) -> int:
        return len(self._refused) + len(self._errored)

    def __contains__(self, uid: object) -> bool:
        return uid in self._refused or uid in self._errored

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refused
        yield from self._errored

    def validate(self) -> list[str]:
        both = [f"{info.key} is in both backoff heaps" for info in self._refused if info.uid in self._errored]
        return both + self._refused.validate() + self._errored.validate()

    def _heap_of(self, uid: str) -> PodHeap:
        return self._refused if uid in self._refused else self._errored


def _by_end(order: Order) -> Order:
    def rank(info: QueuedPod) -> tuple[float, Any]:
        return (info.backoff_until, order.rank(info))

    return Order(rank, order.frozen)
