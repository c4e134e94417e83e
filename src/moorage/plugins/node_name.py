"""NodeName: a pod that names its node runs there or nowhere."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from moorage.api.pod import Pod
from moorage.framework.access import Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, ActionType, ClusterEvent, Registration
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, ReusablePlugin
from moorage.framework.status import Code, Status

REASON = "node(s) didn't match the requested node name"

_REFUSED = Status.unresolvable(REASON)


class NodeName(WholeTableFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "NodeName"
    few_signs = True

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        wanted = pod.spec.node_name
        return _REFUSED if wanted and wanted != node.name else None

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        wanted = pod.spec.node_name
        if not wanted:
            return None
        others = nodes.rows != nodes.columns.row_of(wanted)
        return nodes.refuse(others, REASON, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        if pod.spec.node_name and pod.spec.node_name != node.name:
            yield Detail("nodeName", asked=pod.spec.node_name, there=node.name)

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ClusterEvent(NODE, ActionType.ADD))]

    def sign(self, pod: Pod) -> Hashable:
        return pod.spec.node_name

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE,)
