"""The pods of one node by importance: what preemption takes away last, and what it gives back first.

Higher priority is more important, then an earlier start. A ranking never changes; the node table keeps that
of a node until its pods change, so what is computed here is computed once for many dry runs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from mooring.api.pod import Pod
from mooring.api.times import parse_time

_CANONICAL = len("2026-01-01T00:00:00Z")

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

Requests = Mapping[str, int]
"""Resource → amount that a pod takes from its node."""


def start_of(pod: Pod) -> float:
    """When the pod was started, in epoch seconds; one that has not started yet is later than all others."""
    seconds = parse_time(pod.status.start_time)
    return math.inf if seconds is None else seconds


class RankedPods:
    """Pods of one node, most important first, with what they request."""

    __slots__ = ("_columns", "_descending", "_priorities", "_requests", "_starts", "_tail", "memo", "pods")

    def __init__(self, pods: Iterable[tuple[Pod, Requests]], *, ranked: bool = False) -> None:
        """`ranked`: leave the order as it is; then `below` has no meaning."""
        given = list(pods)
        given = given if ranked else _sorted(given)
        self.pods: tuple[Pod, ...] = tuple(pod for pod, _ in given)
        self.memo: dict[Hashable, Any] = {}
        """What others derive from just these pods and want to find again."""
        self._requests = [requests for _, requests in given]
        self._descending = [-(pod.spec.priority or 0) for pod in self.pods]
        self._priorities: IntArray | None = None
        self._starts: FloatArray | None = None
        self._columns: dict[str, IntArray] = {}
        self._tail: PodTail | None = None

    def __len__(self) -> int:
        return len(self.pods)

    def below(self, priority: int) -> PodTail:
        """The pods of lower priority."""
        start = bisect_right(self._descending, -priority)
        if self._tail is None or self._tail.start != start:
            self._tail = PodTail(self, start)
        return self._tail

    @property
    def priorities(self) -> IntArray:
        if self._priorities is None:
            self._priorities = -np.array(self._descending, dtype=np.int64)
        return self._priorities

    @property
    def starts(self) -> FloatArray:
        """When each pod was started, in epoch seconds; infinite for one that was not."""
        if self._starts is None:
            self._starts = _starts([pod.status.start_time or "" for pod in self.pods])
        return self._starts

    def column(self, resource: str) -> IntArray:
        """What each pod requests, in order; every pod counts as one of `pods`."""
        found = self._columns.get(resource)
        if found is None:
            one = 1 if resource == "pods" else 0
            amounts = [one or requests.get(resource, 0) for requests in self._requests]
            found = self._columns[resource] = np.array(amounts, dtype=np.int64)
        return found


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


class Tails:
    """The tails of many nodes in one long list, node after node: entry `offsets[i] + n` is pod `n` of tail
    `i`."""

    def __init__(self, tails: Sequence[PodTail]) -> None:
        self.tails = tails
        self.lengths: IntArray = np.array([len(t.ranked.pods) - t.start for t in tails], dtype=np.int64)
        ends = np.cumsum(self.lengths)
        self.offsets: IntArray = ends - self.lengths
        self.size = int(ends[-1]) if len(tails) else 0
        """Length of the list."""
        self._columns: dict[str, IntArray] = {}
        self._priorities: IntArray | None = None

    def __len__(self) -> int:
        return len(self.tails)

    def pods(self, entries: IntArray) -> list[Pod]:
        """The pods of some entries of the list."""
        rows = np.searchsorted(self.offsets, entries, side="right") - 1
        numbers = entries - self.offsets[rows]
        return [self.tails[r][n] for r, n in zip(rows.tolist(), numbers.tolist(), strict=True)]

    def column(self, resource: str) -> IntArray:
        """What each pod requests."""
        found = self._columns.get(resource)
        if found is None:
            parts = [tail.ranked.column(resource)[tail.start :] for tail in self.tails]
            found = self._columns[resource] = _joined(parts)
        return found

    @property
    def priorities(self) -> IntArray:
        if self._priorities is None:
            self._priorities = _joined([tail.ranked.priorities[tail.start :] for tail in self.tails])
        return self._priorities

    def starts(self) -> FloatArray:
        """When each pod was started."""
        parts = [tail.ranked.starts[tail.start :] for tail in self.tails]
        return np.concatenate(parts) if parts else np.zeros(0)

    def sums(self, values: IntArray) -> IntArray:
        """The sum over each tail of something that every entry has."""
        running = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(values)))
        summed: IntArray = running[self.offsets + self.lengths] - running[self.offsets]
        return summed

    def totals(self, resource: str) -> IntArray:
        """What the pods of each tail request together."""
        return self.lengths if resource == "pods" else self.sums(self.column(resource))


def _joined(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _sorted(pods: list[tuple[Pod, Requests]]) -> list[tuple[Pod, Requests]]:
    """By importance; pods that are equally important keep their order."""
    if _canonical([pod.status.start_time or "" for pod, _ in pods]):
        # Texts of this form sort as the times that they stand for, and parsing is what costs here.
        return sorted(pods, key=lambda pair: (-(pair[0].spec.priority or 0), pair[0].status.start_time))
    return sorted(pods, key=lambda pair: (-(pair[0].spec.priority or 0), start_of(pair[0])))


def _starts(texts: list[str]) -> FloatArray:
    if _canonical(texts):
        try:
            return np.array([text[:-1] for text in texts], dtype="datetime64[s]").astype(np.float64)
        except ValueError:
            pass  # digits that are no date
    seconds = [parse_time(text) for text in texts]
    return np.array([math.inf if second is None else second for second in seconds])


def _canonical(texts: list[str]) -> bool:
    """Whether all times are written in whole seconds of UTC, as Kubernetes does."""
    return all(len(text) == _CANONICAL and text[-1] == "Z" for text in texts)
