"""Scores that depend on pods anywhere, updated from pod to pod by the plugins themselves.

A template's baseline holds the results of plugins that depend on one row at a time. If all others keep their scores up
to date (`hot.IncrementalScorePlugin`) and reject nothing, the next pod of the template needs neither PreScore nor Score
nor NormalizeScore: the sum of the kept and the incremental scores decides."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import IncrementalScore, IncrementalScorePlugin
from moorage.framework.nodes import BoolArray, EveryRow, IntArray
from moorage.runtime.attempt import RemainingPlugins
from moorage.runtime.calling import failed


class IncrementalScores:
    """The incremental scores of one baseline, with the weights of their plugins."""

    __slots__ = ("_scores", "_totals")

    def __init__(self, scores: list[tuple[IncrementalScore, int]], rows: int) -> None:
        self._scores = scores
        self._totals: IntArray = np.empty(rows, dtype=np.int64)

    def best(self, base: IntArray, every: EveryRow) -> int | None:
        """Return the row of the highest total, the first in snapshot order among equals, on top of the totals in
        `base`; None if one of the plugins cannot tell."""
        totals = self._totals
        for score, weight in self._scores:
            if not score.add_to(base, weight, totals):
                return None
            base = totals
        if every.in_order:
            return int(totals.argmax())
        return int(every.listed.rows[totals.take(every.listed.rows).argmax()])


def may_be_incremental(remaining: RemainingPlugins) -> bool:
    """Return whether all remaining score plugins can keep their scores up to date."""
    scores = remaining.scores
    return bool(scores) and all(isinstance(step.plugin, IncrementalScorePlugin) for step in scores)


def incremental_scores(
    remaining: RemainingPlugins, state: CycleState, pod: Pod, every: EveryRow, feasible: BoolArray
) -> IncrementalScores | None:
    """Ask the remaining plugins to keep their scores up to date from now on. `state` is that of an attempt in which
    they scored. Return None if one of them cannot."""
    steps = [step for step in remaining.scores if step.name not in state.skip_score]
    if any(plugin.name not in state.skip_filter for plugin in remaining.filters):
        return None
    scored: Collection[str] = {step.name for step in steps}
    if not steps or any(plugin.name not in scored for plugin in remaining.pre_scores):
        return None  # a plugin that answered Skip may score the next pod
    found: list[tuple[IncrementalScore, int]] = []
    for step in steps:
        plugin = step.plugin
        if not isinstance(plugin, IncrementalScorePlugin):
            return None
        try:
            score = plugin.incremental_score(state, pod, every.nodes, feasible)
        except Exception as error:
            failed(plugin, "IncrementalScore", pod, error)  # logged; its scores can still be asked for
            return None
        if score is None:
            return None
        found.append((score, step.weight))
    return IncrementalScores(found, len(feasible))
