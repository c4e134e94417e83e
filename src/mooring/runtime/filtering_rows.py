"""Filter over the whole table at once: masks over all rows in use, no gathering.

The same result as `filtering.run_filters` on all live nodes. Plugins that allow it (`filters_anywhere`) are
asked about every row; the others get the dense survivors, as their contract says.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import BoolArray, EveryRow, Nodes, Refusals
from mooring.framework.points import FilterPlugin
from mooring.framework.status import SUCCESS, Code, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.calling import failed
from mooring.runtime.filtering import REFUSALS, filter_dense, hits_of, not_a_refusal


def filter_rows(
    plugins: Iterable[FilterPlugin],
    state: CycleState,
    pod: Pod,
    every: EveryRow,
    statuses: NodeStatuses,
    ok: BoolArray,
) -> Status:
    """Run these Filter plugins. `ok` says which rows are still in play and is narrowed in place."""
    skipped, nodes = state.skip_filter, every.nodes
    for plugin in plugins:
        if plugin.name in skipped:
            continue
        if not plugin.filters_anywhere:
            status = _dense(plugin, state, pod, every, statuses, ok)
            if not status.is_success:
                return status
            continue
        try:
            answer = plugin.filter_nodes(state, pod, nodes)
            if answer is None:
                continue
            if _refuse_plainly(plugin, answer, nodes, statuses, ok):
                continue
            for hit, status in hits_of(plugin, answer, nodes, ok):
                if status.code not in REFUSALS:
                    name = nodes.names[int(np.flatnonzero(hit)[0])]
                    return not_a_refusal(plugin, pod, status, name)
                statuses.set_where(hit, status)
                ok ^= hit  # hit is within ok, so this takes it out
        except Exception as error:
            return failed(plugin, "Filter", pod, error)
    return SUCCESS


def _refuse_plainly(
    plugin: FilterPlugin, answer: Refusals, nodes: Nodes, statuses: NodeStatuses, ok: BoolArray
) -> bool:
    """Take over an answer with one reason for all nodes that it hits, by far the most common one. False for
    any other."""
    if type(answer) is not Refusals or len(answer.entries) != 1 or answer.nodes is not nodes:
        return False
    entry = answer.entries[0]
    if type(entry.reason) is not str or entry.code not in REFUSALS:
        return False
    hit = entry.mask & ok
    number = int(np.count_nonzero(hit))
    if number:
        statuses.set_where(hit, plain_status(entry.code, entry.reason, plugin.name), number)
        ok ^= hit  # hit is within ok, so this takes it out
    return True


@lru_cache(maxsize=1024)
def plain_status(code: Code, reason: str, plugin: str) -> Status:
    return Status(code, (reason,), plugin)


def _dense(
    plugin: FilterPlugin, state: CycleState, pod: Pod, every: EveryRow, statuses: NodeStatuses, ok: BoolArray
) -> Status:
    nodes = every.dense(ok)
    if not len(nodes):
        return SUCCESS
    kept, status = filter_dense(plugin, state, pod, nodes, statuses)
    if status.is_success and kept is not nodes:
        ok[:] = False
        ok[kept.rows] = True
    return status
