"""The plugin `sample`: pods run only on nodes with the label cpu=true."""

from collections.abc import Sequence

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework import (
    ActionType,
    ClusterEvent,
    CycleState,
    FilterPlugin,
    NodeView,
    QueueingHint,
    Registration,
    Status,
    events,
)


class Sample(FilterPlugin):
    name = "sample"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        if node.labels.get("cpu") != "true":
            return Status.unschedulable(f"Node: {node.name}")
        return None

    def events_to_register(self) -> Sequence[Registration]:
        """Only a node that is new, or whose labels change, can help a pod that was refused here."""
        relabelled = ClusterEvent(events.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [Registration(relabelled, self.now_has_label)]

    def now_has_label(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        helps = new is not None and new.labels.get("cpu") == "true"
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP
