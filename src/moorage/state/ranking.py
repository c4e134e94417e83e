"""The pods of one node by importance: whom preemption spares first.

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

from moorage.api.pod import Pod
from moorage.api.times import parse_time
from moorage.framework.preemption import start_of

_CANONICAL = len("2026-01-01T00:00:00Z")

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

Requests = Mapping[str, int]
"""Resource → amount that a pod takes from its node."""


class PodRanking:
    """Pods of one node, most important first, with what they request."""

    __slots__ = ("_lower", "descending", "memo", "pods", "requests")

    def __init__(self, pods: Iterable[tuple[Pod, Requests]], *, ranked: bool = False) -> None:
        """`ranked`: leave the order as it is; then `below` has no meaning."""
        given = list(pods)
        if not ranked and len(given) > 1:
            given = _sorted(given)
        self.pods: tuple[Pod, ...] = tuple([pod for pod, _ in given])
        self.requests: list[Requests] = [requests for _, requests in given]
        self.memo: dict[Hashable, Any] = {}
        """What callers derive from just these pods and want to find again."""
        self.descending = [-(pod.spec.priority or 0) for pod in self.pods]
        """Their priorities, negated."""
        self._lower: LowerPods | None = None
        """The latest answer of `below`."""

    def __len__(self) -> int:
        return len(self.pods)

    def below(self, priority: int) -> LowerPods:
        """The pods of lower priority."""
        lower = self._lower
        if lower is None or lower.below != priority:
            lower = self._lower = LowerPods(self, bisect_right(self.descending, -priority), priority)
        return lower


class LowerPods(Sequence[Pod]):
    """The less important pods of a node: those of a ranking from some index on."""

    __slots__ = ("below", "columns", "length", "ranked", "start")

    def __init__(self, ranked: PodRanking, start: int, below: int | None = None) -> None:
        self.ranked = ranked
        self.start = start
        self.below = below
        """The priority that all of these are below, if that is how they were found."""
        self.length = len(ranked.pods) - start
        self.columns: dict[Hashable, npt.NDArray[Any]] = {}
        """Something that each of these pods has, in order; kept by `VictimColumns`."""

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


class VictimColumns:
    """The potential victims of many nodes in one long list, node after node: entry `offsets[i] + n` is pod
    `n` of node `i`."""

    def __init__(self, by_node: Sequence[LowerPods]) -> None:
        self.by_node = by_node
        self.lengths: IntArray = np.array([pods.length for pods in by_node], dtype=np.int64)
        ends = np.cumsum(self.lengths)
        self.offsets: IntArray = ends - self.lengths
        self.size = int(ends[-1]) if len(by_node) else 0
        """Length of the list."""
        self._columns: dict[Hashable, npt.NDArray[Any]] = {}

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.by_node)

    def pods(self, entries: IntArray) -> list[Pod]:
        """The pods of some entries of the list."""
        rows = np.searchsorted(self.offsets, entries, side="right") - 1
        numbers = entries - self.offsets[rows]
        return [self.by_node[r][n] for r, n in zip(rows.tolist(), numbers.tolist(), strict=True)]

    def derived(self, key: Hashable, compute: Callable[[LowerPods], IntArray]) -> IntArray:
        """Something that each pod has; `compute` computes it for the pods of one node, once."""
        found = self._columns.get(key)
        if found is None:
            try:
                parts = [pods.columns[key] for pods in self.by_node]
            except KeyError:
                for pods in self.by_node:
                    if key not in pods.columns:
                        pods.columns[key] = compute(pods)
                parts = [pods.columns[key] for pods in self.by_node]
            found = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
            self._columns[key] = found
        return found

    def column(self, resource: str) -> IntArray:
        """What each pod requests; every pod counts as one of `pods`."""

        def requested(pods: LowerPods) -> IntArray:
            if resource == "pods":
                return np.ones(pods.length, dtype=np.int64)
            amounts = [requests.get(resource, 0) for requests in pods.ranked.requests[pods.start :]]
            return np.array(amounts, dtype=np.int64)

        return self.derived(("requests", resource), requested)

    @property
    def priorities(self) -> IntArray:
        return self.derived("priorities", _priorities)

    def starts(self) -> FloatArray:
        """When each pod was started, in epoch seconds; infinite for one that was not."""
        unknown = [pods for pods in self.by_node if "starts" not in pods.columns]
        if unknown:  # read together, which costs a fraction of one node at a time
            seconds = _starts([pod.status.start_time or "" for pods in unknown for pod in pods])
            ends = np.cumsum([pods.length for pods in unknown])
            for pods, part in zip(unknown, np.split(seconds, ends[:-1]), strict=True):
                pods.columns["starts"] = part
        return np.concatenate([pods.columns["starts"] for pods in self.by_node]) if self.size else np.zeros(0)

    def sums(self, values: IntArray) -> IntArray:
        """The sum over each node of something that every entry has."""
        running = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(values)))
        summed: IntArray = running[self.offsets + self.lengths] - running[self.offsets]
        return summed

    def totals(self, resource: str) -> IntArray:
        """What the pods of each node request together."""
        return self.lengths if resource == "pods" else self.sums(self.column(resource))


def _priorities(pods: LowerPods) -> IntArray:
    return -np.array(pods.ranked.descending[pods.start :], dtype=np.int64)


def _sorted(pods: list[tuple[Pod, Requests]]) -> list[tuple[Pod, Requests]]:
    """By importance; pods that are equally important keep their order."""
    ranks: list[tuple[int, Any]] = [(-(pod.spec.priority or 0), pod.status.start_time or "") for pod, _ in pods]
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
