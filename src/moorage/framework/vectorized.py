"""Filter and Score for all nodes at once, on NumPy columns: chosen by inheriting these classes.

The scalar method is made from the vector one, so a plugin writes only the latter; the runtime asks whichever
it needs (a dry run looks at single nodes). A plugin may write both where the scalar form is faster for one
node; then they must agree."""

from __future__ import annotations

from typing import Any

from moorage.api.pod import Pod
from moorage.framework import lifting
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import IntArray, Nodes, NodeView, Refusals
from moorage.framework.points import FilterPlugin, ScorePlugin
from moorage.framework.status import Status


class VectorFilterPlugin(FilterPlugin):
    """Can the pod run there? Asked about all nodes in one call."""

    @lifting.required
    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        """`nodes` holds only those that all filters before this one kept. Return `nodes.refuse(mask,
        reason)`, or `nodes.refusals()` filled with several reasons and codes. `None` keeps all."""
        raise lifting.missing(self, "filter_nodes")

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        return lifting.lower_filter(self, state, pod, node)


class VectorScorePlugin(ScorePlugin):
    """How good is the node? Asked about all feasible nodes in one call."""

    @lifting.required
    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        """An array of int64 or float64, one entry per node of `nodes` (the feasible ones), or a Status."""
        raise lifting.missing(self, "score_nodes")

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> float | Status:
        return lifting.lower_score(self, state, pod, node)

    @lifting.derived
    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        """The scores of all feasible nodes, one entry each, scaled into 0-100; an array or a Status. A plugin
        whose scores are in 0-100 already, or that declares `normalization`, does not override it."""
        return lifting.lift_normalize(self, state, pod, scores, nodes)
