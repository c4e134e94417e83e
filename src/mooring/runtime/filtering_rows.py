"""Filter over the whole table at once: masks over all rows in use, no gathering.

The same result as `filtering.run_filters` on all live nodes. Plugins that allow it (`filters_anywhere`) are
asked about every row; the others get the dense survivors, as their contract says.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import BoolArray, EveryRow
from mooring.framework.points import FilterPlugin
from mooring.framework.status import SUCCESS, Status
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
            for hit, status in hits_of(plugin, answer, nodes, ok):
                if status.code not in REFUSALS:
                    name = nodes.names[int(np.flatnonzero(hit)[0])]
                    return not_a_refusal(plugin, pod, status, name)
                statuses.set_where(hit, status)
                ok ^= hit  # hit is within ok, so this takes it out
        except Exception as error:
            return failed(plugin, "Filter", pod, error)
    return SUCCESS


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
