"""Known per template: the results of plugins for all rows, for the last pod with the same signature.

Most pods have others of the same template. From the second one on, only the rows that have changed since are judged
again, one by one in scalar Python (`refreshing`); then the next best row is chosen. A plugin takes part if it declares
what its answer depends on (`reads`) and that is its own row: the node and its pods. All other plugins run for every
pod, on top of what is kept.

    kept:    verdict of the local filters per row · raw scores of the local score plugins · their sum
    called:  for changed rows · filters and scores that depend on pods anywhere · the choice

Plugins whose answers are kept are called local here. The decision is always that of an attempt that starts from
nothing; tests/runtime/reuse compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.api.failures import is_interruption
from moorage.api.pod import Pod
from moorage.framework.access import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import PreparedFilterPlugin, PreparedScorePlugin
from moorage.framework.nodes import BoolArray, EveryRow, IntArray, NodeView
from moorage.framework.points import FilterPlugin, PreScorePlugin
from moorage.framework.status import SUCCESS, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.attempt import Attempt, Baseline, RemainingPlugins
from moorage.runtime.filtering import filter_rows
from moorage.runtime.pre_filtering import run_pre_filter
from moorage.runtime.profile import Profile
from moorage.runtime.record import Diagnosis
from moorage.runtime.reuse.best_rows import BestRows
from moorage.runtime.reuse.incremental import IncrementalScores, incremental_scores, may_be_incremental
from moorage.runtime.reuse.node_set import one_for_all
from moorage.runtime.reuse.signatures import Fingerprint, VersionOf, is_about_row, known_reads
from moorage.runtime.score_board import NEVER, Buffers, PluginColumn, Ranker, ScoreBoard, Scores, ScoreStep
from moorage.runtime.scoring import Scoring, add_scores, run_pre_score
from moorage.runtime.top_scores import TOP_NODES, AddedScore, KeptColumn, KeptTop, ScoreLayout, shared_layout
from moorage.telemetry import logs

_log = logs.get(__name__)

FilterRow = Callable[[NodeView], Status | None]
ScoreRow = Callable[[NodeView], float | Status]

_INCREMENTAL_COLUMNS = 4
"""Columns that incremental scores may keep, about; they come later than the baseline is charged."""
_INCREMENTAL_RETRY = 16
"""Pods between two times that plugins are asked for incremental scores."""
_PACKED_BYTES = 130
"""Bytes of a packed list of the best rows, without its numbers."""
NO_RANK = 1 << 14
"""Rank of a row that no local filter refuses."""

QuickJudge = tuple[
    Sequence[FilterRow], Sequence[tuple[Callable[[NodeView], Any], IntArray, int]], Sequence[IntArray], IntArray | int
]
"""For one row, where rows are in snapshot order and all local plugins that look at its pods are prepared, summed and
trusted with every row: filters; scores, their raw column and weight; the raw columns of the other plugins that tell
nodes apart; what the others give each node, or all of them."""


@dataclass(frozen=True, slots=True)
class TemplatePlugins:
    """The plugins of a profile, sorted for pods of one template."""

    filters: tuple[FilterPlugin, ...]
    """Local ones, as are the next two."""
    pre_scores: tuple[PreScorePlugin, ...]
    scores: tuple[ScoreStep, ...]
    remaining: RemainingPlugins
    ranks: dict[str, int]
    """Filter plugin → its place in the configured order."""
    row_readers: frozenset[str]
    """Plugins whose answer may change with the pods of the node; that of the others only with the node."""
    fingerprint: Fingerprint
    """What the local answers depend on beside rows; a change makes the baseline worthless."""
    start: int
    """What every node has before any plugin scores it: 1 where none does, so that all are equally good."""

    @classmethod
    def of(cls, profile: Profile, pod: Pod, version_of: VersionOf) -> TemplatePlugins:
        known = {plugin.name: known_reads(plugin, pod) for plugin in profile.plugins.values()}
        reads = {name: said for name, said in known.items() if said is not None and all(map(is_about_row, said))}
        return cls(
            tuple(p for p in profile.filter if p.name in reads),
            tuple(p for p in profile.pre_score if p.name in reads),
            tuple(step for step in profile.score_steps if step.name in reads),
            RemainingPlugins.of(profile, reads),
            {plugin.name: rank for rank, plugin in enumerate(profile.filter)},
            frozenset(name for name, said in reads.items() if Reads.ROW in said),
            Fingerprint((read for said in reads.values() for read in said), version_of),
            0 if profile.score else 1,
        )


@dataclass(slots=True)
class TemplateBaseline(Baseline):
    """The results kept for one signature."""

    plugins: TemplatePlugins
    every: EveryRow
    state: CycleState
    version: int
    node_version: int
    statuses: NodeStatuses
    ok: BoolArray
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
    quick: QuickJudge | None = None
    """`row_filters` and `row_steps` for a row whose pods have changed, where that is simple; else None."""
    fixed: IntArray | int = 0
    """The part of the total that changes with the node only."""
    totals: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Weighted sum of the local scores that need no normalisation; `NEVER` where the node is refused."""
    ordered: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """`totals` in snapshot order: its highest entry is the next choice when nothing else counts. The same
    array where rows are in snapshot order."""
    best_rows: BestRows = field(default_factory=BestRows)
    """The best of `ordered`."""
    is_complete: bool = False
    """Whether `ordered` alone decides: no plugin remains, and those scores that are normalised are the same
    for all nodes."""
    feasible: int = 0
    sums_decide: bool = False
    """Whether normalised scores are the same for all nodes, so that sums alone decide among the kept ones."""
    diagnosis: Diagnosis | None = None
    varying: list[IntArray] = field(default_factory=list)
    """The raw scores that differ between nodes: first those of `row_steps`."""
    varying_steps: list[ScoreStep] = field(default_factory=list)
    """Their plugins."""
    packed: list[IntArray] = field(default_factory=list)
    """The raw scores that records pack: those in `varying` but the last, which the totals tell."""
    layout: ScoreLayout | None = None
    """What records of attempts that this decides have to know of its scores; None if not all of it is known."""
    normalizers: tuple[ScoreStep, ...] = ()
    """Local score plugins that normalise their scores by a method of their own."""
    normalized: dict[str, int] = field(default_factory=dict)
    """What these made of scores that are the same for all nodes, for the nodes that are feasible now."""
    chosen: int = 0
    """The row that `best_row` returned last."""
    ranker: Ranker = field(default_factory=Ranker)
    incremental: IncrementalScores | None = None
    """The scores that cannot be kept; None when they are not known, or nodes or refusals have changed."""
    takes_turns: bool = False
    """Whether it is brought up to date together with others (`turns`)."""
    shares_arrays: bool = False
    """Whether its arrays are parts of those of all with which it takes turns, or took."""
    place: int = 0
    """Its place among them."""
    nodes_seen: int = 0
    """How many of the changes of nodes that came up in turns it has taken in."""
    was_used: bool = False
    """Whether a pod has started from it."""
    incremental_after: int = 0
    """Attempts to wait before plugins are asked for incremental scores; -1: never."""

    by_template = True

    @property
    def remaining(self) -> RemainingPlugins:  # type: ignore[override]
        return self.plugins.remaining

    def best_row(self, attempt: Attempt) -> int | None:
        if self.is_complete:
            if not self.feasible:
                attempt.state = self.state.child(asked=False)
                return -1
            if self.layout is None and not self._lay_out(()):
                return None
            attempt.state = self.state.child(asked=False)
            order = None if self.every.in_order else self.every.listed.rows
            index = self.best_rows.best(self.ordered, order, self.varying)
            row = self.chosen = index if order is None else int(order[index])
            return row
        incremental = self.incremental
        if incremental is None or (self.layout is None and not self._lay_out(incremental.added)):
            return None
        attempt.state = self.state.child()
        best = self._incremental_best(attempt, incremental)
        if best is None:
            self.incremental = None
        return best

    def top(self) -> KeptTop | None:
        """Return the ten best rows with their scores, for the record of the attempt that `best_row` has decided."""
        layout, incremental = self.layout, self.incremental
        if layout is None or (incremental is None and not self.is_complete):
            return None
        if self.is_complete:
            return self.best_rows.best_ten(layout) or self._pack(layout, self.chosen, self.totals, self.ranker)
        if incremental is not None:
            try:
                return self._pack(layout, incremental.chosen, incremental.totals, incremental.ranker, incremental)
            except BaseException as error:
                if is_interruption(error):
                    raise
                self.incremental = None
                _log.error("A plugin cannot tell its raw scores; leaving the scores out of a record", error=error)
        return None

    def _pack(
        self, layout: ScoreLayout, first: int, final: IntArray, ranker: Ranker, more: IncrementalScores | None = None
    ) -> KeptTop:
        """Return the best rows by their final totals, of which the first is known, as `KeptTop` has them."""
        best = final.item(first)
        level: int | None = best
        rows = ranker.equals(first, best, final, TOP_NODES) if self.every.in_order else None
        if rows is None:
            rows, level = ranker.rank_all(first, final, self.every, TOP_NODES), None
        lines: list[Any] = [rows]  # arrays are buffers, which numpy's types do not say
        if level is None or more is not None:
            lines.append(self.totals[rows])
        for raw in self.packed:
            lines.append(raw[rows])
        if more is not None:
            more.add_lines(rows, level is None, lines)
        packed = b"".join(lines)
        return KeptTop(layout, packed, _PACKED_BYTES + len(packed), len(rows), level)

    def _lay_out(self, added: tuple[AddedScore, ...]) -> bool:
        """Set the layout. Return False if a plugin must be called first, to normalise what is the same for all."""
        constants: list[KeptColumn] = []
        offset, base = 0, self.plugins.start
        for step in self.steps:
            raw = self.raws[step.name]
            if not isinstance(raw, int):
                continue
            normalized: Scores | None = raw
            if step.normalization is not None:
                normalized = step.normalization.apply(raw, self.ok)
            elif not step.is_summed:
                normalized = self.normalized.get(step.name)
            if not isinstance(normalized, int):
                return False
            if step.is_summed:
                base += raw * step.weight
            else:
                offset += normalized * step.weight
            constants.append((step.name, step.weight, raw, normalized))
        varying = tuple((step.name, step.weight) for step in self.varying_steps)
        self.layout = shared_layout(ScoreLayout(tuple(constants), varying, added, offset, base))
        return True

    def _incremental_best(self, attempt: Attempt, incremental: IncrementalScores) -> int | None:
        """Return the choice if all remaining plugins keep their scores up to date; None if one must be called."""
        pre_filters = self.remaining.pre_filters
        if pre_filters:
            pre = run_pre_filter(attempt.profile, attempt.state, attempt.pod, attempt.nodes, pre_filters)
            if pre.status is not SUCCESS or pre.node_names is not None:
                return None
        skipped = attempt.state.skip_filter
        for plugin in self.remaining.filters:
            if plugin.name not in skipped:
                return None
        return incremental.best(self.totals, self.every)

    def filter(self, attempt: Attempt, filters: Iterable[FilterPlugin]) -> Status:
        """Run the filters that are not local, each at its place in the configured order."""
        for plugin in filters:
            if plugin.name not in attempt.state.skip_filter:
                status = self._filter_in_place(attempt, plugin)
                if not status.is_success:
                    return status
        return SUCCESS

    def _filter_in_place(self, attempt: Attempt, plugin: FilterPlugin) -> Status:
        """Run a filter also on the rows that only later filters reject; it is then their rejector."""
        state, every, ranks = attempt.state, attempt.every, self.plugins.ranks
        rank = ranks[plugin.name]
        if not any(ranks[p.name] > rank and p.name not in state.skip_filter for p in self.plugins.filters):
            return filter_rows((plugin,), state, attempt.pod, every, attempt.statuses, attempt.ok)
        seen = attempt.ok | ((self.ranks > rank) & (self.ranks < NO_RANK) & every.alive)
        before, fresh = seen.copy(), NodeStatuses(attempt.nodes)
        status = filter_rows((plugin,), state, attempt.pod, every, fresh, seen)
        for row in np.flatnonzero(before & ~seen).tolist():
            attempt.statuses.set_row(row, fresh.verdicts[fresh.ids[row]])
        np.logical_and(attempt.ok, seen, out=attempt.ok)
        return status

    def score(self, scoring: Scoring, buffers: Buffers, feasible: int) -> tuple[ScoreBoard, Status]:
        raws = self.raws
        summed = [PluginColumn(step, raws[step.name], raws[step.name]) for step in self.steps if step.is_summed]
        rest = [(step, raws[step.name]) for step in self.steps if not step.is_summed]
        board = ScoreBoard(scoring.every, scoring.feasible, buffers.take_as_is(), summed)
        status = add_scores(board, scoring, self.remaining.scores, rest, self.totals)
        if self.normalizers and self.sums_decide and status is SUCCESS and feasible == self.feasible:
            self._learn_normalized(board.columns)
        board.mask(self.ok, all_known=feasible == self.feasible)
        return board, status

    def _learn_normalized(self, columns: Iterable[PluginColumn]) -> None:
        """Keep what plugins made of scores that are the same for all nodes. Sums do not decide if a plugin tells such
        nodes apart."""
        for column in columns:
            if column.step in self.normalizers:
                found = one_for_all(column.normalized, self.ok)
                if not isinstance(found, int):
                    self.sums_decide = self.is_complete = False
                    return
                self.normalized[column.step.name] = found

    def scored(self, attempt: Attempt) -> None:
        """Ask the remaining plugins for incremental scores. If one cannot provide them, they are asked again later."""
        # More was refused than is kept, such as rows of nominated pods: what PreScore has made of fewer rows
        # does not hold for the next pod.
        if self.incremental is not None or self.incremental_after < 0 or not attempt.statuses.is_lent:
            return
        if self.incremental_after:
            self.incremental_after -= 1
            return
        if self.sums_decide:
            self.incremental = incremental_scores(self.remaining, attempt.state, attempt.pod, self.every, self.ok)
            self.layout = None
        if self.incremental is None:
            self.incremental_after = _INCREMENTAL_RETRY

    def check_complete(self) -> None:
        """Check the columns after one of raw scores was replaced."""
        self.forget_normalized()
        self.varying, self.varying_steps = [], []
        moving = [step for step, _ in self.row_steps]
        for step in (*moving, *(step for step in self.steps if step not in moving)):
            raw = self.raws[step.name]
            if not isinstance(raw, int):
                self.varying.append(raw)
                self.varying_steps.append(step)
        self.packed = self.varying[:-1]
        self.best_rows.forget()
        self.normalizers = tuple(step for step in self.steps if not step.is_summed and step.normalization is None)
        self.sums_decide = all(step.is_summed or isinstance(self.raws[step.name], int) for step in self.steps)
        self.is_complete = not self.remaining and self.sums_decide
        self.quick = self._quick_judge()

    def forget_normalized(self) -> None:
        """Forget what plugins made of scores by normalising them: scores or the feasible nodes have changed."""
        self.layout = None
        if self.normalized:
            self.normalized.clear()

    def _quick_judge(self) -> QuickJudge | None:
        judges = [judge for _, judge in self.row_filters if judge is not None]
        steps: list[tuple[Callable[[NodeView], Any], IntArray, int]] = []
        for step, prepared in self.row_steps:
            raw = self.raws[step.name]
            if prepared is None or isinstance(raw, int) or not (step.whole_table and step.is_summed):
                return None
            steps.append((prepared, raw, step.weight))
        if len(judges) < len(self.row_filters) or not self.every.in_order:
            return None
        return judges, steps, self.varying[len(steps) :], self.fixed

    def copy_arrays(self) -> None:
        """Copy the arrays, so that the arrays of all templates are not kept alive for one."""
        self.totals = self.ordered = self.totals.copy()
        for step, _ in self.row_steps:
            raw = self.raws[step.name]
            self.raws[step.name] = raw if isinstance(raw, int) else raw.copy()
        self.shares_arrays = False
        self.check_complete()

    @property
    def nbytes(self) -> int:
        raws = sum(raw.nbytes for raw in self.raws.values() if not isinstance(raw, int))
        own = [self.statuses.ids, self.ok, self.ranks, self.totals]
        if self.ordered is not self.totals:
            own.append(self.ordered)
        incremental = _INCREMENTAL_COLUMNS * self.totals.nbytes if self.incremental_after >= 0 else 0
        return sum(array.nbytes for array in own) + raws + incremental


def build(
    profile: Profile, pod: Pod, state: CycleState, every: EveryRow, version_of: VersionOf
) -> TemplateBaseline | None:
    """Keep the results of the local plugins for all rows. `state` is that of a finished attempt. Return None if a
    plugin fails."""
    plugins = TemplatePlugins.of(profile, pod, version_of)
    ok, statuses = every.alive.copy(), NodeStatuses(every.listed)
    state.skip_filter -= {plugin.name for plugin in plugins.remaining.pre_filters}
    state.skip_score -= {plugin.name for plugin in plugins.remaining.pre_scores}
    status = filter_rows(plugins.filters, state, pod, every, statuses, ok)
    if not status.is_success:
        return None
    rank_of = np.array([plugins.ranks.get(verdict.plugin, NO_RANK) for verdict in statuses.verdicts], dtype=np.int16)
    columns = every.nodes.columns
    baseline = TemplateBaseline(
        plugins,
        every,
        state,
        columns.version,
        columns.node_version,
        statuses,
        ok,
        rank_of[statuses.ids[: len(ok)]],
        tuple(
            (p, p.filter_for(state, pod) if isinstance(p, PreparedFilterPlugin) else None)
            for p in plugins.filters
            if p.name in plugins.row_readers and p.name not in state.skip_filter
        ),
        feasible=int(np.count_nonzero(ok)),
    )
    return baseline if _score_all(baseline, pod) else None


def _score_all(baseline: TemplateBaseline, pod: Pod) -> bool:
    plugins, state = baseline.plugins, baseline.state
    scoring = Scoring(state, pod, baseline.every, baseline.ok)
    if not run_pre_score(plugins.pre_scores, state, pod, scoring.dense).is_success:
        return False
    total: Scores = 0
    fixed: Scores = plugins.start
    for step in plugins.scores:
        if step.name in state.skip_score:
            continue
        raw, status = scoring.score(step)
        if status.is_success and step.is_summed:
            raw, status = scoring.normalize(step, raw)
        if not status.is_success:
            return False
        baseline.steps.append(step)
        baseline.raws[step.name] = one_for_all(raw, baseline.ok)
        reads_row = step.name in plugins.row_readers
        if reads_row:
            plugin = step.plugin
            prepared = plugin.score_for(state, pod) if isinstance(plugin, PreparedScorePlugin) else None
            baseline.row_steps.append((step, prepared))
        if step.is_summed:
            weighted = raw if step.weight == 1 else raw * step.weight
            if reads_row:
                total = total + weighted
            else:
                fixed = fixed + weighted
    baseline.fixed = one_for_all(fixed, baseline.every.alive)
    baseline.totals = np.where(baseline.ok, total + fixed, NEVER)
    in_order = baseline.every.in_order
    baseline.ordered = baseline.totals if in_order else baseline.totals.take(baseline.every.listed.rows)
    baseline.check_complete()
    baseline.incremental_after = 0 if may_be_incremental(plugins.remaining) else -1
    return True
