"""Base classes that make the default plugins fast on thousands of nodes. **Provisional**: they may change in
any version.

Everything here is optional and changes no answer. Start with `optional`; come here if profiling shows that a
plugin is still too slow.

    WholeTableFilterPlugin, WholeTableScorePlugin    work on full columns instead of gathered ones
    PreparedFilterPlugin, PreparedScorePlugin        answer faster for single nodes that have changed
    ManyPodsFilterPlugin, ManyPodsScorePlugin        judge one changed node for many templates at once
    HeadroomFilterPlugin                             let preemption compute instead of calling Filter
    IncrementalScorePlugin                           keep scores up to date that depend on pods anywhere
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from moorage.api.pod import Pod
from moorage.framework._contract import derived, missing, required
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes, NodeView
from moorage.framework.optional import VectorFilterPlugin, VectorScorePlugin
from moorage.framework.points import FilterPlugin, ScorePlugin
from moorage.framework.status import Status


class WholeTableFilterPlugin(VectorFilterPlugin):
    """`filter_nodes` is called for all rows of the table, including rows that another filter has refused
    and rows without a node (no labels, nothing allocatable). Its answers there are not used; it must not
    raise or answer Error for them."""


class WholeTableScorePlugin(VectorScorePlugin):
    """`score_into` is called for all rows of the table, with the rules of `WholeTableFilterPlugin`. The
    scores are not checked to be within 0-100."""

    @required
    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> Status | int | None:
        """Write a score for every row into `out`, an int64 buffer of `len(nodes)` with undefined contents.
        Return an int instead to give every node that score."""
        raise missing(self, "score_into")

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        out: IntArray = np.zeros(len(nodes), dtype=np.int64)
        answer = self.score_into(state, pod, nodes, out)
        if isinstance(answer, int):
            out[:] = answer
        return out if answer is None or isinstance(answer, int) else answer

    @derived
    def normalize_rows(
        self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes, feasible: BoolArray
    ) -> IntArray | int:
        """Normalize the scores of every row; only rows where `feasible` is true count. It replaces
        `normalize_nodes`, and its scores are not checked. Return an int to give every node that score."""
        return scores


class PreparedFilterPlugin(FilterPlugin):
    """For a reusable plugin: `filter` with everything prepared that depends on the pod."""

    @required
    def filter_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], Status | None]:
        """Return a function that is called for every changed node while answers for the template of `pod`
        are kept. It must answer as `filter` does for any pod with the same sign."""
        raise missing(self, "filter_for")


class PreparedScorePlugin(ScorePlugin):
    """For a reusable plugin: `score` with everything prepared that depends on the pod."""

    @required
    def score_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], float | Status]:
        """Return a function for `score`, with the rules of `PreparedFilterPlugin.filter_for`."""
        raise missing(self, "score_for")


class ManyPodsFilterPlugin(PreparedFilterPlugin):
    """`filter` for one node and the pods of many templates, if only some amounts of a pod matter, and a
    pod with smaller amounts fits wherever a larger one does."""

    @required
    def filter_amounts(self, state: CycleState, pod: Pod) -> tuple[int, ...] | None:
        """Return the amounts: the same number for all pods, and equal for pods with the same sign. `None`:
        not for this pod."""
        raise missing(self, "filter_amounts")

    @required
    def fits_amounts(self, amounts: Sequence[int], node: NodeView) -> bool:
        """Return whether a pod with these amounts fits on the node. After False, `filter` is called."""
        raise missing(self, "fits_amounts")


class ManyPodsScorePlugin(PreparedScorePlugin):
    """`score` for one node and the pods of many templates, if only some amounts of a pod matter. For a
    `WholeTableScorePlugin` that does not normalize: its scores are added up without a check."""

    @required
    def score_amounts(self, state: CycleState, pod: Pod) -> tuple[int, ...] | None:
        """Return the amounts: the same number for all pods, at most 2^53 each, and equal for pods with the
        same sign. `None`: not for this pod."""
        raise missing(self, "score_amounts")

    @required
    def score_many(self, amounts: FloatArray, node: NodeView) -> IntArray | None:
        """Return the scores of the node for pods with these amounts, one column per pod. After `None`,
        `score` is called."""
        raise missing(self, "score_many")


class HeadroomFilterPlugin(VectorFilterPlugin):
    """For a filter that only compares sums of requests with what a node has."""

    @required
    def headroom(self, state: CycleState, pod: Pod, nodes: Nodes) -> Mapping[str, IntArray] | None:
        """Return for each resource how much more other pods may request on each node while `pod` still
        passes. `filter` must accept a node exactly if no entry is negative. Both this and `filter_nodes`
        must take the sums from `nodes`, which shows other pods in a dry run. `None`: not for this pod."""
        raise missing(self, "headroom")


class IncrementalScore(Protocol):
    """Keeps the scores for the next pod with the same signature. It is used while no node changes and the
    same rows are feasible; it must notice everything else that matters."""

    def add_to(self, base: IntArray, weight: int, out: IntArray) -> bool:
        """Write into `out`, per row, `base` plus `weight` times the normalized score that PreScore, Score
        and NormalizeScore would give now. In rows that are not feasible `base` is far below zero, and the
        sum does not matter. Return False if the scores are unknown; then this object is not used again.

        An object of a plugin that normalizes its scores may also have the method `raw_scores(rows)`, which returns
        the raw scores that were counted for a few rows. Without it, decision records show the normalized scores
        as raw scores."""


class IncrementalScorePlugin(WholeTableScorePlugin):
    """For scores that depend on pods anywhere and can be kept up to date."""

    @required
    def incremental_score(
        self, state: CycleState, pod: Pod, nodes: Nodes, feasible: BoolArray
    ) -> IncrementalScore | None:
        """Return an object that keeps the scores up to date. Called after a pod was scored; `nodes` are
        all rows. None: every pod is scored from the beginning."""
        raise missing(self, "incremental_score")
