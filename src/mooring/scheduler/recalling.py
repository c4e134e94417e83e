"""Attempts that stand on what is remembered instead of asking all plugins about all nodes.

evaluation  what all local plugins said for the last pod of the same signature (runtime.evaluations)
ground      what the plugins that look at nodes alone said for any pod alike to them (runtime.ground)
nothing     every plugin is asked
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.framework.points import FilterPlugin, PreFilterPlugin
from mooring.framework.status import SUCCESS, Code, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime import evaluations
from mooring.runtime.dependence import VersionOf
from mooring.runtime.evaluations import NO_RANK, Evaluation
from mooring.runtime.filtering_rows import filter_rows
from mooring.runtime.ground import Grounds
from mooring.runtime.pre_filtering import run_pre_filter
from mooring.runtime.refreshing import recall
from mooring.runtime.remembering import Evaluations
from mooring.runtime.signatures import Signature
from mooring.scheduler.attempt import Attempt


class Recaller:
    """Finds what an attempt can stand on, and keeps new evaluations."""

    def __init__(self, store_version: VersionOf) -> None:
        self.evaluations = Evaluations()
        self.grounds = Grounds(store_version)
        self._store_version = store_version

    def recall(self, attempt: Attempt) -> Evaluation | None:
        """Set `attempt.recalled`, which is returned, or `attempt.ground`."""
        signature = attempt.info.signature
        # Not where a sample of the nodes is looked at, or one node is tried first.
        if type(signature) is not Signature or attempt.profile.samples:
            return None
        if attempt.pod.status.nominated_node_name:
            return None
        known = self.evaluations  # the next pod is often a twin of the last one
        found = known.latest_found if signature is known.latest else known.get(signature)
        if found is not None:
            if recall(found, attempt.pod, attempt.every):
                attempt.recalled = found
                return found
            self.evaluations.drop(signature)
        if signature.about_nodes is not None:
            attempt.ground = self.grounds.get(
                signature.about_nodes, attempt.profile, attempt.pod, attempt.every
            )
        return None

    def remember(self, attempt: Attempt) -> None:
        """Keep what the local plugins said, if pods like this one come again and again."""
        if attempt.recalled is not None or attempt.narrowed_by or attempt.pre_filter_message:
            return
        signature = attempt.info.signature
        if type(signature) is not Signature or attempt.profile.samples:
            return
        if attempt.pod.status.nominated_node_name or not self.evaluations.is_known(signature):
            return
        found = evaluations.build(
            attempt.profile, attempt.pod, attempt.state.settled(), attempt.every, self._store_version
        )
        if found is not None:
            self.evaluations.put(signature, found)


def leave_memory(attempt: Attempt, asked: Sequence[PreFilterPlugin], status: Status) -> None:
    """A PreFilter that was asked refused the pod or narrowed the nodes, so this attempt does not stand on
    memory after all. Where it ended PreFilter at once, the state is left as if the plugins behind it had
    never run, which those of the memory did."""
    profile, before = attempt.profile, attempt.state
    attempt.leave_memory()
    if status.code not in (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.ERROR):
        return
    names = [plugin.name for plugin in profile.pre_filter]
    reached = names.index(status.plugin) if status.plugin in names else len(names)
    earlier = [plugin for plugin in profile.pre_filter[:reached] if plugin not in asked]
    attempt.state = before.detached()
    run_pre_filter(profile, attempt.state, attempt.pod, attempt.nodes, earlier)


def run_global_filters(attempt: Attempt, found: Evaluation) -> Status:
    """The filters that are not remembered, each at its place in the order."""
    for plugin in found.left.filters:
        if plugin.name not in attempt.state.skip_filter:
            status = _filter_at_its_place(attempt, plugin, found)
            if not status.is_success:
                return status
    return SUCCESS


def _filter_at_its_place(attempt: Attempt, plugin: FilterPlugin, found: Evaluation) -> Status:
    """A filter also sees the rows that only later ones refuse, and is then their rejector."""
    state, every = attempt.state, attempt.every
    rank, ranks = found.plan.ranks[plugin.name], found.plan.ranks
    if not any(ranks[p.name] > rank and p.name not in state.skip_filter for p in found.plan.filters):
        return filter_rows((plugin,), state, attempt.pod, every, attempt.statuses, attempt.ok)
    seen = attempt.ok | ((found.ranks > rank) & (found.ranks < NO_RANK) & every.alive)
    before, fresh = seen.copy(), NodeStatuses(attempt.nodes)
    status = filter_rows((plugin,), state, attempt.pod, every, fresh, seen)
    for row in np.flatnonzero(before & ~seen).tolist():
        attempt.statuses.set_row(row, fresh.verdicts[fresh.ids[row]])
    np.logical_and(attempt.ok, seen, out=attempt.ok)
    return status
