"""NodeResourcesFit: nodes must have the free resources that the pod requests; they score by how full they are.

Follows pkg/scheduler/framework/plugins/noderesources/fit.go. This module has Filter: it compares the pod's requests
with the allocatable resources of a node and the requests of its pods. The scalar and the vector form give the same
verdict; the vector form reads columns, the scalar form only the node's view. The scoring strategies are in `scoring`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import unit_of
from moorage.api.requests import CPU, MEMORY, PODS, is_extended_resource, node_allocatable, pod_requests
from moorage.api.resources import Unstructured
from moorage.api.versions import DEFAULT_BEHAVIOUR, Behaviour
from moorage.framework.access import Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import DEVICE_CLASS, NODE, POD, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.hot import (
    HeadroomFilterPlugin,
    ManyPodsFilterPlugin,
    ManyPodsScorePlugin,
    WholeTableFilterPlugin,
    WholeTableScorePlugin,
)
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin
from moorage.framework.points import PreFilterPlugin, PreScorePlugin
from moorage.framework.status import Code, Status
from moorage.plugins.node_resources_fit.args import NodeResourcesFitArgs
from moorage.plugins.node_resources_fit.remedies import facts, proposals
from moorage.plugins.node_resources_fit.scoring import Asks, Scorer
from moorage.plugins.pod_demand import PodDemand, PodDemands, is_counted

FILTERED = "NodeResourcesFit.filter"
SCORED = "NodeResourcesFit.score"


class NodeResourcesFit(
    PreFilterPlugin,
    HeadroomFilterPlugin,
    WholeTableFilterPlugin,
    ManyPodsFilterPlugin,
    PreScorePlugin,
    WholeTableScorePlugin,
    ManyPodsScorePlugin,
    ReusablePlugin,
    ExplainingPlugin,
):
    name = "NodeResourcesFit"
    Args = NodeResourcesFitArgs

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._demands = handle.shared(PodDemands, PodDemands)
        self._ignored = Ignored(args.ignored_resources, args.ignored_resource_groups)
        self._scorer = Scorer(args.scoring_strategy)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        state.write(FILTERED, self._ignored.drop(self._demands.of(pod).filtered))

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        requests: Requests = state.read(FILTERED)
        return refusal(requests, node.allocatable, node.requested)

    def filter_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], Status | None]:
        requests: Requests = state.read(FILTERED)

        def judge(node: NodeView) -> Status | None:
            allocatable, requested = node.allocatable, node.requested
            try:
                for name, ask in requests:
                    if ask > allocatable[name] - requested[name]:
                        return refusal(requests, allocatable, requested)
                if requested[PODS] < allocatable[PODS]:
                    return None
            except KeyError:
                pass  # one of the sides does not know one of them, which `refusal` copes with
            return refusal(requests, allocatable, requested)

        return judge

    def filter_amounts(self, state: CycleState, pod: Pod) -> tuple[int, int] | None:
        asks = dict(state.read(FILTERED))
        amounts = asks.pop(CPU, 0), asks.pop(MEMORY, 0)
        return None if asks else amounts

    def fits_amounts(self, amounts: Sequence[int], node: NodeView) -> bool:
        cpu, memory = amounts
        return node.free(PODS) > 0 and cpu <= node.free(CPU) and memory <= node.free(MEMORY)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        return refusals(state.read(FILTERED), nodes)

    def headroom(self, state: CycleState, pod: Pod, nodes: Nodes) -> dict[str, IntArray]:
        return headroom(state.read(FILTERED), nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        state.write(SCORED, self._asks(pod))

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        asks: Asks | None = state.read(SCORED, None)
        return self._scorer.score(self._asks(pod) if asks is None else asks, node)

    def score_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], int]:
        return self._scorer.prepared(self._scored(state, pod))

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> None:
        self._scorer.score_into(self._scored(state, pod), nodes, out)

    def score_amounts(self, state: CycleState, pod: Pod) -> tuple[int, ...] | None:
        return self._scorer.amounts(self._scored(state, pod))

    def score_many(self, amounts: FloatArray, node: NodeView) -> IntArray | None:
        return self._scorer.score_many(amounts, node)

    def _scored(self, state: CycleState, pod: Pod) -> Asks:
        """Read the pod here if the profile has disabled PreScore."""
        found: Asks | None = state.read(SCORED, None)
        return self._asks(pod) if found is None else found

    def _asks(self, pod: Pod) -> Asks:
        return self._scorer.asks(self._demands.of(pod).scored)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        requests: Requests = state.read(FILTERED)
        for name, ask in (*requests, (PODS, 1)):
            free = node.free(name)
            if ask > free:
                yield Detail(name, asked=ask, there=free, missing=ask - free, unit=unit_of(name))

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        return proposals(dict(state.read(FILTERED)), pod, node, self._largest)

    def _largest(self, resource: str) -> int:
        return int(self.handle.nodes.allocatable(resource).max(initial=0))

    def facts(self, state: CycleState, pod: Pod, nodes: Nodes) -> Iterator[str]:
        return facts(state.read(FILTERED), pod, nodes)

    def events_to_register(self) -> Sequence[Registration]:
        pods = ClusterEvent(POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        classes = ClusterEvent(DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
        return [
            Registration(pods, partial(pod_gone_or_smaller, behaviour=self.handle.behaviour)),
            Registration(node, node_has_capacity),
            Registration(classes, device_class_serves),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return self._demands.of(pod).signature

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW)


TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient %s"

Requests = tuple[tuple[str, int], ...]
"""Resource and amount, above zero each."""
_FEW = 16
"""Nothing is kept for pods that ask for more resources: one pod may name thousands that no other pod names."""


class Ignored:
    """Extended resources that the profile ignores, by name or by the prefix before the slash."""

    def __init__(self, names: Iterable[str], groups: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._groups = frozenset(groups)

    def drop(self, requests: Requests) -> Requests:
        """Return the requests without the ignored ones."""
        if not self._names and not self._groups:
            return requests
        return tuple(request for request in requests if not self._covers(request[0]))

    def _covers(self, resource: str) -> bool:
        listed = resource in self._names or resource.partition("/")[0] in self._groups
        return listed and is_extended_resource(resource)


def refusal(requests: Requests, allocatable: Mapping[str, int], requested: Mapping[str, int]) -> Status | None:
    """Return the verdict on one node with every reason that applies. It is unresolvable if a request exceeds the
    allocatable amount of the node."""
    full = requested[PODS] >= allocatable.get(PODS, 0)
    for name, ask in requests:
        if ask > allocatable.get(name, 0) - requested.get(name, 0):
            break
    else:
        if not full:
            return None
    lacking = [(name, ask) for name, ask in requests if ask > allocatable.get(name, 0) - requested.get(name, 0)]
    hopeless = any(ask > allocatable.get(name, 0) for name, ask in lacking)
    names = tuple([name for name, _ in lacking])
    return _remembered_status(hopeless, full, names) if len(names) <= _FEW else _status(hopeless, full, names)


def _status(hopeless: bool, full: bool, lacking: tuple[str, ...]) -> Status:
    reasons = [TOO_MANY_PODS] if full else []
    reasons += [INSUFFICIENT % name for name in lacking]
    return Status.unschedulable(*reasons, resolvable=not hopeless)


_remembered_status = lru_cache(maxsize=1024)(_status)


def headroom(requests: Requests, nodes: Nodes) -> dict[str, IntArray]:
    """Return how much of the requested resources other pods may still take, and how many pods may be added."""
    remaining = {name: nodes.free(name) - ask for name, ask in requests}
    remaining[PODS] = nodes.free(PODS) - 1
    return remaining


def refusals(requests: Requests, nodes: Nodes) -> Refusals | None:
    """Return the verdict on all nodes."""
    if not len(nodes.rows):
        return None
    names = tuple([name for name, _ in requests])
    if len(names) <= _FEW:
        free_columns = nodes.kept(("NodeResourcesFit.free", names), lambda some: FreeColumns(some, names))
    else:
        free_columns = FreeColumns(nodes, names)
    full: BoolArray = free_columns.pods < 1
    # argmax of a mask stops at its first True: the cheapest way to learn that there is none.
    answer = nodes.refuse(full, TOO_MANY_PODS) if full[full.argmax()] else None
    nowhere: BoolArray | None = None
    for (name, ask), free, least in zip(requests, free_columns.free, free_columns.least, strict=True):
        if least == NOWHERE:  # the pod fits on no node; all such resources share a mask, as one pod may name thousands
            nowhere = np.ones(len(nodes), dtype=np.bool_) if nowhere is None else nowhere
            answer = nodes.refusals() if answer is None else answer
            answer.add(nowhere, INSUFFICIENT % name, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
            continue
        lacking: BoolArray = free < ask
        if lacking[lacking.argmax()]:
            answer = nodes.refusals() if answer is None else answer
            if ask <= least:
                answer.add(lacking, INSUFFICIENT % name)
            else:
                _add(answer, nodes.allocatable(name) < ask, lacking, INSUFFICIENT % name)
    return answer


NOWHERE = -1
"""Stands for the smallest allocatable amount of a resource that no node offers."""
_USUAL = frozenset((CPU, MEMORY))


class FreeColumns:
    """The free amounts of some resources, computed once until a node changes."""

    __slots__ = ("free", "least", "pods")

    def __init__(self, nodes: Nodes, names: Sequence[str]) -> None:
        self.pods = nodes.free(PODS)
        self.free: list[IntArray] = []
        self.least: list[int] = []
        """The smallest allocatable amount of any node: free space can help pods that request no more."""
        for name in names:
            offered = nodes.allocatable(name)
            nowhere = name not in _USUAL and not offered.any()
            self.free.append(offered if nowhere else nodes.free(name))
            self.least.append(NOWHERE if nowhere else int(offered.min()))


def _add(answer: Refusals, hopeless: BoolArray, mask: BoolArray, reason: str) -> None:
    never = mask & hopeless
    if not never.any():
        answer.add(mask, reason)
        return
    answer.add(mask & ~never, reason)
    answer.add(never, reason, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


IMPLICIT_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""Every device class can be asked for as an extended resource of this name and its own."""


def _hint(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def pod_gone_or_smaller(pod: Pod, old: Any, new: Any, *, behaviour: Behaviour = DEFAULT_BEHAVIOUR) -> QueueingHint:
    """Queue if an assigned or nominated pod was deleted, or a pod was scaled down."""
    if isinstance(old, Pod) and new is None:
        return _hint(bool(old.spec.node_name or old.nominated_node_name))
    if isinstance(old, Pod) and isinstance(new, Pod):
        return _hint(new.uid == pod.uid or (new.is_assigned and _freed(pod, old, new, behaviour)))
    return QueueingHint.QUEUE


def _freed(pod: Pod, old: Pod, new: Pod, behaviour: Behaviour) -> bool:
    """Return whether a resource that the pod requests is used less now."""
    before, after = pod_requests(old, behaviour=behaviour), pod_requests(new, behaviour=behaviour)
    wanted = (name for name, amount in pod_requests(pod).items() if amount and is_counted(name))
    return any(before.get(name, 0) > after.get(name, 0) for name in wanted)


def node_has_capacity(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if the pod fits the allocatable resources of the node, and the node is new or has grown in a resource that
    the pod requests."""
    if not isinstance(new, Node):
        return QueueingHint.QUEUE
    requests = PodDemand.of(pod).filtered
    offered = node_allocatable(new)
    if refusal(requests, offered, {PODS: 0}) is not None:
        return QueueingHint.SKIP
    return _hint(not isinstance(old, Node) or _grew(requests, node_allocatable(old), offered))


def _grew(requests: tuple[tuple[str, int], ...], before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    watched = [PODS, *(name for name, _ in requests)]
    return any(after.get(name, 0) > before.get(name, 0) for name in watched)


def device_class_serves(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a device class is new or serves another extended resource, and the pod requests that resource."""
    if not isinstance(new, Unstructured):
        return QueueingHint.QUEUE
    named = new.get("spec", "extendedResourceName", default="")
    asked = pod_requests(pod)
    if not isinstance(old, Unstructured):
        return _hint(IMPLICIT_RESOURCE + new.name in asked or named in asked)
    return _hint(named != old.get("spec", "extendedResourceName", default="") and named in asked)
