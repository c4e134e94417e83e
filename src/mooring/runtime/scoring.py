"""PreScore, Score, NormalizeScore: from the feasible nodes to a total per node."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import write_scores, writes
from mooring.framework.nodes import IntArray, Nodes
from mooring.framework.points import ScorePlugin
from mooring.framework.record import TOP_NODES, NodeScore, PluginScore
from mooring.framework.scoring import MAX_NODE_SCORE, MIN_NODE_SCORE
from mooring.framework.status import SUCCESS, Code, Status
from mooring.runtime.calling import checked, failed
from mooring.runtime.profile import Profile


@dataclass(slots=True)
class Column:
    """One plugin's scores for all feasible nodes."""

    plugin: str
    weight: int
    raw: IntArray
    normalized: IntArray


@dataclass(slots=True)
class ScoreBoard:
    """All scores of an attempt; index i of every array is the node `nodes.names[i]`."""

    nodes: Nodes
    totals: IntArray
    columns: list[Column] = field(default_factory=list)
    tie_break: IntArray | None = None
    """Where extenders scored: a random number per node that decides between equal totals."""

    def winner(self) -> int:
        """Index of the highest total; the first in snapshot order among equals."""
        best = int(np.argmax(self.totals))
        if self.tie_break is not None:
            equal = np.flatnonzero(self.totals == self.totals[best])
            best = int(equal[np.argmax(self.tie_break[equal])])
        return best

    def margin(self, winner: int) -> int | None:
        """How far the winner is ahead of the next; None when it is alone."""
        if len(self.totals) < 2:
            return None
        others = np.delete(self.totals, winner)
        return int(self.totals[winner] - others.max())

    def top(self, winner: int, count: int = TOP_NODES) -> tuple[NodeScore, ...]:
        """The best nodes with their scores, the winner first."""
        order = np.argsort(-self.totals, kind="stable")[: count + 1].tolist()
        best = [winner, *(i for i in order if i != winner)][:count]
        return tuple(self._node_score(index) for index in best)

    def _node_score(self, index: int) -> NodeScore:
        parts = tuple(
            PluginScore(
                c.plugin, int(c.raw[index]), int(c.normalized[index]), int(c.normalized[index]) * c.weight
            )
            for c in self.columns
        )
        return NodeScore(self.nodes.names[index], int(self.totals[index]), parts)


def run_pre_score(profile: Profile, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
    """All PreScore plugins; Skip leaves the plugin out of scoring, anything else but Success is an Error."""
    for plugin in profile.pre_score:
        try:
            status = checked(plugin, "PreScore", pod, plugin.pre_score(state, pod, nodes))
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


def run_scores(profile: Profile, state: CycleState, pod: Pod, nodes: Nodes) -> tuple[ScoreBoard, Status]:
    """Score, normalise and weight; the board is complete only when the status is Success."""
    board = ScoreBoard(nodes, np.zeros(len(nodes), dtype=np.int64))
    plugins = [plugin for plugin in profile.score if plugin.name not in state.skip_score]
    if not profile.score:
        board.totals += 1  # every node is as good as any other
    for plugin in plugins:
        raw: IntArray = np.zeros(len(nodes), dtype=np.int64)
        status = _score(plugin, state, pod, nodes, raw)
        if not status.is_success:
            return board, status
        board.columns.append(Column(plugin.name, profile.weights.get(plugin.name, 1), raw, raw))
    for plugin, column in zip(plugins, board.columns, strict=True):
        status = _normalize(plugin, state, pod, nodes, column)
        if not status.is_success:
            return board, status
        board.totals += column.normalized * column.weight
    return board, SUCCESS


def _score(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> Status:
    try:
        answer = checked(plugin, "Score", pod, plugin.score_into(state, pod, nodes, out))
    except Exception as error:
        return failed(plugin, "Score", pod, error)
    return (
        answer
        if answer.is_success
        else _as_error(answer, f'running Score plugins: plugin "{plugin.name}" failed with: ')
    )


def _normalize(plugin: ScorePlugin, state: CycleState, pod: Pod, nodes: Nodes, column: Column) -> Status:
    try:
        if writes(plugin, "normalize_nodes") or writes(plugin, "normalize_scores"):
            answer = plugin.normalize_nodes(state, pod, column.raw.copy(), nodes)
            if isinstance(answer, Status):
                status = checked(plugin, "NormalizeScore", pod, answer)
                return (
                    _as_error(status, "") if not status.is_success else _in_range(plugin, pod, nodes, column)
                )
            column.normalized = np.zeros(len(nodes), dtype=np.int64)
            write_scores(answer, nodes, column.normalized)
    except Exception as error:
        return failed(plugin, "NormalizeScore", pod, error)
    return _in_range(plugin, pod, nodes, column)


def _in_range(plugin: ScorePlugin, pod: Pod, nodes: Nodes, column: Column) -> Status:
    scores = column.normalized
    if not len(scores) or (scores.min() >= MIN_NODE_SCORE and scores.max() <= MAX_NODE_SCORE):
        return SUCCESS
    index = int(np.argmax((scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)))
    text = (
        f'applying score defaultWeights on Score plugins: plugin "{plugin.name}" returns an invalid score '
        f"{scores[index]}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing "
        f'(pod "{pod.key}", node "{nodes.names[index]}")'
    )
    return Status(Code.ERROR, (text,), plugin.name)
