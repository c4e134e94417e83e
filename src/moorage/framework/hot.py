"""What the default plugins do to be fast on thousands of nodes. **Provisional**: may change in any version.

Everything here is optional and changes no answer. Start with `vectorized` and `reusable`; come here when a
profile shows that a plugin is still too slow.

    WholeTableFilterPlugin, WholeTableScorePlugin    no gathering of columns for the nodes still in play
    PreparedFilterPlugin, PreparedScorePlugin        cheaper answers for single nodes that have changed
    ManyPodsFilterPlugin, ManyPodsScorePlugin        one changed node judged for many templates at once
    HeadroomFilterPlugin                             preemption computes instead of asking
    IncrementalScorePlugin                           scores that depend on pods anywhere, kept up to date
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
    """`filter_nodes` is asked about all rows of the table, also those that another filter has refused or that
    have no node (no labels, nothing allocatable). Its answers there are not used; it must not fail on them
    nor answer Error."""


class WholeTableScorePlugin(VectorScorePlugin):
    """`score_into` is asked about all rows of the table, with the rules of `WholeTableFilterPlugin`. Such
    scores are trusted: they are not checked to be within 0-100."""

    @required
    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> Status | int | None:
        """Write a score per row into `out`, an int64 buffer of `len(nodes)` that belongs to the runtime and
        may hold anything before: every entry has to be written. Returning an int instead gives every node
        that score."""
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
        """`normalize_nodes` on the scores of every row, of which only those where `feasible` is true count.
        Saves gathering them. Trusted like the scores themselves. Returning an int gives every node that
        score."""
        return scores


class PreparedFilterPlugin(FilterPlugin):
    """For a plugin that is reusable as well: `filter` with everything prepared that depends on the pod."""

    @required
    def filter_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], Status | None]:
        """A function that is called for every node that changes while a baseline is kept for the template of
        `pod`. It must answer as `filter` does for any pod with the same sign."""
        raise missing(self, "filter_for")


class PreparedScorePlugin(ScorePlugin):
    """For a plugin that is reusable as well: `score` with everything prepared that depends on the pod."""

    @required
    def score_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], float | Status]:
        """A function with the rules of `PreparedFilterPlugin.filter_for`, for `score`."""
        raise missing(self, "score_for")


class ManyPodsFilterPlugin(PreparedFilterPlugin):
    """`filter` for one node and the pods of many templates, where nothing matters of a pod but some amounts,
    and a pod with smaller ones fits wherever a larger one does."""

    @required
    def filter_amounts(self, state: CycleState, pod: Pod) -> tuple[int, ...] | None:
        """The amounts, equally many for all pods and equal for pods with the same sign. `None`: not for this
        pod."""
        raise missing(self, "filter_amounts")

    @required
    def fits_amounts(self, amounts: Sequence[int], node: NodeView) -> bool:
        """Whether the node fits a pod with these amounts. False where that takes a closer look: `filter` is
        asked then."""
        raise missing(self, "fits_amounts")


class ManyPodsScorePlugin(PreparedScorePlugin):
    """`score` for one node and the pods of many templates, where nothing matters of a pod but some amounts.
    For a `WholeTableScorePlugin` that does not normalise: such scores are added up and trusted."""

    @required
    def score_amounts(self, state: CycleState, pod: Pod) -> tuple[int, ...] | None:
        """The amounts, equally many for all pods, at most 2^53 each, and equal for pods with the same sign.
        `None`: not for this pod."""
        raise missing(self, "score_amounts")

    @required
    def score_many(self, amounts: FloatArray, node: NodeView) -> IntArray | None:
        """What the node scores for pods with these amounts, of which there is a column for each pod. `None`:
        `score` is to be asked."""
        raise missing(self, "score_many")


class HeadroomFilterPlugin(VectorFilterPlugin):
    """For a filter that does nothing but hold sums of requests against what a node has."""

    @required
    def headroom(self, state: CycleState, pod: Pod, nodes: Nodes) -> Mapping[str, IntArray] | None:
        """Resource → how much more of it other pods may request on each node with `pod` still passing.
        `filter` must say yes exactly where no entry is negative, so that preemption can compute instead of
        asking. Both this and `filter_nodes` must take the sums from `nodes`, which in a dry run shows other
        pods than the cluster has. `None`: not for this pod."""
        raise missing(self, "headroom")


class IncrementalScore(Protocol):
    """Knows what a plugin would say of the next pod with the same signature. It is used for as long as no
    node changes and the same rows are feasible; everything else that matters it has to notice itself."""

    def add_to(self, base: IntArray, weight: int, out: IntArray) -> bool:
        """Write into `out`, per row, `base` plus `weight` times the normalised score that PreScore, Score and
        NormalizeScore would lead to now. `base` is far below zero in rows that are not feasible, so what is
        added there means nothing. False: it cannot tell any more, and is not asked again."""
        ...


class IncrementalScorePlugin(WholeTableScorePlugin):
    """For scores that depend on pods anywhere, so that they cannot be kept as they are."""

    @required
    def incremental_score(
        self, state: CycleState, pod: Pod, nodes: Nodes, feasible: BoolArray
    ) -> IncrementalScore | None:
        """An object that keeps the scores up to date. Asked after a pod was scored; `nodes` are all rows,
        `state` is that of the attempt. None: every pod is scored from the beginning."""
        raise missing(self, "incremental_score")
