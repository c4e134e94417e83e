"""The plugin itself: thin points over `filtering`, `scoring` and `hints`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence

from mooring.api.pod import Pod
from mooring.api.requests import PODS
from mooring.framework.access import Dependency, Reads
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import DEVICE_CLASS, NODE, POD, ActionType, ClusterEvent, Registration
from mooring.framework.handle import Handle
from mooring.framework.hot import (
    HeadroomFilterPlugin,
    PreparedFilterPlugin,
    PreparedScorePlugin,
    WholeTableFilterPlugin,
    WholeTableScorePlugin,
)
from mooring.framework.nodes import IntArray, Nodes, NodeView, Refusals
from mooring.framework.points import PreFilterPlugin, PreScorePlugin
from mooring.framework.reusable import ReusablePlugin
from mooring.framework.status import Status
from mooring.plugins.node_resources_fit.args import NodeResourcesFitArgs
from mooring.plugins.node_resources_fit.filtering import Ignored, Requests, headroom, refusal, refusals
from mooring.plugins.node_resources_fit.hints import (
    device_class_serves,
    node_has_capacity,
    pod_gone_or_smaller,
)
from mooring.plugins.node_resources_fit.scoring import Asks, Scorer
from mooring.plugins.pod_demand import PodDemands

FILTERED = "NodeResourcesFit.filter"
SCORED = "NodeResourcesFit.score"


class NodeResourcesFit(
    PreFilterPlugin,
    HeadroomFilterPlugin,
    WholeTableFilterPlugin,
    PreparedFilterPlugin,
    PreScorePlugin,
    WholeTableScorePlugin,
    PreparedScorePlugin,
    ReusablePlugin,
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

    def _scored(self, state: CycleState, pod: Pod) -> Asks:
        """PreScore may be switched off on its own; then the pod is read here."""
        found: Asks | None = state.read(SCORED, None)
        return self._asks(pod) if found is None else found

    def _asks(self, pod: Pod) -> Asks:
        return self._scorer.asks(self._demands.of(pod).scored)

    def events_to_register(self) -> Sequence[Registration]:
        pods = ClusterEvent(POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        classes = ClusterEvent(DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
        return [
            Registration(pods, pod_gone_or_smaller),
            Registration(node, node_has_capacity),
            Registration(classes, device_class_serves),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return self._demands.of(pod).signature

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW)
