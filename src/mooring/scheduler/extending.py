"""Extenders in a cycle: whom to ask, and what their answers are worth. Talking to them is the port's part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.framework.extending import Extender, ExtenderError
from mooring.framework.nodes import Nodes
from mooring.framework.status import SUCCESS, Status
from mooring.runtime.attempt import Attempt
from mooring.runtime.profile import EXTENDER
from mooring.runtime.score_board import ScoreBoard
from mooring.telemetry import logs

_log = logs.get(__name__)


async def ask_extenders(attempt: Attempt) -> Status:
    """Filter extenders one after another, each on what the previous left."""
    for extender in attempt.profile.services.extenders:
        if not attempt.ok.any():
            break
        if extender.filters and extender.is_interested(attempt.pod):
            status = await _ask(extender, attempt, attempt.every.dense(attempt.ok))
            if not status.is_success:
                return status
    return SUCCESS


async def _ask(extender: Extender, attempt: Attempt, nodes: Nodes) -> Status:
    """One extender's verdict. Whatever it answers can only narrow the nodes."""
    try:
        result = await extender.filter(attempt.pod, nodes)
        if invented := sorted(result.names - set(nodes.names)):
            raise ExtenderError(
                f'extender "{extender.name}" claims a filtered node "{invented[0]}" which is not found '
                f"in the input node list"
            )
    except ExtenderError as error:
        if extender.ignorable:
            _log.warning("Skipping extender that returned an error", extender=extender.name, error=str(error))
            return SUCCESS
        return Status.error(str(error), cause=error).by(EXTENDER)
    for name, row in zip(nodes.names, nodes.rows.tolist(), strict=True):
        if name in result.failed_and_unresolvable:
            status = Status.unresolvable(result.failed_and_unresolvable[name])
        elif name in result.failed:
            status = Status.unschedulable(result.failed[name])
        elif name not in result.names:
            status = Status.unresolvable()  # left out without a word
        else:
            continue
        attempt.statuses.set_row(row, status.by(EXTENDER))
        attempt.ok[row] = False
    return SUCCESS


async def prioritize(attempt: Attempt, board: ScoreBoard) -> None:
    """Add the scores of prioritizing extenders; their errors count for nothing."""
    services = attempt.profile.services
    nodes = board.every.dense(board.feasible) if services.extenders else board.every.listed
    for extender in services.extenders:
        if not (extender.prioritizes and extender.is_interested(attempt.pod)):
            continue
        try:
            scores = checked_scores(await extender.prioritize(attempt.pod, nodes))
        except ExtenderError as error:
            _log.warning("Skipping scores of extender", extender=extender.name, error=str(error))
            continue
        for name, score in scores.items():
            row = nodes.columns.row_of(name)
            if 0 <= row < len(board.feasible) and board.feasible[row]:
                board.totals[row] += score * extender.weight * 10
        board.tie_break = np.array([services.random.getrandbits(32) for _ in board.totals], dtype=np.int64)


def checked_scores(scores: object) -> Mapping[str, int]:
    """Scores that can be added up. As upstream, 10 is not enforced as the highest."""
    if not isinstance(scores, Mapping):
        raise ExtenderError(f"expected a score per node, got {scores!r}")
    for name, score in scores.items():
        if isinstance(score, bool) or not isinstance(score, int) or not 0 <= score <= MAX_EXTENDER_SCORE:
            raise ExtenderError(f'bad score for node "{name}": {score!r}')
    return scores


MAX_EXTENDER_SCORE = 2**31
"""Far beyond what is agreed (10), and far from where totals would wrap round."""
