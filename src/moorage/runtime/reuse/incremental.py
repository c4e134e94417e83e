"""Scores that depend on pods anywhere, updated from pod to pod by the plugins themselves.

A template's baseline holds the results of plugins that depend on one row at a time. If all others keep their scores up
to date (`hot.IncrementalScorePlugin`) and reject nothing, the next pod of the template needs neither PreScore nor Score
nor NormalizeScore: the sum of the kept and the incremental scores decides."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import IncrementalScore, IncrementalScorePlugin
from moorage.framework.nodes import BoolArray, EveryRow, IntArray
from moorage.runtime.attempt import RemainingPlugins
from moorage.runtime.calling import failed
from moorage.runtime.score_board import Ranker, ScoreStep
from moorage.runtime.top_scores import AddedScore


class IncrementalScores:
    """The incremental scores of one baseline, with the weights of their plugins."""

    __slots__ = ("_scores", "added", "chosen", "ranker", "totals")

    def __init__(self, scores: list[tuple[IncrementalScore, ScoreStep]], rows: int) -> None:
        self._scores: list[tuple[IncrementalScore, int, IntArray]] = [
            (score, step.weight, np.empty(rows, dtype=np.int64)) for score, step in scores
        ]
        """With the weights, and the totals after each of them."""
        self.added = tuple(AddedScore(step.name, step.weight, knows_raw(score, step)) for score, step in scores)
        """What records have to know of them."""
        self.chosen = 0
        """The row that `best` returned last."""
        self.totals: IntArray = self._scores[-1][2]
        """The totals that it saw."""
        self.ranker = Ranker()

    def best(self, base: IntArray, every: EveryRow) -> int | None:
        """Return the row of the highest total, the first in snapshot order among equals, on top of the totals in
        `base`; None if one of the plugins cannot tell."""
        for score, weight, totals in self._scores:
            if not score.add_to(base, weight, totals):
                return None
            base = totals
        if every.in_order:
            row = self.chosen = int(base.argmax())
        else:
            row = self.chosen = int(every.listed.rows[base.take(every.listed.rows).argmax()])
        return row

    def add_lines(self, rows: IntArray, with_last: bool, lines: list[Any]) -> None:
        """Add the scores of a few rows as `top_scores.KeptTop` needs them: for each plugin the totals after it, those
        after the last one only `with_last`, and the raw scores, if they are known."""
        for index, (score, _, totals) in enumerate(self._scores):
            if with_last or totals is not self.totals:
                lines.append(totals[rows])
            if self.added[index].has_raw:
                raw = array("q", score.raw_scores(rows))  # type: ignore[attr-defined]
                if len(raw) != len(rows):
                    raise ValueError(f"{self.added[index].plugin}: {len(raw)} raw scores for {len(rows)} rows")
                lines.append(raw)


def knows_raw(score: IncrementalScore, step: ScoreStep) -> bool:
    """Return whether the raw scores can be asked for and differ from the normalized ones."""
    return not step.is_summed and hasattr(score, "raw_scores")


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
    found: list[tuple[IncrementalScore, ScoreStep]] = []
    for step in steps:
        plugin = step.plugin
        if not isinstance(plugin, IncrementalScorePlugin):
            return None
        try:
            score = plugin.incremental_score(state, pod, every.nodes, feasible)
        except BaseException as error:
            failed(plugin, "IncrementalScore", pod, error)  # logged; its scores can still be asked for
            return None
        if score is None:
            return None
        found.append((score, step))
    return IncrementalScores(found, len(feasible))
