"""Is there free_columns: the pod's requests against what a node offers and what its pods have taken.

The verdict on one node and the verdict on all of them say the same; the vector form reads columns, the scalar
one the node's view alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from mooring.api.requests import PODS, is_extended_resource
from mooring.framework.nodes import BoolArray, IntArray, Nodes, Refusals
from mooring.framework.status import Code, Status

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient %s"

Requests = tuple[tuple[str, int], ...]
"""Resource and amount, above zero each."""


class Ignored:
    """Extended resources that a profile leaves to others, by name or by the part before the slash."""

    def __init__(self, names: Iterable[str], groups: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._groups = frozenset(groups)

    def drop(self, requests: Requests) -> Requests:
        """The requests that count."""
        if not self._names and not self._groups:
            return requests
        return tuple(request for request in requests if not self._covers(request[0]))

    def _covers(self, resource: str) -> bool:
        listed = resource in self._names or resource.partition("/")[0] in self._groups
        return listed and is_extended_resource(resource)


def refusal(
    requests: Requests, allocatable: Mapping[str, int], requested: Mapping[str, int]
) -> Status | None:
    """The verdict on one node: every reason that holds. No preemption can help where a request is larger than
    the node itself."""
    full = requested[PODS] >= allocatable.get(PODS, 0)
    for name, ask in requests:
        if ask > allocatable.get(name, 0) - requested.get(name, 0):
            break
    else:
        if not full:
            return None
    lacking = [
        (name, ask) for name, ask in requests if ask > allocatable.get(name, 0) - requested.get(name, 0)
    ]
    hopeless = any(ask > allocatable.get(name, 0) for name, ask in lacking)
    return _status(hopeless, full, tuple(name for name, _ in lacking))


@lru_cache(maxsize=1024)
def _status(hopeless: bool, full: bool, lacking: tuple[str, ...]) -> Status:
    reasons = [TOO_MANY_PODS] if full else []
    reasons += [INSUFFICIENT % name for name in lacking]
    return Status.unschedulable(*reasons, resolvable=not hopeless)


def headroom(requests: Requests, nodes: Nodes) -> dict[str, IntArray]:
    """How much more others may take of what the pod asks for, and how many pods may still come beside it."""
    remaining = {name: nodes.free(name) - ask for name, ask in requests}
    remaining[PODS] = nodes.free(PODS) - 1
    return remaining


def refusals(requests: Requests, nodes: Nodes) -> Refusals | None:
    """The verdict on all nodes at once."""
    if not len(nodes.rows):
        return None
    names = tuple([name for name, _ in requests])
    free_columns = nodes.kept(("NodeResourcesFit.free", names), lambda some: FreeColumns(some, names))
    full: BoolArray = free_columns.pods < 1
    # argmax of a mask stops at its first True: the cheapest way to learn that there is none.
    answer = nodes.refuse(full, TOO_MANY_PODS) if full[full.argmax()] else None
    for (name, ask), free, least in zip(requests, free_columns.free, free_columns.least, strict=True):
        lacking: BoolArray = free < ask
        if lacking[lacking.argmax()]:
            answer = nodes.refusals() if answer is None else answer
            if ask <= least:
                answer.add(lacking, INSUFFICIENT % name)
            else:
                _add(answer, nodes.allocatable(name) < ask, lacking, INSUFFICIENT % name)
    return answer


class FreeColumns:
    """What is free of some resources, found once until a node changes."""

    __slots__ = ("free", "least", "pods")

    def __init__(self, nodes: Nodes, names: Sequence[str]) -> None:
        self.pods = nodes.free(PODS)
        self.free = [nodes.free(name) for name in names]
        self.least = [int(nodes.allocatable(name).min()) for name in names]
        """The least that any node has in all: who asks for no more can be helped by free space."""


def _add(answer: Refusals, hopeless: BoolArray, mask: BoolArray, reason: str) -> None:
    never = mask & hopeless
    if not never.any():
        answer.add(mask, reason)
        return
    answer.add(mask & ~never, reason)
    answer.add(never, reason, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
