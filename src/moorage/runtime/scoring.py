"""PreScore, Score, NormalizeScore: compute a total per row from the feasible rows.

Arrays have one entry per row of the table in use; entries of rows that are not feasible are meaningless."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import BoolArray, EveryRow, IntArray, Nodes
from moorage.framework.points import PRE_SCORE, SCORE, PreScorePlugin
from moorage.framework.status import MAX_NODE_SCORE, MIN_NODE_SCORE, SKIP, SUCCESS, Code, Status
from moorage.runtime.calling import checked, failed
from moorage.runtime.lifting import write_scores
from moorage.runtime.profile import Profile
from moorage.runtime.score_board import Buffers, PluginColumn, ScoreBoard, Scores, ScoreStep
from moorage.telemetry.metrics import ProfileMeter


def run_pre_score(plugins: Iterable[PreScorePlugin], state: CycleState, pod: Pod, nodes: Callable[[], Nodes]) -> Status:
    """Run PreScore plugins; Skip excludes the plugin from scoring, anything else but Success is an Error."""
    feasible: Nodes | None = None
    for plugin in plugins:
        if feasible is None:
            feasible = nodes()
        try:
            answer = plugin.pre_score(state, pod, feasible)
            if (watch := state.stopwatch) is not None and watch.now() > watch.next_look:
                watch.check(plugin.name, PRE_SCORE)
            if answer is None:
                continue
            if answer is SKIP:  # the common case, without a detour
                state.skip_score.add(plugin.name)
                continue
            status = checked(plugin, "PreScore", pod, answer)
        except BaseException as error:
            return failed(plugin, "PreScore", pod, error)
        if status.is_skip:
            state.skip_score.add(plugin.name)
        elif not status.is_success:
            return _as_error(status, f'running PreScore plugin "{plugin.name}": ')
    return SUCCESS


def _as_error(status: Status, prefix: str) -> Status:
    if status.code is Code.ERROR:
        return status
    return Status(Code.ERROR, (prefix + status.message,), status.plugin)


class Scoring:
    """The scores of one pod on the feasible rows."""

    __slots__ = ("_buffers", "_dense", "every", "feasible", "pod", "state")

    def __init__(
        self, state: CycleState, pod: Pod, every: EveryRow, feasible: BoolArray, buffers: Buffers | None = None
    ) -> None:
        self.state = state
        self.pod = pod
        self.every = every
        self.feasible = feasible
        self._dense: Nodes | None = None
        self._buffers = buffers
        """None: arrays are newly allocated, for callers that keep them."""

    def dense(self) -> Nodes:
        """Return the feasible nodes as plugins expect them, created on first use."""
        if self._dense is None:
            self._dense = self.every.dense(self.feasible)
        return self._dense

    def zeros(self) -> IntArray:
        """Return an array with an entry per row."""
        if self._buffers is not None:
            return self._buffers.take()
        return np.zeros(len(self.feasible), dtype=np.int64)

    def score(self, step: ScoreStep) -> tuple[Scores, Status]:
        """Return the raw scores of one plugin."""
        buffers = self._buffers
        if buffers is None:
            raw = np.zeros(len(self.feasible), dtype=np.int64)
        else:
            raw = buffers.take_as_is() if step.whole_table else buffers.take()
        nodes, out = self.every.nodes, raw
        if not step.whole_table:
            nodes = self.dense()
            out = np.zeros(len(nodes), dtype=np.int64)
        try:
            answer = step.score_into(self.state, self.pod, nodes, out)
            if answer is not None:
                if type(answer) is int:
                    return answer, SUCCESS
                status = checked(step.plugin, "Score", self.pod, answer)
                if status is not SUCCESS:
                    prefix = f'running Score plugins: plugin "{step.name}" failed with: '
                    return raw, _as_error(status, prefix)
        except BaseException as error:
            return raw, failed(step.plugin, "Score", self.pod, error)
        if out is not raw:
            raw[nodes.rows] = out
        return raw, SUCCESS

    def normalize(self, step: ScoreStep, raw: Scores) -> tuple[Scores, Status]:
        """Return scores in 0-100, validated unless the plugin is trusted with every row."""
        if step.is_summed:
            return raw, SUCCESS if step.whole_table else self._in_range(step, raw)
        if step.normalization is not None:
            return step.normalization.apply(raw, self.feasible), SUCCESS
        plugin = step.plugin
        if step.normalize_rows is not None and not isinstance(raw, int):
            try:
                rows = step.normalize_rows(self.state, self.pod, raw, self.every.nodes, self.feasible)
                return rows, SUCCESS
            except BaseException as error:
                return raw, failed(plugin, "NormalizeScore", self.pod, error)
        nodes = self.dense()
        before: IntArray = np.full(len(nodes), raw) if isinstance(raw, int) else raw[nodes.rows]
        try:
            answer = step.normalize_nodes(self.state, self.pod, before, nodes)
            if isinstance(answer, Status):
                status = checked(plugin, "NormalizeScore", self.pod, answer)
                return raw, self._in_range(step, raw) if status.is_success else _as_error(status, "")
            after: IntArray = np.zeros(len(nodes), dtype=np.int64)
            write_scores(answer, nodes, after)
        except BaseException as error:
            return raw, failed(plugin, "NormalizeScore", self.pod, error)
        normalized = self.zeros()
        normalized[nodes.rows] = after
        return normalized, self._in_range(step, normalized)

    def _in_range(self, step: ScoreStep, scores: Scores) -> Status:
        nodes = self.dense()
        dense = np.full(len(nodes), scores) if isinstance(scores, int) else scores[nodes.rows]
        if not len(dense) or (dense.min() >= MIN_NODE_SCORE and dense.max() <= MAX_NODE_SCORE):
            return SUCCESS
        index = int(np.argmax((dense < MIN_NODE_SCORE) | (dense > MAX_NODE_SCORE)))
        text = (
            f'applying score defaultWeights on Score plugins: plugin "{step.name}" returns an invalid '
            f"score {dense[index]}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after "
            f'normalizing (pod "{self.pod.key}", node "{nodes.names[index]}")'
        )
        return Status(Code.ERROR, (text,), step.name)


def run_scores(profile: Profile, scoring: Scoring) -> tuple[ScoreBoard, Status]:
    """Score, normalise and weight; the board is complete only if the status is Success."""
    board = ScoreBoard(scoring.every, scoring.feasible, scoring.zeros())
    if not profile.score:
        board.totals += 1  # every node is as good as any other
    return board, add_scores(board, scoring, profile.score_steps)


def add_scores(
    board: ScoreBoard,
    scoring: Scoring,
    steps: Iterable[ScoreStep],
    raws: Iterable[tuple[ScoreStep, Scores]] = (),
    offset: IntArray | None = None,
) -> Status:
    """Add the scores of these plugins to the board, or to `offset` instead. `raws` are known scores that are not
    normalised. As upstream, all plugins score before the first one normalises."""
    skipped, watch = scoring.state.skip_score, scoring.state.stopwatch
    columns = [PluginColumn(step, raw, raw) for step, raw in raws]
    for step in steps:
        if step.name not in skipped:
            raw, status = scoring.score(step)
            if status is not SUCCESS:
                return status
            if watch is not None and watch.now() > watch.next_look:
                watch.check(step.name, SCORE)
            columns.append(PluginColumn(step, raw, raw))
    constant, before = 0, board.totals if offset is None else offset
    for column in columns:
        step = column.step
        if not (step.is_summed and step.whole_table):
            column.normalized, status = scoring.normalize(step, column.raw)
            if status is not SUCCESS:
                return status
            if watch is not None and watch.now() > watch.next_look:
                watch.check(step.name, "NormalizeScore")
        scores = column.normalized
        if isinstance(scores, int):
            constant += scores * step.weight
        else:
            np.add(before, scores if step.weight == 1 else scores * step.weight, out=board.totals)
            before = board.totals
    if before is not board.totals or constant:
        np.add(before, constant, out=board.totals)
    board.columns += columns
    return SUCCESS


class TimedScoring(Scoring):
    """Measures the time of each plugin, for the cycles in which plugins are timed individually."""

    def __init__(self, meter: ProfileMeter, *args: Any) -> None:
        super().__init__(*args)
        self._meter = meter

    def score(self, step: ScoreStep) -> tuple[Scores, Status]:
        began = self._meter.metrics.now()
        raw, status = super().score(step)
        self._tell(step, "Score", began, status)
        return raw, status

    def normalize(self, step: ScoreStep, raw: Scores) -> tuple[Scores, Status]:
        began = self._meter.metrics.now()
        normalized, status = super().normalize(step, raw)
        self._tell(step, "ScoreExtensionNormalize", began, status)
        return normalized, status

    def _tell(self, step: ScoreStep, point: str, began: float, status: Status) -> None:
        seconds = self._meter.metrics.now() - began
        if status is SUCCESS:
            self._meter.plugin(step.name, point, seconds)
        else:
            self._meter.plugin(step.name, point, seconds, status.code.label)
