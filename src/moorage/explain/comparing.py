"""Compare two deciders on one state of a cluster, pod by pod.

A decider says what happens to a pod: an engine that judges it by a configuration, or the placement that is there. The
comparison covers the feasible nodes, the node that wins, the order of the nodes, the FailedScheduling message and the
preemption. Why the deciders differ is not asked here. Every pod is judged alone, so the cost is linear in the pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.app.offline import AnyEngine
from moorage.explain.judging import Judge, unassigned
from moorage.explain.trying import changed
from moorage.framework.nodes import BoolArray, IntArray
from moorage.framework.status import Code
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.attempt import Attempt
from moorage.runtime.score_board import ScoreBoard
from moorage.scheduler.queue_hooks import run_pre_enqueue

FEASIBLE, NODE, ORDER, PREEMPTION, MESSAGE = "feasible", "node", "order", "preemption", "message"
SCORES, REFUSALS = "scores", "refusals"
WITHOUT_EFFECT = frozenset({SCORES, REFUSALS})
"""Aspects that change nothing for the pod: points of plugins while every node keeps its place, and reasons that no
message shows."""
MAX_NAMES = 20
"""Names of nodes that a difference lists."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeVerdicts:
    """What a decider says about every node."""

    names: list[str]
    ok: BoolArray
    """Whether each node is feasible."""
    statuses: NodeStatuses
    totals: IntArray | None = None
    """The total of each node; None if nothing was scored. Only those of feasible nodes count."""
    points: Mapping[str, IntArray | int] = field(default_factory=dict)
    """Plugin → weighted points of each node, or one number for all."""

    def feasible(self) -> frozenset[str]:
        return frozenset(self.names[index] for index in np.flatnonzero(self.ok).tolist())

    def total(self) -> dict[str, int]:
        """Return the totals of the feasible nodes."""
        if self.totals is None:
            return {}
        return {self.names[index]: int(self.totals[index]) for index in np.flatnonzero(self.ok).tolist()}

    def places(self) -> IntArray:
        """Return the place of each feasible node, counted from the lowest total; equal totals share one."""
        count = int(np.count_nonzero(self.ok))
        if self.totals is None:
            return np.zeros(count, np.int64)
        return np.unique(self.totals[self.ok], return_inverse=True)[1].reshape(count)

    def why_not(self, node: str, winner: str) -> list[str]:
        """Return the plugins that put another node first, or why the node is refused."""
        if node in self.names and winner in self.names and self.totals is not None:
            own, best = self.names.index(node), self.names.index(winner)
            if self.ok[own]:
                return [name for name, points in self.points.items() if _at(points, best) > _at(points, own)]
        return list(self.statuses.get(node).reasons)


@dataclass(frozen=True, slots=True, eq=False)
class PodOutcome:
    """What a decider says about one pod."""

    node: str = ""
    """The node that the pod gets; empty if it stays pending."""
    message: str = ""
    """The text of the FailedScheduling event, or why the pod is not tried; empty if it gets a node."""
    nominated: str = ""
    victims: tuple[str, ...] = ()
    verdicts: NodeVerdicts | None = None
    """None if the decider knows only the node."""

    def is_best(self, node: str) -> bool:
        """Whether the node wins, alone or together with others of the same total."""
        found = self.verdicts
        if node == self.node or found is None or found.totals is None or not self.node or node not in found.names:
            return node == self.node
        own, best = found.names.index(node), found.names.index(self.node)
        return bool(found.ok[own] and found.totals[own] == found.totals[best])

    def digest(self) -> bytes:
        """Return a value that is equal for outcomes without a difference that has an effect, if the nodes are listed in
        the same order."""
        mixed = hashlib.blake2b(digest_size=16)
        for part in (self.message, self.nominated, *self.victims):
            mixed.update(part.encode() + b"\0")
        if self.verdicts is None:
            mixed.update(self.node.encode())
        else:
            mixed.update(self.verdicts.ok.tobytes() + self.verdicts.places().tobytes())
        return mixed.digest()

    def in_words(self) -> str:
        """Return what happens to the pod, in a few words."""
        if self.node and self.verdicts is not None:
            return f"{self.node} ({np.count_nonzero(self.verdicts.ok)} feasible)"
        if self.nominated:
            return f"pending, preempts {len(self.victims)} on {self.nominated}"
        return self.node or "pending"

    def to_dict(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"text": self.in_words(), "node": self.node, "message": self.message}
        if self.verdicts is not None:
            answer["feasible"] = int(np.count_nonzero(self.verdicts.ok))
        return answer | {"preemption": {"nominatedNode": self.nominated, "victims": list(self.victims)}}


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Where two deciders differ about one pod."""

    pod: str
    runs_on: str
    """The present node of the pod; empty if it is pending."""
    aspects: tuple[str, ...]
    before: PodOutcome
    after: PodOutcome

    @property
    def has_effect(self) -> bool:
        return not WITHOUT_EFFECT.issuperset(self.aspects)

    def to_dict(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"pod": self.pod, "runsOn": self.runs_on, "differs": list(self.aspects)}
        answer |= {"before": self.before.to_dict(), "after": self.after.to_dict()}
        if FEASIBLE in self.aspects and self.before.verdicts is not None and self.after.verdicts is not None:
            old, new = self.before.verdicts.feasible(), self.after.verdicts.feasible()
            answer |= {"gained": sorted(new - old)[:MAX_NAMES], "lost": sorted(old - new)[:MAX_NAMES]}
        return answer


class Decider(Protocol):
    """Says what happens to a pod."""

    async def decide(self, pod: Pod) -> PodOutcome: ...


class Placement:
    """Decides that every pod is where it is."""

    async def decide(self, pod: Pod) -> PodOutcome:
        return PodOutcome(pod.spec.node_name)


class EngineDecider:
    """Decides as the profiles of an engine that nothing else uses. A pod that has a node is placed again, with itself
    removed. `nodes_only` leaves out what happens to pods that get no node."""

    def __init__(self, engine: AnyEngine, *, nodes_only: bool = False) -> None:
        self._engine = engine
        self._nodes_only = nodes_only

    async def decide(self, pod: Pod) -> PodOutcome:
        own = self._engine.stores.lister(PODS).get(pod.name, pod.namespace) or pod
        if not own.is_assigned:
            return await self.judge(own)
        with changed(Judge.of(self._engine, own), ((PODS, own, None),)):
            return await self.judge(unassigned(own))

    async def judge(self, pod: Pod) -> PodOutcome:
        """Judge the pod as it is, on the present state of the engine."""
        judge = Judge.of(self._engine, pod)
        held_back = None if self._nodes_only else run_pre_enqueue(judge.profile, pod)
        if held_back is not None:
            return PodOutcome(message="; ".join(held_back.reasons))
        attempt, status = await judge.choose(pod)
        if status.code is Code.ERROR:
            return PodOutcome(message=status.message, verdicts=_refused_everywhere(attempt))
        if self._nodes_only:
            return PodOutcome(attempt.node, verdicts=_verdicts(attempt, attempt.board))
        if attempt.feasible:
            return PodOutcome(attempt.node, verdicts=_verdicts(attempt, judge.scores(attempt)))
        result, message = await judge.fail(attempt, status)
        verdicts = _verdicts(attempt, None)
        if result is None:
            return PodOutcome(message=message, verdicts=verdicts)
        victims = tuple(sorted(victim.key for victim in result.victims))
        return PodOutcome("", message, result.nominated_node or "", victims, verdicts)


async def compare(before: Decider, after: Decider, pods: Iterable[Pod]) -> AsyncIterator[Difference]:
    """Judge every pod by both deciders, and yield the pods about which they differ."""
    for pod in pods:
        old, new = await before.decide(pod), await after.decide(pod)
        if aspects := tuple(differing(old, new)):
            yield Difference(pod.key, pod.spec.node_name, aspects, old, new)


def differing(before: PodOutcome, after: PodOutcome) -> list[str]:
    """Return the aspects in which two outcomes differ. Nodes that share the best total count as one."""
    found = [] if after.is_best(before.node) else [NODE]
    if (before.nominated, before.victims) != (after.nominated, after.victims):
        found.append(PREEMPTION)
    if before.message != after.message:
        found.append(MESSAGE)
    if before.verdicts is not None and after.verdicts is not None:
        found += _differing_nodes(before.verdicts, after.verdicts)
    return found


def _differing_nodes(before: NodeVerdicts, after: NodeVerdicts) -> list[str]:
    after = _listed_as(before.names, after)
    if len(before.names) != len(after.names) or not np.array_equal(before.ok, after.ok):
        return [FEASIBLE]
    found = []
    if not np.array_equal(_scored(before), _scored(after)):
        found.append(SCORES)
        if not np.array_equal(before.places(), after.places()):
            found.append(ORDER)
    elif not _same_points(before, after):
        found.append(SCORES)
    if before.statuses.histogram() != after.statuses.histogram():
        found.append(REFUSALS)
    return found


def _listed_as(names: list[str], found: NodeVerdicts) -> NodeVerdicts:
    """Return verdicts with the nodes in another order. Engines with the same history list them in the same one."""
    if found.names == names or {*found.names} != {*names}:
        return found
    where = {name: index for index, name in enumerate(found.names)}
    order = np.array([where[name] for name in names], np.int64)
    points = {name: each if isinstance(each, int) else each[order] for name, each in found.points.items()}
    totals = None if found.totals is None else found.totals[order]
    return NodeVerdicts(names, found.ok[order], found.statuses, totals, points)


def _scored(found: NodeVerdicts) -> IntArray:
    return np.zeros(0, np.int64) if found.totals is None else found.totals[found.ok]


def _same_points(before: NodeVerdicts, after: NodeVerdicts) -> bool:
    """Whether every plugin gives the same points. A plugin that gives 0 to all is like one that does not score."""
    width = int(np.count_nonzero(before.ok))

    def column(found: NodeVerdicts, name: str) -> IntArray:
        points = found.points.get(name, 0)
        return np.full(width, points, np.int64) if isinstance(points, int) else points[found.ok]

    names = before.points.keys() | after.points.keys()
    return all(np.array_equal(column(before, name), column(after, name)) for name in names)


def _verdicts(attempt: Attempt, board: ScoreBoard | None) -> NodeVerdicts:
    """Return the verdicts of an attempt, and its scores if there are some."""
    nodes = attempt.nodes
    ok = nodes.take(attempt.ok)
    if board is None:
        return NodeVerdicts(nodes.names, ok, attempt.statuses)
    points = {
        column.step.name: column.step.weight * column.normalized
        if isinstance(column.normalized, int)
        else column.step.weight * nodes.take(column.normalized)
        for column in board.columns
    }
    return NodeVerdicts(nodes.names, ok, attempt.statuses, nodes.take(board.totals), points)


def _refused_everywhere(attempt: Attempt) -> NodeVerdicts:
    """Return the verdicts of an attempt that failed: it ends without a node, whatever was feasible so far."""
    return NodeVerdicts(attempt.nodes.names, np.zeros(len(attempt.nodes), np.bool_), attempt.statuses)


def _at(points: IntArray | int, index: int) -> int:
    return points if isinstance(points, int) else int(points[index])
