"""A heap of pending pods that can also lose, replace and re-sort any of them.

Owns the order inside one place of the queue. Which place a pod is in, and when it moves, is decided by
`scheduling_queue`. Ties are broken by arrival, so equal input gives equal output.
"""

from __future__ import annotations

import copy
import functools
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from mooring.framework.queued import QueuedPod

Less = Callable[[QueuedPod, QueuedPod], bool]
Key = Callable[[QueuedPod], Any]

_MOST_DEAD = 64
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


class _Entry(NamedTuple):
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
        self._live: dict[str, _Entry] = {}
        self._entries: list[_Entry] = []
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
        entry = self._live[uid] = _Entry(self._order.rank(info), arrival, next(self._serials), uid, info)
        heapq.heappush(self._entries, entry)

    def _tidy(self) -> None:
        if len(self._entries) > 2 * len(self._live) + _MOST_DEAD:
            self._entries = list(self._live.values())
            heapq.heapify(self._entries)

    def _rebuild(self) -> None:
        for uid, entry in self._live.items():
            self._live[uid] = entry._replace(rank=self._order.rank(entry.info))
        self._entries = list(self._live.values())
        heapq.heapify(self._entries)
