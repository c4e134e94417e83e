"""Filter on many nodes at once. One node at a time is in `filtering_one`, every row of the table in
`filtering_rows`.

Filters run in configured order and each sees only what the ones before it kept, so the first plugin that
refuses a node is its rejector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import gravest
from mooring.framework.nodes import BoolArray, Nodes, Refusal, Refusals
from mooring.framework.points import FilterPlugin
from mooring.framework.status import SUCCESS, Code, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.calling import checked, failed, unexpected
from mooring.runtime.profile import Profile


def run_filters(
    profile: Profile, state: CycleState, pod: Pod, nodes: Nodes, statuses: NodeStatuses
) -> tuple[Nodes, Status]:
    """All Filter plugins on all of `nodes`: the survivors, or the Error that ends the attempt. Refusals are
    written into `statuses`."""
    for plugin in profile.filter:
        if plugin.name in state.skip_filter:
            continue
        if not len(nodes):
            break
        nodes, error = filter_dense(plugin, state, pod, nodes, statuses)
        if not error.is_success:
            return nodes, error
    return nodes, SUCCESS


def filter_dense(
    plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: Nodes, statuses: NodeStatuses
) -> tuple[Nodes, Status]:
    """One Filter plugin on the nodes still in play; returns the survivors."""
    try:
        refused = np.zeros(len(nodes), dtype=np.bool_)
        for hit, status in refusals_of(plugin, state, pod, nodes):
            if status.code not in REFUSALS:
                return nodes, not_a_refusal(plugin, pod, status, nodes.names[int(np.flatnonzero(hit)[0])])
            statuses.set_rows(nodes.rows[hit], status)
            refused |= hit
    except Exception as error:
        return nodes, failed(plugin, "Filter", pod, error)
    return (nodes.where(~refused) if refused.any() else nodes), SUCCESS


Hits = Iterable[tuple[BoolArray, Status]]
"""Pairs of nodes and the status that they share."""


def refusals_of(plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: Nodes) -> Hits:
    """What a plugin refuses."""
    answer = plugin.filter_nodes(state, pod, nodes)
    return () if answer is None else hits_of(plugin, answer, nodes)


def hits_of(plugin: FilterPlugin, answer: Refusals, nodes: Nodes, within: BoolArray | None = None) -> Hits:
    """The answer of `filter_nodes`, checked. `within` leaves nodes out."""
    if not isinstance(answer, Refusals):
        raise TypeError(
            f"filter_nodes() must return nodes.refuse(…), nodes.refusals() or None, got {answer!r}"
        )
    if answer.nodes is not nodes:
        raise ValueError("filter_nodes() answered for another set of nodes than it was asked about")
    entries = answer.entries if within is None else [entry.within(within) for entry in answer.entries]
    entries = [entry for entry in entries if np.count_nonzero(entry.mask)]  # half the price of any()
    if len(entries) == 1 and isinstance(entries[0].reason, str):
        return ((entries[0].mask, Status(entries[0].code, (entries[0].reason,), plugin.name)),)
    return _combined(plugin, entries) if entries else ()


def _combined(plugin: FilterPlugin, entries: Sequence[Refusal]) -> Iterator[tuple[BoolArray, Status]]:
    """Nodes hit by the same entries share a status where the reasons are plain texts; else each has its
    own."""
    if len(entries) > _MOST_COMBINED or not all(isinstance(entry.reason, str) for entry in entries):
        yield from _one_by_one(plugin, entries)
        return
    bits = sum(entry.mask.astype(np.int64) << bit for bit, entry in enumerate(entries))
    for combination in np.unique(bits).tolist():
        if combination:
            mine = [entry for bit, entry in enumerate(entries) if combination >> bit & 1]
            yield bits == combination, _joined(plugin, mine, 0)


def _one_by_one(plugin: FilterPlugin, entries: Sequence[Refusal]) -> Iterator[tuple[BoolArray, Status]]:
    hit = np.logical_or.reduce([entry.mask for entry in entries])
    for index in np.flatnonzero(hit).tolist():
        only = np.zeros(len(hit), dtype=np.bool_)
        only[index] = True
        yield only, _joined(plugin, [entry for entry in entries if entry.mask[index]], index)


def _joined(plugin: FilterPlugin, entries: Sequence[Refusal], index: int) -> Status:
    reasons = tuple(text for text in (entry.text(index) for entry in entries) if text)
    return Status(gravest(entry.code for entry in entries), reasons, plugin.name)


def not_a_refusal(plugin: FilterPlugin, pod: Pod, status: Status, node: str) -> Status:
    """The Error for a node that was answered with an Error, or with a code that Filter does not have."""
    return (checked if status.code is Code.ERROR else unexpected)(plugin, "Filter", pod, status, node)


REFUSALS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)
_MOST_COMBINED = 16
