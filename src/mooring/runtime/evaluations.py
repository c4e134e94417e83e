"""Evaluations that are kept: what the plugins said of all rows for the last pod of one signature.

Most pods have twins. For the second pod of a signature on, only the rows that have changed since are judged
again, one by one in scalar Python; then the next best row is taken. A plugin takes part when it says what its
answer depends on (`reads`) and that is its own row: the node, and what runs there. All other plugins run anew
for every pod, on top of what is remembered.

    remembered:  verdict of the local filters per row · raw scores of the local score plugins · their sum
    anew:        changed rows · filters and scores that look at pods anywhere · the choice

Nothing here decides differently from a fresh evaluation; `tests/runtime/test_memory_equals_fresh.py` compares
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import writes
from mooring.framework.nodes import BoolArray, EveryRow, IntArray, NodeView
from mooring.framework.points import FilterPlugin
from mooring.framework.record import Survey
from mooring.framework.status import Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.dependence import VersionOf
from mooring.runtime.filtering_rows import filter_rows
from mooring.runtime.front import Front
from mooring.runtime.ground import one_for_all
from mooring.runtime.left import Left
from mooring.runtime.memory_plan import Plan, make_plan
from mooring.runtime.profile import Profile
from mooring.runtime.score_board import NEVER, Column, ScoreBoard, Scores
from mooring.runtime.score_steps import ScoreStep
from mooring.runtime.scoring import Scoring, run_pre_score

FilterRow = Callable[[NodeView], Status | None]
ScoreRow = Callable[[NodeView], float | Status]

_FOLLOWERS = 4
"""Columns that those who follow scores may keep, about; they come later than the evaluation is charged."""
NO_RANK = 1 << 14
"""Rank of a row that no local filter refuses."""


Quick = tuple[Sequence[FilterRow], Sequence[tuple[Callable[[NodeView], Any], IntArray, int]], int]
"""For one row, where rows are in snapshot order and all plugins that look at its pods are prepared, summed
and trusted with every row: filters; scores, their raw column and weight; what the others give every node."""


class Following(Protocol):
    """What `score_following` puts on top of an evaluation."""

    def best(self, found: Evaluation) -> int | None: ...


@dataclass(slots=True)
class Evaluation:
    """What is remembered for one signature."""

    plan: Plan
    every: EveryRow
    state: CycleState
    """PreFilter and PreScore results of the local plugins; nobody writes it any more."""
    generation: int
    node_generation: int
    statuses: NodeStatuses
    """Verdicts of the local filters."""
    ok: BoolArray
    """Rows that no local filter refuses."""
    ranks: npt.NDArray[np.int16]
    """Row → place of the local filter that refuses it."""
    row_filters: tuple[tuple[FilterPlugin, FilterRow | None], ...] = ()
    """Local filters that read what runs on the node, without those that are skipped; prepared where the
    plugin has a form for that."""
    raws: dict[str, Scores] = field(default_factory=dict)
    """Local score plugin → raw scores."""
    steps: list[ScoreStep] = field(default_factory=list)
    """Local score plugins that score these pods."""
    row_steps: list[tuple[ScoreStep, ScoreRow | None]] = field(default_factory=list)
    """Those among them that read what runs on the node, prepared in the same way."""
    quick: Quick | None = None
    """The same for a row whose pods have changed, where that is simple; else None."""
    fixed: IntArray | int = 0
    """The part of the sum that changes with the node only."""
    base: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Weighted sum of the local scores that need no normalisation; `NEVER` where the node is refused."""
    ordered: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The same in snapshot order: its highest entry is the next choice when nothing else counts. The same
    array where rows are in snapshot order."""
    front: Front = field(default_factory=Front)
    """The best of `ordered`."""
    is_complete: bool = False
    """Whether `ordered` alone decides: every plugin answers from memory, and those scores that are
    normalised are the same for all nodes."""
    feasible: int = 0
    """Number of rows that are not refused."""
    sums_decide: bool = False
    """Whether normalised scores are the same for all nodes, so that sums alone decide among the remembered
    ones."""
    told: Survey | None = None
    """What records tell of these nodes; None when a refusal has changed."""
    columns: list[Column] | None = None
    """The scores of everybody, where all are remembered and a pod has been told them since; else None."""
    patience: int = 0
    """Attempts to wait before somebody is asked to follow again; -1: nobody can."""
    followers: Following | None = None
    """Who knows the scores that cannot be remembered; None when nobody does, or nodes or refusals have
    changed."""

    @property
    def left(self) -> Left:
        return self.plan.left

    def best(self) -> int:
        """The row of the highest total, the first in snapshot order among equals; -1 when none fits."""
        if not self.feasible:
            return -1
        index = self.front.best(self.ordered)
        return index if self.every.in_order else int(self.every.listed.rows[index])

    def board(self) -> ScoreBoard | None:
        """All scores of now; None where `columns` are not known."""
        if self.columns is None:
            return None
        # What is normalised is the same for all nodes, and is not in the remembered sums.
        constant = sum(c.weighted(0) for c in self.columns if not c.step.is_summed)
        return ScoreBoard(self.every, self.ok, self.base + constant, self.columns, is_masked=True)

    def check_complete(self) -> None:
        self.columns = None
        self.sums_decide = all(step.is_summed or isinstance(self.raws[step.name], int) for step in self.steps)
        self.is_complete = self.plan.is_complete and self.sums_decide
        self.quick = self._quick()

    def _quick(self) -> Quick | None:
        judges = [judge for _, judge in self.row_filters if judge is not None]
        steps: list[tuple[Callable[[NodeView], Any], IntArray, int]] = []
        for step, prepared in self.row_steps:
            raw = self.raws[step.name]
            if prepared is None or isinstance(raw, int) or not (step.anywhere and step.is_summed):
                return None
            steps.append((prepared, raw, step.weight))
        if len(judges) < len(self.row_filters) or not isinstance(self.fixed, int) or not self.every.in_order:
            return None
        return judges, steps, self.fixed

    @property
    def nbytes(self) -> int:
        raws = sum(raw.nbytes for raw in self.raws.values() if not isinstance(raw, int))
        own = (self.statuses.ids, self.ok, self.ranks, self.base, self.ordered)
        followers = _FOLLOWERS * self.base.nbytes if self.patience >= 0 else 0
        return sum(array.nbytes for array in own) + raws + followers


def build(
    profile: Profile, pod: Pod, state: CycleState, every: EveryRow, version_of: VersionOf
) -> Evaluation | None:
    """Remember what the local plugins say of all rows. `state` is that of a finished attempt. None when a
    plugin fails: then there is nothing to remember."""
    plan = make_plan(profile, pod, version_of)
    ok, statuses = every.alive.copy(), NodeStatuses(every.listed)
    state.skip_filter -= {plugin.name for plugin in plan.left.pre_filters}
    state.skip_score -= {plugin.name for plugin in plan.left.pre_scores}
    status = filter_rows(plan.filters, state, pod, every, statuses, ok)
    if not status.is_success:
        return None
    rank_of = np.array(
        [plan.ranks.get(verdict.plugin, NO_RANK) for verdict in statuses.verdicts], dtype=np.int16
    )
    columns = every.nodes.columns
    found = Evaluation(
        plan,
        every,
        state,
        columns.generation,
        columns.node_generation,
        statuses,
        ok,
        rank_of[statuses.ids[: len(ok)]],
        tuple(
            (p, p.filter_for(state, pod) if writes(p, "filter_for") else None)
            for p in plan.filters
            if p.name in plan.row_readers and p.name not in state.skip_filter
        ),
        feasible=int(np.count_nonzero(ok)),
    )
    return found if _score_all(found, pod) else None


def _score_all(found: Evaluation, pod: Pod) -> bool:
    plan, state = found.plan, found.state
    scoring = Scoring(state, pod, found.every, found.ok)
    if not run_pre_score(plan.pre_scores, state, pod, scoring.dense).is_success:
        return False
    total = np.zeros(len(found.ok), dtype=np.int64)
    fixed = np.full(len(found.ok), plan.start, dtype=np.int64)
    for step in plan.scores:
        if step.name in state.skip_score:
            continue
        raw, status = scoring.score(step)
        if status.is_success and step.is_summed:
            raw, status = scoring.normalize(step, raw)
        if not status.is_success:
            return False
        found.steps.append(step)
        found.raws[step.name] = one_for_all(raw, found.ok)
        reads_row = step.name in plan.row_readers
        if reads_row:
            plugin = step.plugin
            prepared = plugin.score_for(state, pod) if writes(plugin, "score_for") else None
            found.row_steps.append((step, prepared))
        if step.is_summed:
            sums = total if reads_row else fixed
            sums += raw * step.weight
    found.fixed = one_for_all(fixed, found.every.alive)
    found.base = np.where(found.ok, total + fixed, NEVER)
    found.ordered = found.base if found.every.in_order else found.base.take(found.every.listed.rows)
    found.check_complete()
    found.patience = 0 if plan.may_be_followed else -1
    return True
