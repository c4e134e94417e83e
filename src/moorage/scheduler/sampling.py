"""Filters a part of the nodes: samples for `percentageOfNodesToScore`, and nodes with nominated pods.

It follows findNodesThatPassFilters and numFeasibleNodesToFind in pkg/scheduler/schedule_one.go, and
RunFilterPluginsWithNominatedPods in pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

import numpy as np

from moorage.framework.nodes import BoolArray, IntArray, Nodes
from moorage.framework.status import SUCCESS, Code, Status
from moorage.runtime.attempt import Attempt
from moorage.runtime.dry_run import Session, rivals
from moorage.runtime.filtering import run_filters

NOT_EXAMINED = Status.unresolvable()
"""The status of nodes that the search did not reach. It has no reason, so messages do not count it."""


def sample(attempt: Attempt, wanted: int, start: int) -> tuple[Status, int]:
    """Filter nodes from `start` on until more than `wanted` fit, and return where the next attempt starts.

    The next attempt starts with the one node too many. A block is never larger than the number of missing
    nodes, so no node is filtered in vain. Among nodes with equal scores, the first one wins.
    """
    candidates = attempt.every.dense(attempt.ok)
    rows = rotate(candidates.rows, start % len(candidates))
    attempt.walk = rows
    attempt.ok[:] = False
    seen, kept = 0, 0
    while seen < len(rows) and kept <= wanted:
        block = Nodes(candidates.columns, rows[seen : seen + wanted + 1 - kept])
        fitting, status = _filter_block(attempt, block)
        if not status.is_success:
            return status, start
        attempt.ok[fitting.rows] = True
        seen += len(block)
        kept += len(fitting)
    if kept > wanted:
        # The last node of the block was one too many.
        seen -= 1
        attempt.ok[rows[seen]] = False
    attempt.statuses.set_rows(rows[seen:], NOT_EXAMINED)
    attempt.evaluated += seen
    return SUCCESS, (start + seen) % len(attempt.nodes)


def _filter_block(attempt: Attempt, nodes: Nodes) -> tuple[Nodes, Status]:
    """Filter a block twice: with the nominated pods, if there are any, and without them."""
    ok = np.ones(len(nodes), dtype=np.bool_)
    status = beside_nominated(attempt, nodes, ok)
    if not status.is_success:
        return nodes, status
    passed = nodes if ok.all() else nodes.where(ok)
    return run_filters(attempt.profile, attempt.state, attempt.pod, passed, attempt.statuses)


def beside_nominated(attempt: Attempt, nodes: Nodes, ok: BoolArray) -> Status:
    """Reject nodes on which the pod does not fit together with the pods nominated to them."""
    profile, pod = attempt.profile, attempt.pod
    nominated = profile.services.nominator.nodes()
    if not nominated:
        return SUCCESS
    crowded = [name for name in nominated if rivals(profile, pod, name)]
    if not crowded:
        return SUCCESS
    for index in np.flatnonzero(nodes.named(*crowded) & ok).tolist():
        trial = Session(profile).trial(pod, attempt.state)
        status = trial.filter_with_nominated(nodes[index].name)
        if status.code is Code.ERROR:
            return status
        if not status.is_success:
            attempt.statuses.set_row(int(nodes.rows[index]), status)
            ok[index] = False
    return SUCCESS


def sample_size(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes to look for."""
    if nodes < 100 or percentage >= 100:
        return nodes
    return max(100, nodes * percentage // 100)


def rotate(rows: IntArray, start: int) -> IntArray:
    """Return `rows` starting at index `start`, wrapping around."""
    return rows if start == 0 else np.concatenate((rows[start:], rows[:start]))
