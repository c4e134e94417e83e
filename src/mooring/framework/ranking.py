"""The pods of one node by importance: what preemption takes away last, and what it gives back first.

Higher priority is more important, then an earlier start. A ranking never changes; the node table keeps that
of a node until its pods change, so what is computed here is computed once for many dry runs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, overload

from mooring.api.pod import Pod
from mooring.api.times import parse_time

_CANONICAL = len("2026-01-01T00:00:00Z")

Requests = Mapping[str, int]
"""Resource → amount that a pod takes from its node."""


def start_of(pod: Pod) -> float:
    """When the pod was started, in epoch seconds; one that has not started yet is later than all others."""
    seconds = parse_time(pod.status.start_time)
    return math.inf if seconds is None else seconds


class RankedPods:
    """Pods of one node, most important first, with what they request."""

    __slots__ = ("_columns", "_descending", "_requests", "_tails", "memo", "pods")

    def __init__(self, pods: Iterable[tuple[Pod, Requests]], *, ranked: bool = False) -> None:
        """`ranked`: leave the order as it is; then `below` has no meaning."""
        given = list(pods)
        given = given if ranked else _sorted(given)
        self.pods: tuple[Pod, ...] = tuple(pod for pod, _ in given)
        self.memo: dict[Hashable, Any] = {}
        """What others derive from just these pods and want to find again."""
        self._requests = [requests for _, requests in given]
        self._descending = [-(pod.spec.priority or 0) for pod in self.pods]
        self._columns: dict[str, list[int]] = {}
        self._tails: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.pods)

    def below(self, priority: int) -> PodTail:
        """The pods of lower priority."""
        return PodTail(self, bisect_right(self._descending, -priority))

    def column(self, resource: str) -> list[int]:
        """What each pod requests, in order; every pod counts as one of `pods`."""
        found = self._columns.get(resource)
        if found is None:
            one = 1 if resource == "pods" else 0
            found = [one or requests.get(resource, 0) for requests in self._requests]
            self._columns[resource] = found
        return found

    def tail_sum(self, resource: str, start: int) -> int:
        """What the pods from index `start` on request together."""
        found = self._tails.get(resource)
        if found is None:
            found = [0, *accumulate(reversed(self.column(resource)))]
            found.reverse()
            self._tails[resource] = found
        return found[start]


class PodTail(Sequence[Pod]):
    """The less important pods of a node: those of a ranking from some index on."""

    __slots__ = ("ranked", "start")

    def __init__(self, ranked: RankedPods, start: int) -> None:
        self.ranked = ranked
        self.start = start

    def __len__(self) -> int:
        return len(self.ranked.pods) - self.start

    @overload
    def __getitem__(self, index: int) -> Pod: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Pod]: ...

    def __getitem__(self, index: int | slice) -> Pod | Sequence[Pod]:
        if isinstance(index, slice):
            return self.ranked.pods[self.start :][index]
        return self.ranked.pods[index + self.start if index >= 0 else index]

    def __iter__(self) -> Iterator[Pod]:
        return iter(self.ranked.pods[self.start :])

    def total(self, resource: str) -> int:
        """What these pods request together."""
        return self.ranked.tail_sum(resource, self.start)


def _sorted(pods: list[tuple[Pod, Requests]]) -> list[tuple[Pod, Requests]]:
    """By importance; pods that are equally important keep their order."""
    starts = [pod.status.start_time or "" for pod, _ in pods]
    if all(len(text) == _CANONICAL and text[-1] == "Z" for text in starts):
        # Texts of this form sort as the times that they stand for, and parsing is what costs here.
        return sorted(pods, key=lambda pair: (-(pair[0].spec.priority or 0), pair[0].status.start_time))
    return sorted(pods, key=lambda pair: (-(pair[0].spec.priority or 0), start_of(pair[0])))
