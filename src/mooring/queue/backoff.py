"""How long a failed pod waits, and the two heaps it waits in.

Pods that plugins refused and pods that failed by an error are kept apart: the first may be taken early when
nothing else is to do, the second never, because what broke for them (the API server, say) needs the pause.
Waits end on whole seconds, so that the pods of one second come out in the order of the active queue instead
of in the order in which they failed (KEP-5142).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from mooring.framework.queued import QueuedPod
from mooring.queue.heap import Order, PodHeap

WINDOW = 1.0
"""Seconds; all waits that end within one window end together, at its end."""
_MAX_DOUBLINGS = 62


class Backoff:
    """Pods that wait for a moment, by the end of their wait and then by QueueSort."""

    def __init__(self, order: Order, initial: float, longest: float) -> None:
        self._initial = initial
        self._longest = longest
        self._refused = PodHeap(_by_end(order))
        self._errored = PodHeap(_by_end(order))

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
