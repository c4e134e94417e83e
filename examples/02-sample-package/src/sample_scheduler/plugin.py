"""sample: pods run only on nodes with the label cpu=true; the feasible nodes are logged before scoring."""

import logging
from collections.abc import Sequence

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework import (
    ActionType,
    ClusterEvent,
    CycleState,
    FilterPlugin,
    Nodes,
    NodeView,
    PreScorePlugin,
    QueueingHint,
    Registration,
    Status,
    events,
)

log = logging.getLogger(__name__)
log.setLevel(logging.INFO)


class Sample(FilterPlugin, PreScorePlugin):
    name = "sample"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        if node.labels.get("cpu") != "true":
            return Status.unschedulable(f"Node: {node.name}")
        return None

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Called once per pod, when two nodes or more are feasible."""
        log.info("feasible nodes of %s: %s", pod.key, " ".join(nodes.names))
        return None

    def events_to_register(self) -> Sequence[Registration]:
        """Only a node that is new, or whose labels change, can help a pod that was refused here."""
        relabelled = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [Registration(relabelled, self.now_has_label)]

    def now_has_label(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        helps = new is not None and new.labels.get("cpu") == "true"
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP


class Sample2(Sample):
    """Another tutorial calls it so."""

    name = "sample2"
