"""Filter on many nodes, on every row of the table, and on one node; AddPod and RemovePod of a dry run.

Filters run in configured order and each sees only the nodes that the previous ones kept, so the first plugin that
rejects a node is its rejector. `filter_rows` works on masks over all rows in use, without gathering: whole-table
plugins are called for every row, the others for the remaining rows, as their contract says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from moorage.api.failures import repr_of
from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import BoolArray, EveryRow, IntArray, Nodes, NodeView, Refusal, Refusals
from moorage.framework.optional import VectorFilterPlugin
from moorage.framework.points import FILTER, FilterPlugin
from moorage.framework.status import SUCCESS, Code, Status, gravest
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.calling import checked, failed, unexpected
from moorage.runtime.profile import Profile


def run_filters(
    profile: Profile, state: CycleState, pod: Pod, nodes: Nodes, statuses: NodeStatuses
) -> tuple[Nodes, Status]:
    """Run all Filter plugins on all of `nodes`; return the remaining nodes, or the Error that ends the attempt.
    Rejections are written into `statuses`."""
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
    """Run one Filter plugin on the nodes still in play; return the remaining ones."""
    if not isinstance(plugin, VectorFilterPlugin):
        return _filter_each(plugin, state, pod, nodes, statuses)
    try:
        refused = np.zeros(len(nodes), dtype=np.bool_)
        answer = plugin.filter_nodes(state, pod, nodes)
        for hit, status in hits_of(plugin, answer, nodes) if answer is not None else ():
            if status.code not in REFUSALS:
                return nodes, not_a_refusal(plugin, pod, status, _first(nodes, hit))
            if isinstance(hit, int):
                statuses.set_row(int(nodes.rows[hit]), status)
                refused[hit] = True
            else:
                statuses.set_rows(nodes.rows[hit], status)
                refused |= hit
    except BaseException as error:
        return nodes, failed(plugin, "Filter", pod, error)
    return (nodes.where(~refused) if refused.any() else nodes), SUCCESS


def _filter_each(
    plugin: FilterPlugin, state: CycleState, pod: Pod, nodes: Nodes, statuses: NodeStatuses
) -> tuple[Nodes, Status]:
    """Run one Filter plugin in its scalar form. Its reasons often name the node, so they are not grouped."""
    refused, call, watch = [], plugin.filter, state.stopwatch
    for index, node in enumerate(nodes):
        try:
            answer = call(state, pod, node)
        except BaseException as error:
            return nodes, failed(plugin, "Filter", pod, error, node.name)
        if watch is not None and watch.now() > watch.next_look:
            watch.check(plugin.name, FILTER)
        if answer is None:
            continue
        status = _verdict(plugin, pod, node, answer)
        if status.code is Code.ERROR:
            return nodes, status
        if status is not SUCCESS:
            statuses.set_row(node.row, status)
            refused.append(index)
    if not refused:
        return nodes, SUCCESS
    kept = np.ones(len(nodes), dtype=np.bool_)
    kept[refused] = False
    return nodes.where(kept), SUCCESS


Hits = Iterable[tuple[BoolArray | int, Status]]
"""Pairs of nodes and the status that they share: a mask, or the index of a node that has one of its own."""


def hits_of(plugin: FilterPlugin, answer: Refusals, nodes: Nodes, within: BoolArray | None = None) -> Hits:
    """Return the validated answer of `filter_nodes`. `within` leaves nodes out."""
    if not isinstance(answer, Refusals):
        raise TypeError(f"filter_nodes() must return nodes.refuse(…), nodes.refusals() or None, got {repr_of(answer)}")
    if answer.nodes is not nodes:
        raise ValueError("filter_nodes() returned refusals for other nodes than those that it was given")
    # Many entries of one answer may share a mask.
    masks = {id(entry.mask): entry.mask for entry in answer.entries}
    if within is not None:
        masks = {key: mask & within for key, mask in masks.items()}
    sizes = {key: int(np.count_nonzero(mask)) for key, mask in masks.items()}  # half the price of any()
    hitting = [entry for entry in answer.entries if sizes[id(entry.mask)]]
    entries = [Refusal(masks[id(entry.mask)], entry.reason, entry.code) for entry in hitting]
    if not entries:
        return ()
    total = sum(sizes[id(entry.mask)] for entry in hitting)
    if all(isinstance(entry.reason, str) for entry in entries) and _are_disjoint(entries, total):
        return [(entry.mask, Status(entry.code, (str(entry.reason),), plugin.name)) for entry in entries]
    return _combined(plugin, entries)


def _are_disjoint(entries: Sequence[Refusal], total: int) -> bool:
    """Return whether no node is hit twice, as for one reason, or if a plugin gives each node one of several."""
    if len(entries) == 1:
        return True
    if total > len(entries[0].mask):
        return False
    return int(np.count_nonzero(np.logical_or.reduce([entry.mask for entry in entries]))) == total


def _combined(plugin: FilterPlugin, entries: Sequence[Refusal]) -> Hits:
    """Combine statuses: nodes hit by the same entries share one if the reasons are plain strings; otherwise each node
    has its own."""
    if not all(isinstance(entry.reason, str) for entry in entries):
        yield from _one_by_one(plugin, entries)
        return
    numbers = _numbered([*{id(entry.mask): entry.mask for entry in entries}.values()])
    for number in np.unique(numbers).tolist():
        same = numbers == number
        first = int(same.argmax())
        mine = [entry for entry in entries if entry.mask[first]]
        if mine:
            yield same, _joined(plugin, mine, first)


def _numbered(masks: Sequence[BoolArray]) -> IntArray:
    """Return a number for each node, equal for nodes that are in the same masks. A few masks at a time are combined
    into one integer, so that thousands of reasons cost a few arrays."""
    numbers: IntArray = np.zeros(len(masks[0]), dtype=np.int64)
    for start in range(0, len(masks), _MAX_COMBINED):
        if start:
            numbers = np.unique(numbers, return_inverse=True)[1]
        for mask in masks[start : start + _MAX_COMBINED]:
            numbers *= 2
            numbers += mask
    return numbers


def _one_by_one(plugin: FilterPlugin, entries: Sequence[Refusal]) -> Hits:
    hit = np.logical_or.reduce([entry.mask for entry in entries])
    for index in np.flatnonzero(hit).tolist():
        yield index, _joined(plugin, [entry for entry in entries if entry.mask[index]], index)


def _joined(plugin: FilterPlugin, entries: Sequence[Refusal], index: int) -> Status:
    reasons = tuple(text for text in (entry.text(index) for entry in entries) if text)
    return Status(gravest(entry.code for entry in entries), reasons, plugin.name)


def _first(nodes: Nodes, hit: BoolArray | int) -> str:
    return nodes.names[hit if isinstance(hit, int) else int(hit.argmax())]


def not_a_refusal(plugin: FilterPlugin, pod: Pod, status: Status, node: str) -> Status:
    """Return the Error for a node whose answer was an Error, or a code that Filter does not allow."""
    return (checked if status.code is Code.ERROR else unexpected)(plugin, "Filter", pod, status, node)


REFUSALS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)
_MAX_COMBINED = 16


def filter_one(profile: Profile, state: CycleState, pod: Pod, node: NodeView) -> Status:
    """Run all Filter plugins on one node in the scalar form; the first rejection or Error ends it."""
    return filter_with(profile.filter, state, pod, node)


def filter_with(plugins: Iterable[FilterPlugin], state: CycleState, pod: Pod, node: NodeView) -> Status:
    """Run some of the Filter plugins on one node in the scalar form; the first rejection or Error ends it."""
    for plugin in plugins:
        if plugin.name not in state.skip_filter:
            status = filter_by(plugin, state, pod, node)
            if status is not SUCCESS:
                return status
    return SUCCESS


def filter_by(plugin: FilterPlugin, state: CycleState, pod: Pod, node: NodeView) -> Status:
    """Run one Filter plugin on one node in the scalar form: Success, a rejection or an Error."""
    try:
        answer = plugin.filter(state, pod, node)
    except BaseException as error:
        return failed(plugin, "Filter", pod, error, node.name)
    if (watch := state.stopwatch) is not None and watch.now() > watch.next_look:
        watch.check(plugin.name, FILTER)
    return SUCCESS if answer is None else _verdict(plugin, pod, node, answer)


def _verdict(plugin: FilterPlugin, pod: Pod, node: NodeView, answer: Status) -> Status:
    """Return a validated scalar answer: Success, a rejection or an Error."""
    status = checked(plugin, "Filter", pod, answer, node.name)
    if status is SUCCESS or status.code in REFUSALS or status.code is Code.ERROR:
        return status
    return unexpected(plugin, "Filter", pod, status, node.name)


def run_add_pod(profile: Profile, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status:
    """Notify the PreFilter plugins that `added` now runs on `node`."""
    for plugin in profile.pre_filter:
        if plugin.name not in state.skip_filter:
            try:
                status = checked(plugin, "AddPod", pod, plugin.add_pod(state, pod, added, node), node.name)
            except BaseException as error:
                return failed(plugin, "AddPod", pod, error, node.name)
            if not status.is_success:
                return status
    return SUCCESS


def run_remove_pod(profile: Profile, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status:
    """Notify the PreFilter plugins that `removed` no longer runs on `node`."""
    for plugin in profile.pre_filter:
        if plugin.name not in state.skip_filter:
            try:
                status = checked(plugin, "RemovePod", pod, plugin.remove_pod(state, pod, removed, node), node.name)
            except BaseException as error:
                return failed(plugin, "RemovePod", pod, error, node.name)
            if not status.is_success:
                return status
    return SUCCESS


def filter_rows(
    plugins: Iterable[FilterPlugin], state: CycleState, pod: Pod, every: EveryRow, statuses: NodeStatuses, ok: BoolArray
) -> Status:
    """Run these Filter plugins. `ok` marks the rows that are still in play and is narrowed in place."""
    skipped, nodes, watch = state.skip_filter, every.nodes, state.stopwatch
    before = ""
    for plugin in plugins:
        if plugin.name in skipped:
            continue
        if before and watch is not None and watch.now() > watch.next_look:
            watch.check(before, FILTER)
        before = plugin.name
        if not isinstance(plugin, WholeTableFilterPlugin):
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
                    return not_a_refusal(plugin, pod, status, _first(nodes, hit))
                if isinstance(hit, int):
                    statuses.set_row(hit, status)
                    ok[hit] = False
                else:
                    statuses.set_where(hit, status)
                    ok ^= hit  # hit is within ok, so this takes it out
        except BaseException as error:
            return failed(plugin, "Filter", pod, error)
    if before and watch is not None and watch.now() > watch.next_look:
        watch.check(before, FILTER)
    return SUCCESS


def _refuse_plainly(
    plugin: FilterPlugin, answer: Refusals, nodes: Nodes, statuses: NodeStatuses, ok: BoolArray
) -> bool:
    """Apply an answer with one reason for all nodes that it hits, by far the most common case. Return False for any
    other."""
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
