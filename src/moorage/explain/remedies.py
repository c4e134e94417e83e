"""What would make a pod schedulable, found by trying.

The plugins that refuse the nodes with the fewest obstacles propose changes (`ExplainingPlugin.remedies`).
They are applied to the pod, or to the engine's copy of the cluster, and the scheduler is asked again; then
they are taken back. Only proposals that work are shown."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from moorage.api.meta import Object
from moorage.api.node import HOSTNAME, Node
from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.api.resources import NODES, Resource, Unstructured
from moorage.explain.judging import Judge, Judgement
from moorage.framework.nodes import IntArray, NodeView
from moorage.framework.optional import ExplainingPlugin, ObjectChange, Proposal
from moorage.framework.ports import Change
from moorage.runtime.calling import failed
from moorage.runtime.questions import PluginVerdict

MAX_TRIED = 48
SHOWN = 5
MAX_PROPOSALS = 8
"""Proposals of one plugin for one node that are considered."""
_NODES_PER_GROUP = 12
"""Nodes that are refused for the same reasons, the nearest to fitting, for which proposals are made."""
_GROUPS = 24
_SHAPES = 6
_PRIORITIES = 5
_NEW = "one-more-node"
_POINT = "Remedies"
"""How logs and metrics name a call of `remedies`."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change after which the pod can be scheduled."""

    text: str
    nodes: int
    """How many nodes would be feasible; 0 if pods have to be preempted first."""
    node: str
    """The node that the pod would get."""
    pod: Pod | None = None
    """The changed pod; None if it stays as it is."""
    changes: tuple[ObjectChange, ...] = ()
    """What would be different in the cluster."""
    cost: int = 0


class Offer(NamedTuple):
    """A proposal, and the plugin that made it."""

    plugin: ExplainingPlugin
    proposal: Proposal


Offers = tuple[Offer, ...]
"""One offer for each plugin that refuses a node."""


async def find_remedies(judge: Judge, judgement: Judgement, shown: int = SHOWN) -> list[Remedy]:
    """Return the remedies that work, the mildest first; none for a pod that has a feasible node."""
    if judgement.feasible or not judgement.verdicts:
        return []
    asking = _Asking(judgement)
    found: list[Remedy] = []
    enough: list[set[str]] = []
    for offers in _combinations(judgement, asking)[:MAX_TRIED]:
        keys = {offer.proposal.key for offer in offers}
        if any(less <= keys for less in enough):
            continue  # a part of it is enough
        remedy = await _try(judge, asking, offers)
        if remedy is not None:
            found.append(remedy)
            enough.append(keys)
        if len(found) >= shown:
            break
    found += [remedy async for remedy in _others(judge, judgement)]
    return sorted(found, key=lambda each: each.cost)[:shown]


class _Asking:
    """Asks plugins for proposals. A plugin that raises or proposes nonsense is named in the log and not asked again."""

    def __init__(self, judgement: Judgement) -> None:
        self._judgement = judgement
        self.broken: set[str] = set()

    @property
    def pod(self) -> Pod:
        return self._judgement.pod

    def offers(self, verdict: PluginVerdict, node: NodeView) -> list[Offer]:
        """Return ways to get past one plugin on one node, the mildest first."""
        plugin = verdict.plugin
        if not isinstance(plugin, ExplainingPlugin) or plugin.name in self.broken:
            return []
        try:
            proposals = plugin.remedies(self._judgement.attempt.state, self.pod, node)
            found = [Offer(plugin, each) for each in itertools.islice(proposals, MAX_PROPOSALS)]
            for offer in found:
                check(offer.proposal)
            return found
        except Exception as error:
            self.skip(plugin, error, node.name)
            return []

    def skip(self, plugin: ExplainingPlugin, error: Exception, node: str = "") -> None:
        """Name a broken plugin in the log, and do not ask it again."""
        self.broken.add(plugin.name)
        failed(plugin, _POINT, self.pod, error, node)

    def relaxed(self, offers: Offers) -> Pod | None:
        """Return the pod with all these changes; None if a plugin fails to make one."""
        pod = self.pod
        for plugin, proposal in offers:
            if plugin.name in self.broken:
                return None
            if proposal.relax is not None:
                try:
                    pod = _checked_pod(proposal.relax(pod))
                except Exception as error:
                    self.skip(plugin, error)
                    return None
        return pod


def check(proposal: object) -> None:
    """Raise a TypeError for something that is not a usable proposal."""
    if not isinstance(proposal, Proposal):
        raise TypeError(f"remedies() must yield Proposal, got {proposal!r}")
    for name, kind in (("key", str), ("text", str), ("cost", int), ("size", int | float), ("changes", tuple)):
        if not isinstance(getattr(proposal, name), kind):
            raise TypeError(f"the {name} of a Proposal is wrong: {getattr(proposal, name)!r}")
    if proposal.relax is None and not proposal.changes:
        raise TypeError(f"the Proposal {proposal.text!r} changes nothing")
    for change in proposal.changes:
        if not isinstance(change, tuple) or len(change) != 3 or not isinstance(change[0], Resource):
            raise TypeError(f"a change is a tuple of a Resource, the old and the new object, got {change!r}")
        objects = [each for each in change[1:] if each is not None]
        if not objects or not all(isinstance(each, Object | Unstructured) for each in objects):
            raise TypeError(f"a change needs objects of moorage.api, got {change[1:]!r}")


def _checked_pod(pod: object) -> Pod:
    if not isinstance(pod, Pod):
        raise TypeError(f"relax must return a Pod, got {pod!r}")
    return pod


def _combinations(judgement: Judgement, asking: _Asking) -> list[Offers]:
    """Return combinations that get past all plugins on at least one node, the mildest first."""
    best: dict[tuple[str, ...], Offers] = {}
    for node in _near_nodes(judgement):
        ways = [asking.offers(verdict, node) for verdict, _ in judgement.refusing(node)]
        if not ways or not all(ways):
            continue
        combined: Iterable[Offers]
        combined = zip(ways[0], strict=True) if len(ways) == 1 else itertools.islice(_products(ways), 4)
        for each in combined:
            key = tuple(offer.proposal.key for offer in each)
            if key not in best or _size(each) < _size(best[key]):
                best[key] = each
    return sorted(best.values(), key=lambda each: (_cost(each), _size(each)))


def _products(ways: Sequence[Sequence[Offer]]) -> Iterator[Offers]:
    return itertools.product(*(way[:2] for way in ways))


def _cost(offers: Offers) -> int:
    """Several changes ask more of the user than one."""
    return sum(offer.proposal.cost for offer in offers) + 3 * (len(offers) - 1)


def _size(offers: Offers) -> float:
    return sum(offer.proposal.size for offer in offers)


def _near_nodes(judgement: Judgement) -> Iterator[NodeView]:
    """Yield, of every group of nodes that are refused for the same reasons, those that lack the least. The
    groups that the fewest plugins refuse come first."""
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
    """Return for each node the largest fraction of a request that it cannot serve."""
    nodes = judgement.nodes
    most = np.zeros(len(nodes.rows))
    for name, ask in pod_requests(judgement.pod).items():
        if ask > 0:
            free: IntArray = nodes.free(name)
            np.maximum(most, (ask - free) / ask, out=most)
    return most


async def _try(judge: Judge, asking: _Asking, offers: Offers) -> Remedy | None:
    relaxed = asking.relaxed(offers)
    if relaxed is None:
        return None
    changes = tuple(change for offer in offers for change in offer.proposal.changes)
    with changed(judge, changes):
        attempt = await judge.find(relaxed)
    if not attempt.feasible:
        return None
    kept = None if relaxed is asking.pod else relaxed
    text = sentence(", and ".join(offer.proposal.text for offer in offers))
    return Remedy(text, attempt.feasible, attempt.node, kept, changes, _cost(offers))


def sentence(text: str) -> str:
    """Return the text with a capital letter in front."""
    return text[:1].upper() + text[1:]


@contextmanager
def changed(judge: Judge, changes: Sequence[ObjectChange]) -> Iterator[None]:
    """Change objects in the engine's cluster while the block runs."""
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
    """Try remedies that concern no certain node: one more node, a higher priority."""
    for node in _shapes(judgement):
        new: ObjectChange = (NODES, None, node_like(node, _NEW))
        with changed(judge, (new,)):
            attempt = await judge.find(judgement.pod)
        if attempt.feasible:
            text = f"Add one more node like {node.name}"
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
            text = f"Raise the priority to {priority}, which would preempt {victims}{more}"
            yield Remedy(text, 0, result.nominated_node, pod, cost=9)
            break


def _shapes(judgement: Judgement) -> list[Node]:
    """Return one node of each shape, the most common shapes first."""
    groups: dict[tuple[object, ...], list[Node]] = {}
    for view in judgement.nodes:
        shape = (tuple(sorted(view.allocatable.items())), view.taints)
        groups.setdefault(shape, []).append(view.node)
    return [mine[0] for mine in sorted(groups.values(), key=len, reverse=True)[:_SHAPES]]


def node_like(node: Node, name: str) -> Node:
    """Return a copy of the node under another name, not cordoned."""
    labels = {**node.labels, HOSTNAME: name} if HOSTNAME in node.labels else node.labels
    meta = replace(node.metadata, name=name, uid=f"copy/{name}", labels=labels)
    return replace(node, metadata=meta, spec=replace(node.spec, unschedulable=False))


def _priorities(judgement: Judgement) -> list[int]:
    """Return priorities just above those of running pods, the lowest first."""
    own = judgement.pod.priority
    if judgement.pod.spec.preemption_policy == "Never":
        return []
    seen = {pod.priority + 1 for view in judgement.nodes for pod in view.pods if pod.priority >= own}
    return sorted(seen)[:_PRIORITIES]
