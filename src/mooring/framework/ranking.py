"""The pods of one node by importance: what preemption takes away last, and what it gives back first.

Higher priority is more important, then an earlier start. A ranking never changes; the node table keeps that
of a node until its pods change, so what is computed here is computed once for many dry runs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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

    __slots__ = ("_tail", "descending", "memo", "pods", "requests")

    def __init__(self, pods: Iterable[tuple[Pod, Requests]], *, ranked: bool = False) -> None:
        """`ranked`: leave the order as it is; then `below` has no meaning."""
        given = list(pods)
        if not ranked and len(given) > 1:
            given = _sorted(given)
        self.pods: tuple[Pod, ...] = tuple([pod for pod, _ in given])
        self.requests: list[Requests] = [requests for _, requests in given]
        self.memo: dict[Hashable, Any] = {}
        """What others derive from just these pods and want to find again."""
        self.descending = [-(pod.spec.priority or 0) for pod in self.pods]
        """Their priorities, negated."""
        self._tail: PodTail | None = None
        """What was asked for last."""

    def __len__(self) -> int:
        return len(self.pods)

    def below(self, priority: int) -> PodTail:
        """The pods of lower priority."""
        tail = self._tail
        if tail is None or tail.below != priority:
            tail = self._tail = PodTail(self, bisect_right(self.descending, -priority), priority)
        return tail


class PodTail(Sequence[Pod]):
    """The less important pods of a node: those of a ranking from some index on."""

    __slots__ = ("below", "columns", "length", "ranked", "start")

    def __init__(self, ranked: RankedPods, start: int, below: int | None = None) -> None:
        self.ranked = ranked
        self.start = start
        self.below = below
        """The priority that all of these are below, if that is how they were found."""
        self.length = len(ranked.pods) - start
        self.columns: dict[Hashable, npt.NDArray[Any]] = {}
        """Something that each of these pods has, in order; kept by `Tails`."""

    def __len__(self) -> int:
        return self.length

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
        self.lengths: IntArray = np.array([tail.length for tail in tails], dtype=np.int64)
        ends = np.cumsum(self.lengths)
        self.offsets: IntArray = ends - self.lengths
        self.size = int(ends[-1]) if len(tails) else 0
        """Length of the list."""
        self._columns: dict[Hashable, npt.NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.tails)

    def pods(self, entries: IntArray) -> list[Pod]:
        """The pods of some entries of the list."""
        rows = np.searchsorted(self.offsets, entries, side="right") - 1
        numbers = entries - self.offsets[rows]
        return [self.tails[r][n] for r, n in zip(rows.tolist(), numbers.tolist(), strict=True)]

    def derived(self, key: Hashable, compute: Callable[[PodTail], IntArray]) -> IntArray:
        """Something that each pod has; `compute` says it for one tail, and is remembered there."""
        found = self._columns.get(key)
        if found is None:
            try:
                parts = [tail.columns[key] for tail in self.tails]
            except KeyError:
                for tail in self.tails:
                    if key not in tail.columns:
                        tail.columns[key] = compute(tail)
                parts = [tail.columns[key] for tail in self.tails]
            found = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
            self._columns[key] = found
        return found

    def column(self, resource: str) -> IntArray:
        """What each pod requests; every pod counts as one of `pods`."""

        def requested(tail: PodTail) -> IntArray:
            if resource == "pods":
                return np.ones(tail.length, dtype=np.int64)
            amounts = [requests.get(resource, 0) for requests in tail.ranked.requests[tail.start :]]
            return np.array(amounts, dtype=np.int64)

        return self.derived(("requests", resource), requested)

    @property
    def priorities(self) -> IntArray:
        return self.derived("priorities", _priorities)

    def starts(self) -> FloatArray:
        """When each pod was started, in epoch seconds; infinite for one that was not."""
        unknown = [tail for tail in self.tails if "starts" not in tail.columns]
        if unknown:  # read together, which costs a fraction of one tail at a time
            seconds = _starts([pod.status.start_time or "" for tail in unknown for pod in tail])
            ends = np.cumsum([tail.length for tail in unknown])
            for tail, part in zip(unknown, np.split(seconds, ends[:-1]), strict=True):
                tail.columns["starts"] = part
        return np.concatenate([tail.columns["starts"] for tail in self.tails]) if self.size else np.zeros(0)

    def sums(self, values: IntArray) -> IntArray:
        """The sum over each tail of something that every entry has."""
        running = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(values)))
        summed: IntArray = running[self.offsets + self.lengths] - running[self.offsets]
        return summed

    def totals(self, resource: str) -> IntArray:
        """What the pods of each tail request together."""
        return self.lengths if resource == "pods" else self.sums(self.column(resource))


def _priorities(tail: PodTail) -> IntArray:
    return -np.array(tail.ranked.descending[tail.start :], dtype=np.int64)


def _sorted(pods: list[tuple[Pod, Requests]]) -> list[tuple[Pod, Requests]]:
    """By importance; pods that are equally important keep their order."""
    ranks: list[tuple[int, Any]] = [
        (-(pod.spec.priority or 0), pod.status.start_time or "") for pod, _ in pods
    ]
    # Texts of the usual form sort as the times that they stand for, and parsing is what costs here.
    if not _canonical([text for _, text in ranks]):
        ranks = [(rank, start_of(pod)) for (rank, _), (pod, _) in zip(ranks, pods, strict=True)]
    return [pods[index] for index in sorted(range(len(pods)), key=ranks.__getitem__)]


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
    return {*map(len, texts)} <= {_CANONICAL} and {text[-1] for text in texts} <= {"Z"}
