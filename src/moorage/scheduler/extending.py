"""Calls extenders during a scheduling cycle and checks their results. The port does the HTTP requests.

It follows findNodesThatPassExtenders and prioritizeNodes in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from moorage.api.pod import Pod
from moorage.framework.nodes import Nodes
from moorage.framework.ports import Extender, ExtenderError, ExtenderFilterResult
from moorage.framework.status import SUCCESS, Code, Status
from moorage.runtime.attempt import Attempt
from moorage.runtime.profile import EXTENDER
from moorage.runtime.record import ExtenderVerdict
from moorage.runtime.score_board import EXTENDER_SCORE_FACTOR, ExtenderColumn, ScoreBoard


def any_decides(attempt: Attempt) -> bool:
    """Return whether an extender filters or scores nodes for this pod."""
    return any(
        (extender.filters or extender.prioritizes) and extender.is_interested(attempt.pod)
        for extender in attempt.profile.services.extenders
    )


async def ask_extenders(attempt: Attempt) -> Status:
    """Call the filtering extenders in order, each with the nodes that the previous one accepted."""
    for extender in attempt.profile.services.extenders:
        if not attempt.ok.any():
            break
        if extender.filters and extender.is_interested(attempt.pod):
            status = await _ask(extender, attempt, attempt.every.dense(attempt.ok.copy()))
            if not status.is_success:
                return status
    return SUCCESS


async def _ask(extender: Extender, attempt: Attempt, nodes: Nodes) -> Status:
    """Call one extender. Its result can only remove nodes."""
    removed, problem = 0, ""
    try:
        result = await extender.filter(attempt.pod, nodes)
        if invented := sorted(result.names.difference(nodes.names)):
            raise ExtenderError(
                f'extender "{extender.name}" claims a filtered node "{invented[0]}" which is not found '
                f"in the input node list"
            )
        removed = _remove(attempt, nodes, result)
    except ExtenderError as error:
        problem = str(error)
        if not extender.ignorable:
            return Status.error(problem, cause=error).by(EXTENDER)
        extender.warn(error)
    finally:
        attempt.extenders += (ExtenderVerdict(extender.name, removed, problem),)
    return SUCCESS


def _remove(attempt: Attempt, nodes: Nodes, result: ExtenderFilterResult) -> int:
    """Mark the nodes that the extender rejected as infeasible, and return their number."""
    number = 0
    for status, rows in refusals_of(nodes, result):
        attempt.statuses.set_rows(np.array(rows), status)
        attempt.ok[rows] = False
        number += len(rows)
    return number


def refusals_of(nodes: Nodes, result: ExtenderFilterResult) -> Iterator[tuple[Status, list[int]]]:
    """Yield the rows that an extender rejected, by status."""
    failed, unresolvable = result.failed, result.failed_and_unresolvable
    passing = result.names.difference(failed, unresolvable)
    refused: defaultdict[tuple[Code, str], list[int]] = defaultdict(list)
    for name, row in zip(nodes.names, nodes.rows.tolist(), strict=True):
        if name in passing:
            continue
        if name in failed and name not in unresolvable:
            refused[Code.UNSCHEDULABLE, failed[name]].append(row)
        else:  # left out without a message
            refused[Code.UNSCHEDULABLE_AND_UNRESOLVABLE, unresolvable.get(name, "")].append(row)
    for (code, text), rows in refused.items():
        yield Status(code, (text,) if text else (), EXTENDER), rows


async def prioritize(attempt: Attempt, board: ScoreBoard) -> None:
    """Add the scores of the prioritizing extenders, which are called concurrently. Extenders that fail add nothing."""
    services, pod = attempt.profile.services, attempt.pod
    asked = [each for each in services.extenders if each.prioritizes and each.is_interested(pod)]
    if not asked:
        return
    nodes = board.every.dense(board.feasible)
    answers = await asyncio.gather(*(_scores(extender, pod, nodes) for extender in asked))
    for extender, scores in zip(asked, answers, strict=True):
        if scores is None:
            continue
        raw = np.zeros(len(board.totals), dtype=np.int64)
        raw[nodes.rows] = [scores.get(name, 0) for name in nodes.names]
        board.extended.append(ExtenderColumn(extender.name, extender.weight, raw))
        board.totals += raw * (extender.weight * EXTENDER_SCORE_FACTOR)
    if board.extended:
        bits = services.random.randbytes(4 * len(board.totals))
        board.tie_break = np.frombuffer(bits, dtype=np.uint32).astype(np.int64)


async def _scores(extender: Extender, pod: Pod, nodes: Nodes) -> Mapping[str, int] | None:
    try:
        return checked_scores(await extender.prioritize(pod, nodes))
    except ExtenderError as error:
        extender.warn(error)
        return None


def checked_scores(scores: object) -> Mapping[str, int]:
    """Return the scores if all are integers from 0 to 10. (kube-scheduler adds up any numbers.)"""
    if not isinstance(scores, Mapping):
        raise ExtenderError(f"expected a score per node, got {scores!r}")
    for name, score in scores.items():
        if type(score) is not int or not 0 <= score <= MAX_EXTENDER_SCORE:
            raise ExtenderError(f'bad score for node "{name}": {score!r}; it has to be an integer from 0 to 10')
    return scores


MAX_EXTENDER_SCORE = 10
