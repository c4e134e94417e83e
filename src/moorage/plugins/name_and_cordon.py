"""NodeName: a pod with spec.nodeName runs on that node only. NodeUnschedulable: a cordoned node accepts only pods that
tolerate the cordon. They follow pkg/scheduler/framework/plugins/{nodename,nodeunschedulable}."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from msgspec.structs import replace

from moorage.api.kubectl import kubectl
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES
from moorage.api.taints import NO_SCHEDULE, TAINT_UNSCHEDULABLE, Taint, tolerates
from moorage.framework.access import Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, POD, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import Code, PreFilterResult, Status

REASON_NAME = "node(s) didn't match the requested node name"

_OTHER_NODE = Status.unresolvable(REASON_NAME)


class NodeName(PreFilterPlugin, WholeTableFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "NodeName"
    few_signs = True

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult | None:
        """Narrow the search to the node that the pod names. Versions that only filter do not call this
        (`Behaviour.node_name_narrows`)."""
        wanted = pod.spec.node_name
        return PreFilterResult(frozenset((wanted,))) if wanted else None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        wanted = pod.spec.node_name
        return _OTHER_NODE if wanted and wanted != node.name else None

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        wanted = pod.spec.node_name
        if not wanted:
            return None
        others = nodes.rows != nodes.columns.row_of(wanted)
        return nodes.refuse(others, REASON_NAME, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        if pod.spec.node_name and pod.spec.node_name != node.name:
            yield Detail("nodeName", asked=pod.spec.node_name, there=node.name)

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ClusterEvent(NODE, ActionType.ADD))]

    def sign(self, pod: Pod) -> Hashable:
        return pod.spec.node_name

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE,)


REASON_CORDON = "node(s) were unschedulable"
CORDON = Taint(key=TAINT_UNSCHEDULABLE, effect=NO_SCHEDULE)

_MAX_NAMED = 5
_CORDONED = Status.unresolvable(REASON_CORDON)


class NodeUnschedulable(WholeTableFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "NodeUnschedulable"
    few_signs = True

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        return _CORDONED if node.unschedulable and not tolerates_cordon(pod) else None

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        if not any(cls.unschedulable for cls in nodes.columns.taints.classes) or tolerates_cordon(pod):
            return None
        cordoned = nodes.node_column(self.name, lambda some: some.by_taints(lambda cls: cls.unschedulable))
        return nodes.refuse(cordoned, REASON_CORDON, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterable[Detail]:
        return ()  # the reason says everything

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterable[Proposal]:
        taints = tuple(taint for taint in node.taints if taint.key != TAINT_UNSCHEDULABLE)
        spec = replace(node.node.spec, unschedulable=False, taints=taints)
        change = (NODES, node.node, replace(node.node, spec=spec))
        command = kubectl("uncordon", node.name)
        yield Proposal("uncordon", f"uncordon node {node.name}", 1, changes=(change,), command=command)

    def facts(self, state: CycleState, pod: Pod, nodes: Nodes) -> Iterator[str]:
        cordoned = nodes.where(nodes.by_taints(lambda cls: cls.unschedulable).astype(np.bool_))
        if len(cordoned):
            names = ", ".join(view.name for view in islice(cordoned, _MAX_NAMED))
            more = f" and {len(cordoned) - _MAX_NAMED} more" if len(cordoned) > _MAX_NAMED else ""
            yield f"{'1 node is' if len(cordoned) == 1 else f'{len(cordoned)} nodes are'} cordoned: {names}{more}."

    def events_to_register(self) -> Sequence[Registration]:
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        own = ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION)
        return [Registration(node, node_is_schedulable), Registration(own, own_toleration, per_pod=True)]

    def sign(self, pod: Pod) -> Hashable:
        return tolerates_cordon(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE,)


def tolerates_cordon(pod: Pod) -> bool:
    return any(tolerates(toleration, CORDON) for toleration in pod.spec.tolerations)


def node_is_schedulable(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a node was added or changed and is not cordoned."""
    schedulable = isinstance(new, Node) and not new.unschedulable
    return QueueingHint.QUEUE if schedulable else QueueingHint.SKIP


def own_toleration(pod: Pod, old: Any, new: Any) -> QueueingHint:
    own = isinstance(new, Pod) and new.uid == pod.uid and tolerates_cordon(new)
    return QueueingHint.QUEUE if own else QueueingHint.SKIP
