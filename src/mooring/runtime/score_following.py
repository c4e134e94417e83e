"""Scores that depend on pods anywhere, kept up to date from pod to pod by the plugins themselves.

An evaluation remembers what the plugins say that look at one row at a time. Where all others follow their
scores (`ScorePlugin.follow_scores`) and refuse nothing, the next pod of the signature needs neither PreScore
nor Score nor NormalizeScore: the sum of what is remembered and what is followed decides.
"""

from __future__ import annotations

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import IntArray
from mooring.framework.scoring import ScoreFollower
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.calling import failed
from mooring.runtime.evaluations import Evaluation


class Followers:
    """Those of one evaluation, with the weights of their plugins."""

    __slots__ = ("_all", "_totals")

    def __init__(self, followers: list[tuple[ScoreFollower, int]], rows: int) -> None:
        self._all = followers
        self._totals: IntArray = np.empty(rows, dtype=np.int64)

    def best(self, found: Evaluation) -> int | None:
        """The row of the highest total, the first in snapshot order among equals; None when one of them
        cannot tell."""
        base, totals = found.base, self._totals
        for follower, weight in self._all:
            if not follower.add_to(base, weight, totals):
                return None
            base = totals
        every = found.every
        if every.in_order:
            return int(totals.argmax())
        return int(every.listed.rows[totals.take(every.listed.rows).argmax()])


def follow(found: Evaluation, state: CycleState, pod: Pod, statuses: NodeStatuses) -> None:
    """Ask the plugins that are not remembered to follow their scores, after a pod was scored on top of the
    evaluation; `state` and `statuses` are those of the attempt. Where one cannot, it is asked again some pods
    later."""
    if not statuses.is_lent:
        # More was refused than is remembered, such as rows of nominated pods: what PreScore has made of fewer
        # rows does not hold for the next pod.
        return
    if found.patience:
        found.patience -= 1
        return
    found.followers = _followers(found, state, pod)
    if found.followers is None:
        found.patience = _PATIENCE


_PATIENCE = 16


def _followers(found: Evaluation, state: CycleState, pod: Pod) -> Followers | None:
    left = found.left
    steps = [step for step in left.scores if step.name not in state.skip_score]
    scored = {step.name for step in steps}
    if not found.sums_decide or any(plugin.name not in state.skip_filter for plugin in left.filters):
        return None
    if not steps or any(plugin.name not in scored for plugin in left.pre_scores):
        return None  # who said Skip may have another opinion of the next pod
    followers: list[tuple[ScoreFollower, int]] = []
    for step in steps:
        try:
            follower = step.plugin.follow_scores(state, pod, found.every.nodes, found.ok)
        except Exception as error:
            failed(step.plugin, "FollowScores", pod, error)  # logged; its scores can still be asked for
            return None
        if follower is None:
            return None
        followers.append((follower, step.weight))
    return Followers(followers, len(found.ok))
