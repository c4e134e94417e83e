"""NodeResourcesBalancedAllocation: nodes whose resources the pod brings into balance score higher.

The score is the change that the pod makes to a node's balance; `balance` does the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Self

import msgspec

from mooring.api.pod import Pod
from mooring.api.problems import Problem, child, duplicate, invalid
from mooring.api.requests import is_scalar_resource
from mooring.framework.access import NODE as NODE_OBJECT
from mooring.framework.access import ROW, Reads
from mooring.framework.args import DEFAULT_RESOURCES, ArgsContext, PluginArgs, ResourceSpec, weighted
from mooring.framework.cycle_state import CycleState
from mooring.framework.handle import Handle
from mooring.framework.nodes import IntArray, Nodes, NodeView
from mooring.framework.points import PreScorePlugin, ScorePlugin
from mooring.framework.status import Status
from mooring.plugins import balance
from mooring.plugins.pod_demand import PodDemands, is_counted

SCORED = "NodeResourcesBalancedAllocation.score"


class NodeResourcesBalancedAllocationArgs(PluginArgs):
    """Resources whose utilization should be alike."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def completed(self, context: ArgsContext) -> Self:
        return msgspec.structs.replace(self, resources=weighted(self.resources))

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            where = child(path, "resources", index)
            if resource.name in seen:
                yield duplicate(child(where, "name"), resource.name)
            seen.add(resource.name)
            if resource.weight != 1:
                yield invalid(child(where, "weight"), resource.weight, "must be 1")


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    name = "NodeResourcesBalancedAllocation"
    Args = NodeResourcesBalancedAllocationArgs
    scores_anywhere = True
    writes_all_scores = True

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resources = tuple(spec.name for spec in args.resources)
        self._demands = handle.shared(PodDemands, PodDemands)
        self._standard = not any(is_scalar_resource(name) or not is_counted(name) for name in self._resources)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """A pod that asks for nothing says nothing about balance; scoring it would gather such pods."""
        asks = self._asks(pod)
        if asks is None:
            return Status.skip()
        state.write(SCORED, asks)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        asks: balance.Asks | None = state.read(SCORED, None)
        if asks is None:
            asks = self._asks(pod)
        return 0 if asks is None else balance.score(asks, node.allocatable, node.requested)

    def score_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], int]:
        asks = self._scored(state, pod)
        return (lambda node: 0) if asks is None else balance.prepared(asks)

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> int | None:
        asks = self._scored(state, pod)
        if asks is None or len(asks) < 2:
            return 0 if asks is None else balance.NO_CHANGE
        if len(asks) > 2:
            out[:] = balance.scores(asks, nodes)
            return None
        names = (asks[0][0], asks[1][0])
        pair = nodes.kept(("NodeResourcesBalancedAllocation", names), lambda some: balance.Pair(some, names))
        pair.score_into(asks, nodes, out)
        return None

    def _scored(self, state: CycleState, pod: Pod) -> balance.Asks | None:
        """PreScore may be switched off on its own; then the pod is read here."""
        found: balance.Asks | None = state.read(SCORED, None)
        return self._asks(pod) if found is None else found

    def _asks(self, pod: Pod) -> balance.Asks | None:
        """What counts for this pod: an extended resource only if it asks for it. None for a pod that asks for
        none of the resources."""
        requests = self._demands.of(pod).balanced
        asks = tuple([(name, requests.get(name, 0)) for name in self._resources])
        for _, ask in asks:
            if ask:
                return asks if self._standard else tuple([(n, ask) for n, ask in asks if _counts(n, ask)])
        return None

    def sign(self, pod: Pod) -> Hashable:
        return self._demands.of(pod).signature

    def reads(self, pod: Pod) -> Collection[Reads]:
        return (NODE_OBJECT, ROW)


def _counts(name: str, ask: int) -> bool:
    return is_counted(name) and (ask != 0 or not is_scalar_resource(name))
