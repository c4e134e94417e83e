"""PodState: prefer nodes that will soon have more free capacity: terminating pods count for their node, nominated pods
count against it. Follows pkg/podstate/pod_state.go of scheduler-plugins."""

from __future__ import annotations

from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.contrib.normalizing import min_max
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import IntArray, Nodes, NodeView
from moorage.framework.optional import VectorScorePlugin


class PodState(VectorScorePlugin):
    name = "PodState"

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        terminating = nodes.row_column(self.name, terminating_pods, terminating_pods_on)
        return terminating - self._nominated(nodes)

    def _nominated(self, nodes: Nodes) -> IntArray:
        """Return the number of nominated pods per node, for the few nodes that have any."""
        found = np.zeros(nodes.columns.width, dtype=np.int64)
        nominator = self.handle.nominator
        for name in nominator.nodes():
            row = nodes.columns.row_of(name)
            if row >= 0:
                found[row] = len(nominator.nominated_on(name))
        nominated: IntArray = nodes.take(found)
        return nominated

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        return min_max(scores)


def terminating_pods(nodes: Nodes) -> IntArray:
    return np.array([terminating_pods_on(node) for node in nodes], dtype=np.int64)


def terminating_pods_on(node: NodeView) -> int:
    return sum(pod.is_terminating for pod in node.pods)
