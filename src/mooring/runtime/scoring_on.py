"""Scores on top of what is remembered: the sum of the known ones, and what has to be asked anew."""

from __future__ import annotations

from mooring.framework.nodes import BoolArray
from mooring.framework.status import SUCCESS, Status
from mooring.runtime.buffers import Buffers
from mooring.runtime.evaluations import Evaluation
from mooring.runtime.ground import Ground
from mooring.runtime.score_board import NEVER, Column, ScoreBoard
from mooring.runtime.scoring import Scoring, add_scores


def score_on_ground(
    found: Ground, scoring: Scoring, buffers: Buffers, feasible: int
) -> tuple[ScoreBoard, Status]:
    """The board of a pod that stands on a ground, when its PreScore is over."""
    board = ScoreBoard(scoring.every, scoring.feasible, buffers.take_as_is(), list(found.columns))
    status = add_scores(board, scoring, found.left.scores, found.raws, found.offset)
    return _masked(board, found.ok, feasible == found.feasible), status


def score_recalled(
    found: Evaluation, scoring: Scoring, buffers: Buffers, feasible: int
) -> tuple[ScoreBoard, Status]:
    """The board of a pod for whose signature an evaluation is remembered, when its PreScore is over."""
    raws = found.raws
    summed = [Column(step, raws[step.name], raws[step.name]) for step in found.steps if step.is_summed]
    rest = [(step, raws[step.name]) for step in found.steps if not step.is_summed]
    board = ScoreBoard(scoring.every, scoring.feasible, buffers.take_as_is(), summed)
    status = add_scores(board, scoring, found.left.scores, rest, found.base)
    if found.is_complete and status is SUCCESS and feasible == found.feasible:
        same = all(isinstance(c.normalized, int) for c in board.columns if not c.step.is_summed)
        found.columns = board.columns if same else None
    return _masked(board, found.ok, feasible == found.feasible), status


def _masked(board: ScoreBoard, known: BoolArray, nothing_new: bool) -> ScoreBoard:
    """The remembered sums are below zero where nodes were refused; this attempt may have refused more, a few
    as a rule."""
    if not nothing_new:
        board.totals[(known > board.feasible).nonzero()[0]] = NEVER
    board.is_masked = True
    return board
