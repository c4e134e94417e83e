"""What would make a pod schedulable, found out by trying.

Proposals (`relaxing`) for the nodes with the fewest obstacles are applied to the pod, or to the engine's copy
of the cluster and taken back, and the scheduler is asked again. What is shown has worked here."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from moorage.api.node import HOSTNAME, Node
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.api.resources import NODES
from moorage.explain.judging import Judge, Judgement
from moorage.explain.relaxing import ObjectChange, Relaxation, alternatives
from moorage.framework.nodes import IntArray, NodeView
from moorage.framework.ports import Change

MOST_TRIED = 48
SHOWN = 5
_NODES_PER_GROUP = 12
"""Nodes that are refused for the same reasons, the nearest to fitting, for which proposals are made."""
_GROUPS = 24
_SHAPES = 6
_PRIORITIES = 5
_NEW = "one-more-node"


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that helps."""

    text: str
    nodes: int
    """How many would be feasible then; 0 where pods have to be preempted first."""
    node: str
    """Where the pod would go."""
    pod: Pod | None = None
    """As it would be; None: it stays as it is."""
    changes: tuple[ObjectChange, ...] = ()
    """What would be different in the cluster."""
    cost: int = 0


async def find_remedies(judge: Judge, judgement: Judgement, shown: int = SHOWN) -> list[Remedy]:
    """The mildest ones first; none for a pod that has a feasible node."""
    if judgement.feasible or not judgement.verdicts:
        return []
    found: list[Remedy] = []
    enough: list[set[str]] = []
    for proposal in _proposals(judgement)[:MOST_TRIED]:
        keys = {relaxation.key for relaxation in proposal}
        if any(less <= keys for less in enough):
            continue  # a part of it has been shown to do
        remedy = await _try(judge, judgement.pod, proposal)
        if remedy is not None:
            found.append(remedy)
            enough.append(keys)
        if len(found) >= shown:
            break
    found += [remedy async for remedy in _others(judge, judgement)]
    return sorted(found, key=lambda each: each.cost)[:shown]


def _proposals(judgement: Judgement) -> list[tuple[Relaxation, ...]]:
    """Combinations that get past all plugins on one node at least, the mildest first."""
    best: dict[tuple[str, ...], tuple[Relaxation, ...]] = {}
    for node in _near_nodes(judgement):
        ways = [alternatives(judgement, verdict, node) for verdict, _ in judgement.refusing(node)]
        if not ways or not all(ways):
            continue
        combined: Iterable[tuple[Relaxation, ...]]
        combined = zip(ways[0], strict=True) if len(ways) == 1 else itertools.islice(_products(ways), 4)
        for each in combined:
            key = tuple(relaxation.key for relaxation in each)
            if key not in best or _size(each) < _size(best[key]):
                best[key] = each
    return sorted(best.values(), key=lambda each: (_cost(each), _size(each)))


def _products(ways: Sequence[Sequence[Relaxation]]) -> Iterator[tuple[Relaxation, ...]]:
    return itertools.product(*(way[:2] for way in ways))


def _cost(relaxations: Iterable[Relaxation]) -> int:
    """Several things are more to ask for than one."""
    costs = [relaxation.cost for relaxation in relaxations]
    return sum(costs) + 3 * (len(costs) - 1)


def _size(relaxations: Iterable[Relaxation]) -> float:
    return sum(relaxation.size for relaxation in relaxations)


def _near_nodes(judgement: Judgement) -> Iterator[NodeView]:
    """Of every group of nodes that are refused for the same reasons those that lack the least, beginning with
    the groups that the fewest plugins refuse."""
    nodes = judgement.nodes
    rows = nodes.rows
    ids = np.stack([verdict.statuses.ids[rows] for verdict in judgement.verdicts], axis=1)
    kinds, inverse = np.unique(ids, axis=0, return_inverse=True)
    lacking = _lacking(judgement)
    order = sorted(range(len(kinds)), key=lambda kind: int(np.count_nonzero(kinds[kind])))
    for kind in order[:_GROUPS]:
        mine = np.flatnonzero(inverse.ravel() == kind)
        nearest = mine[np.argsort(lacking[mine], kind="stable")[:_NODES_PER_GROUP]]
        yield from nodes.where(np.isin(np.arange(len(rows)), nearest))


def _lacking(judgement: Judgement) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Per node the largest part of a request that it cannot serve."""
    nodes = judgement.nodes
    most = np.zeros(len(nodes.rows))
    for name, ask in pod_requests(judgement.pod).items():
        if ask > 0:
            free: IntArray = nodes.free(name)
            np.maximum(most, (ask - free) / ask, out=most)
    return most


async def _try(judge: Judge, pod: Pod, relaxations: Sequence[Relaxation]) -> Remedy | None:
    relaxed, changes = pod, tuple(change for each in relaxations for change in each.changes)
    for relaxation in relaxations:
        relaxed = relaxation.relax(relaxed) if relaxation.relax is not None else relaxed
    with changed(judge, changes):
        attempt = await judge.find(relaxed)
    if not attempt.feasible:
        return None
    text = ", and ".join(relaxation.text for relaxation in relaxations)
    kept = None if relaxed is pod else relaxed
    return Remedy(text, attempt.feasible, attempt.node, kept, changes, _cost(relaxations))


@contextmanager
def changed(judge: Judge, changes: Sequence[ObjectChange]) -> Iterator[None]:
    """The engine's cluster with other objects, for as long as the block runs."""
    for resource, old, new in changes:
        judge.engine.inbox.post(Change(resource, old, new))
    judge.engine.drain()
    try:
        yield
    finally:
        for resource, old, new in reversed(changes):
            judge.engine.inbox.post(Change(resource, new, old))
        judge.engine.drain()


async def _others(judge: Judge, judgement: Judgement) -> AsyncIterator[Remedy]:
    """What has nothing to do with a certain node: one more of them, another priority."""
    for node in _shapes(judgement):
        new: ObjectChange = (NODES, None, node_like(node, _NEW))
        with changed(judge, (new,)):
            attempt = await judge.find(judgement.pod)
        if attempt.feasible:
            text = f"one more node like {node.name}"
            yield Remedy(text, attempt.feasible, _NEW, changes=(new,), cost=8)
            break
    if judgement.preemption is not None and judgement.preemption.nominated_node:
        return
    for priority in _priorities(judgement):
        pod = replace(judgement.pod, spec=replace(judgement.pod.spec, priority=priority))
        attempt = await judge.find(pod)
        result, _ = await judge.preempt(attempt)
        if result is not None and result.nominated_node:
            victims = ", ".join(victim.key for victim in result.victims[:3])
            more = f" and {len(result.victims) - 3} more" if len(result.victims) > 3 else ""
            text = f"a priority of {priority}, which would preempt {victims}{more}"
            yield Remedy(text, 0, result.nominated_node, pod, cost=9)
            break


def _shapes(judgement: Judgement) -> list[Node]:
    """One node of each shape, the most common shapes first."""
    groups: dict[tuple[object, ...], list[Node]] = {}
    for view in judgement.nodes:
        shape = (tuple(sorted(view.allocatable.items())), view.taints)
        groups.setdefault(shape, []).append(view.node)
    return [mine[0] for mine in sorted(groups.values(), key=len, reverse=True)[:_SHAPES]]


def node_like(node: Node, name: str) -> Node:
    """A copy under another name, not cordoned."""
    labels = {**node.labels, HOSTNAME: name} if HOSTNAME in node.labels else node.labels
    meta = replace(node.metadata, name=name, uid=f"copy/{name}", labels=labels)
    return replace(node, metadata=meta, spec=replace(node.spec, unschedulable=False))


def _priorities(judgement: Judgement) -> list[int]:
    """Just above those of running pods, the lowest first."""
    own = judgement.pod.priority
    if judgement.pod.spec.preemption_policy == "Never":
        return []
    seen = {pod.priority + 1 for view in judgement.nodes for pod in view.pods if pod.priority >= own}
    return sorted(seen)[:_PRIORITIES]
