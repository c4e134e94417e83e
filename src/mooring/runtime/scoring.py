"""PreScore, Score, NormalizeScore: from the feasible rows to a total per row.

Arrays have one entry per row of the table in use; what they hold in rows that are not feasible means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import write_scores, writes
from mooring.framework.nodes import BoolArray, EveryRow, IntArray, Nodes
from mooring.framework.points import PreScorePlugin, ScorePlugin
from mooring.framework.record import TOP_NODES, ScoreColumn, TopScores
from mooring.framework.scoring import MAX_NODE_SCORE, MIN_NODE_SCORE
from mooring.framework.status import SKIP, SUCCESS, Code, Status
from mooring.runtime.buffers import Buffers
from mooring.runtime.calling import checked, failed
from mooring.runtime.profile import Profile

Scores = IntArray | int
"""One score per row, or one for all."""


@dataclass(slots=True)
class Column:
    """One plugin's scores."""

    plugin: str
    weight: int
    raw: Scores
    normalized: Scores

    def of(self, rows: IntArray) -> ScoreColumn:
        """These rows only, for the record."""
        raw = _of(self.raw, rows)
        normalized = raw if self.normalized is self.raw else _of(self.normalized, rows)
        return ScoreColumn(self.plugin, self.weight, raw, normalized)

    def weighted(self, row: int) -> int:
        return self.weight * (
            self.normalized if isinstance(self.normalized, int) else int(self.normalized[row])
        )


def _of(scores: Scores, rows: IntArray) -> Sequence[int]:
    if isinstance(scores, int):
        return (scores,) * len(rows)
    chosen: Sequence[int] = scores.take(rows)  # type: ignore[assignment]
    return chosen


@dataclass(slots=True)
class ScoreBoard:
    """All scores of an attempt, by row."""

    every: EveryRow
    feasible: BoolArray
    totals: IntArray
    columns: list[Column] = field(default_factory=list)
    tie_break: IntArray | None = None
    """Where extenders scored: a random number per row that decides between equal totals."""
    constant: int = 0
    """What all rows get alike and `totals` does not have yet."""

    def add_constants(self) -> None:
        """Bring what all rows get alike into the totals, in one pass."""
        if self.constant:
            self.totals += self.constant
            self.constant = 0

    def masked(self) -> IntArray:
        """Totals with -1 in rows that are not feasible; totals themselves are never negative."""
        return np.where(self.feasible, self.totals, -1)

    def ranking(self, ranker: Ranker | None = None) -> list[int]:
        """The best rows, the winner first: highest total, among equals the first in snapshot order."""
        if ranker is not None and self.tie_break is None:
            return ranker.rank(self.masked(), self.every, TOP_NODES)
        return rank(self.masked(), self.every.listed.rows, TOP_NODES, self.tie_break)

    def margin(self, ranking: list[int]) -> int | None:
        """How far the winner is ahead of the next; None when it is alone."""
        return int(self.totals[ranking[0]] - self.totals[ranking[1]]) if len(ranking) > 1 else None

    def top(self, ranking: list[int]) -> TopScores:
        """The best rows with their scores."""
        rows = np.array(ranking)
        return TopScores(ranking, _of(self.totals, rows), [column.of(rows) for column in self.columns])


class Ranker:
    """Finds the best rows. Remembers how far apart they were last time: with that guess a handful of rows is
    sorted instead of all being counted."""

    def __init__(self) -> None:
        self._gap = 16
        """Points between the best row and the last one that counted."""

    def rank(self, masked: IntArray, every: EveryRow, count: int) -> list[int]:
        """The same as `rank` in snapshot order."""
        best = int(masked.max(initial=-1))
        if best < 0:
            return []
        near = np.flatnonzero(masked >= max(best - self._gap, 0))
        if not count <= len(near) <= _A_HANDFUL:
            found = rank(masked, every.listed.rows, count)
            self._gap = best - int(masked[found[-1]])
            return found
        totals = masked[near]
        order = np.lexsort((every.positions[near], -totals))[:count]
        self._gap = best - int(totals[order[-1]])
        nearest: list[int] = near[order].tolist()
        return nearest


_A_HANDFUL = 300


def rank(masked: IntArray, order: IntArray, count: int, tie_break: IntArray | None = None) -> list[int]:
    """Up to `count` rows in order of their totals; negative ones are left out. Equals stand in snapshot
    order (the rows of `order`), or by falling `tie_break` where there is one."""
    totals = masked.take(order)
    if tie_break is not None:
        by_tie = np.lexsort((-tie_break.take(order), -totals))[:count]
        return [row for row in order[by_tie].tolist() if masked[row] >= 0]
    if count == 1:
        best = int(np.argmax(totals))
        return [int(order[best])] if totals[best] >= 0 else []
    threshold = _threshold(totals, count)
    above = np.flatnonzero(totals > threshold)
    level = np.flatnonzero(totals == threshold)[: count - len(above)] if threshold >= 0 else above[:0]
    best_first = above[np.argsort(-totals[above], kind="stable")]
    found: list[int] = order[np.concatenate((best_first, level))].tolist()
    return found


_SMALL = 1 << 16


def _threshold(masked: IntArray, count: int) -> int:
    """The total of the `count`-th best row; -1 when there are not so many. Totals are small integers as a
    rule, for which a histogram is cheaper than a partition; large weights make large ones."""
    best = int(masked.max())
    if np.count_nonzero(masked == best) >= count:
        return best
    if best >= _SMALL:
        return int(np.partition(masked, -count)[-count]) if len(masked) >= count else -1
    counts = np.bincount(masked + 1)
    enough = np.flatnonzero(np.cumsum(counts[:0:-1]) >= count)
    return best - int(enough[0]) if len(enough) else -1


def run_pre_score(
    plugins: Iterable[PreScorePlugin], state: CycleState, pod: Pod, nodes: Callable[[], Nodes]
) -> Status:
    """PreScore plugins; Skip leaves the plugin out of scoring, anything else but Success is an Error."""
    for plugin in plugins:
        try:
            answer = plugin.pre_score(state, pod, nodes())
            status = answer if answer is SKIP else checked(plugin, "PreScore", pod, answer)
        except Exception as error:
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

    def __init__(
        self,
        state: CycleState,
        pod: Pod,
        every: EveryRow,
        feasible: BoolArray,
        buffers: Buffers | None = None,
    ) -> None:
        self.state = state
        self.pod = pod
        self.every = every
        self.feasible = feasible
        self._dense: Nodes | None = None
        self._buffers = buffers
        """None: arrays are made afresh, for whoever keeps them."""

    def dense(self) -> Nodes:
        """The feasible nodes as plugins expect them; made when the first one asks."""
        if self._dense is None:
            self._dense = self.every.dense(self.feasible)
        return self._dense

    def zeros(self) -> IntArray:
        """An entry per row."""
        if self._buffers is not None:
            return self._buffers.take()
        return np.zeros(len(self.feasible), dtype=np.int64)

    def score(self, plugin: ScorePlugin) -> tuple[Scores, Status]:
        """Raw scores of one plugin."""
        raw = self.zeros()
        nodes = self.every.nodes if plugin.scores_anywhere else self.dense()
        out = raw if plugin.scores_anywhere else np.zeros(len(nodes), dtype=np.int64)
        try:
            answer = plugin.score_into(self.state, self.pod, nodes, out)
            if type(answer) is int:
                return answer, SUCCESS
            status = SUCCESS if answer is None else checked(plugin, "Score", self.pod, answer)
        except Exception as error:
            return raw, failed(plugin, "Score", self.pod, error)
        if status is not SUCCESS:
            prefix = f'running Score plugins: plugin "{plugin.name}" failed with: '
            return raw, _as_error(status, prefix)
        if out is not raw:
            raw[nodes.rows] = out
        return raw, SUCCESS

    def normalize(self, plugin: ScorePlugin, raw: Scores) -> tuple[Scores, Status]:
        """Scores in 0-100. Of plugins that are not trusted with every row they are checked."""
        if plugin.normalization is not None:
            return plugin.normalization.apply(raw, self.feasible), SUCCESS
        if not (writes(plugin, "normalize_nodes") or writes(plugin, "normalize_scores")):
            return raw, SUCCESS if plugin.scores_anywhere else self._in_range(plugin, raw)
        if writes(plugin, "normalize_rows") and not isinstance(raw, int):
            return self._normalize_rows(plugin, raw)
        nodes = self.dense()
        before: IntArray = np.full(len(nodes), raw) if isinstance(raw, int) else raw[nodes.rows]
        try:
            answer = plugin.normalize_nodes(self.state, self.pod, before, nodes)
            if isinstance(answer, Status):
                status = checked(plugin, "NormalizeScore", self.pod, answer)
                return raw, self._in_range(plugin, raw) if status.is_success else _as_error(status, "")
            after: IntArray = np.zeros(len(nodes), dtype=np.int64)
            write_scores(answer, nodes, after)
        except Exception as error:
            return raw, failed(plugin, "NormalizeScore", self.pod, error)
        normalized = self.zeros()
        normalized[nodes.rows] = after
        return normalized, self._in_range(plugin, normalized)

    def _normalize_rows(self, plugin: ScorePlugin, raw: IntArray) -> tuple[Scores, Status]:
        try:
            return plugin.normalize_rows(self.state, self.pod, raw, self.every.nodes, self.feasible), SUCCESS
        except Exception as error:
            return raw, failed(plugin, "NormalizeScore", self.pod, error)

    def _in_range(self, plugin: ScorePlugin, scores: Scores) -> Status:
        nodes = self.dense()
        dense = np.full(len(nodes), scores) if isinstance(scores, int) else scores[nodes.rows]
        if not len(dense) or (dense.min() >= MIN_NODE_SCORE and dense.max() <= MAX_NODE_SCORE):
            return SUCCESS
        index = int(np.argmax((dense < MIN_NODE_SCORE) | (dense > MAX_NODE_SCORE)))
        text = (
            f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an invalid '
            f"score {dense[index]}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after "
            f'normalizing (pod "{self.pod.key}", node "{nodes.names[index]}")'
        )
        return Status(Code.ERROR, (text,), plugin.name)


def run_scores(profile: Profile, scoring: Scoring) -> tuple[ScoreBoard, Status]:
    """Score, normalise and weight; the board is complete only when the status is Success."""
    board = ScoreBoard(scoring.every, scoring.feasible, scoring.zeros())
    plugins = [plugin for plugin in profile.score if plugin.name not in scoring.state.skip_score]
    if not profile.score:
        board.totals += 1  # every node is as good as any other
    for plugin in plugins:
        raw, status = scoring.score(plugin)
        if status is not SUCCESS:
            return board, status
        board.columns.append(Column(plugin.name, profile.weights.get(plugin.name, 1), raw, raw))
    for plugin, column in zip(plugins, board.columns, strict=True):
        status = add_normalized(board, scoring, plugin, column)
        if status is not SUCCESS:
            return board, status
    board.add_constants()
    return board, SUCCESS


def add_normalized(board: ScoreBoard, scoring: Scoring, plugin: ScorePlugin, column: Column) -> Status:
    """Normalise one column and add it to the totals."""
    column.normalized, status = scoring.normalize(plugin, column.raw)
    if status is SUCCESS:
        if isinstance(column.normalized, int):
            board.constant += column.normalized * column.weight
        else:
            board.totals += column.normalized * column.weight if column.weight != 1 else column.normalized
    return status
