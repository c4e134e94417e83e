"""Attempts that stand on a remembered evaluation instead of evaluating all nodes afresh."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from mooring.api.resources import Resource
from mooring.framework.points import FilterPlugin
from mooring.framework.status import SUCCESS, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.evaluations import NEVER, Evaluation, Evaluations, Evaluator
from mooring.runtime.filtering_rows import filter_rows
from mooring.scheduler.attempt import Attempt


class Recaller:
    """Finds the evaluation that an attempt can stand on, and keeps new ones."""

    def __init__(self, store_version: Callable[[Resource], int]) -> None:
        self.evaluations = Evaluations()
        self._store_version = store_version

    def recall(self, attempt: Attempt) -> bool:
        """Take the evaluation of the last pod of this signature, brought up to date."""
        signature = _signature(attempt)
        found = self.evaluations.get(signature) if signature is not None else None
        if found is None:
            return False
        evaluator = Evaluator(attempt.profile, self._store_version)
        if not evaluator.recall(found, attempt.pod):
            self.evaluations.drop(signature)
            return False
        attempt.recalled = found
        attempt.state = evaluator.fresh_state(found)
        return True

    def remember(self, attempt: Attempt) -> None:
        """Keep what the local plugins said, if pods like this one come again and again."""
        signature = _signature(attempt)
        if signature is None or attempt.recalled is not None:
            return
        if attempt.narrowed_by or attempt.pre_filter_message or not self.evaluations.is_known(signature):
            return
        evaluator = Evaluator(attempt.profile, self._store_version)
        found = evaluator.build(attempt.pod, attempt.state.clone(), attempt.every)
        if found is not None:
            self.evaluations.put(signature, found)


def _signature(attempt: Attempt) -> Hashable:
    """What the attempt may be remembered by; None where memory does not apply: a sample of the nodes is
    looked at, or one node is tried first."""
    sampled = 0 < attempt.profile.percentage_of_nodes_to_score < 100
    return None if sampled or attempt.pod.nominated_node_name else attempt.info.signature


def run_global_filters(attempt: Attempt) -> Status:
    """The filters that are not remembered, each at its place in the order."""
    found = attempt.recalled
    if found is None:
        return SUCCESS
    for plugin in found.plan.global_filters:
        if plugin.name not in attempt.state.skip_filter:
            status = _filter_at_its_place(attempt, plugin, found)
            if not status.is_success:
                return status
    return SUCCESS


def _filter_at_its_place(attempt: Attempt, plugin: FilterPlugin, found: Evaluation) -> Status:
    """A filter also sees the rows that only later ones refuse, and is then their rejector."""
    state, every = attempt.state, attempt.every
    rank, ranks = found.plan.ranks[plugin.name], found.plan.ranks
    if not any(ranks[p.name] > rank and p.name not in state.skip_filter for p in found.plan.local_filters):
        return filter_rows((plugin,), state, attempt.pod, every, attempt.statuses, attempt.ok)
    seen = attempt.ok | ((found.ranks > rank) & (found.ranks < NEVER) & every.alive)
    before, fresh = seen.copy(), NodeStatuses(attempt.nodes)
    status = filter_rows((plugin,), state, attempt.pod, every, fresh, seen)
    for row in np.flatnonzero(before & ~seen).tolist():
        attempt.statuses.set_row(row, fresh.verdicts[fresh.ids[row]])
    np.logical_and(attempt.ok, seen, out=attempt.ok)
    return status
