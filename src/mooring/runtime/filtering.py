"""PreFilter, Filter and PostFilter: from a pod to the nodes that it may run on.

Filters run in configured order and each sees only what the ones before it kept, so the first plugin that
refuses a node is its rejector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import gravest
from mooring.framework.nodes import IntArray, Nodes, NodeView, Refusals
from mooring.framework.points import FilterPlugin
from mooring.framework.results import PostFilterResult, PreFilterResult
from mooring.framework.status import SUCCESS, Code, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.calling import checked, failed, maybe_await, unexpected
from mooring.runtime.profile import Profile


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """What PreFilter left: the nodes to look at, or the refusal of the pod as a whole."""

    status: Status
    node_names: frozenset[str] | None = None
    """`None`: all nodes."""
    narrowed_by: tuple[str, ...] = ()
    """Plugins that narrowed the nodes, in order."""


def run_pre_filter(profile: Profile, state: CycleState, pod: Pod, nodes: Nodes) -> PreFiltered:
    """All PreFilter plugins. An Unschedulable is remembered while the others still run; an Unresolvable or
    an Error ends it at once."""
    refused: Status | None = None
    names: frozenset[str] | None = None
    narrowed: list[str] = []
    for plugin in profile.pre_filter:
        try:
            answer = plugin.pre_filter(state, pod, nodes)
        except Exception as error:
            return PreFiltered(failed(plugin, "PreFilter", pod, error))
        if isinstance(answer, PreFilterResult):
            narrowed.append(plugin.name)
            names = answer.node_names if names is None else names & answer.node_names
            if not names:
                return PreFiltered(_nothing_left(narrowed), frozenset(), tuple(narrowed))
            continue
        status = checked(plugin, "PreFilter", pod, answer)
        match status.code:
            case Code.SUCCESS:
                pass
            case Code.SKIP:
                state.skip_filter.add(plugin.name)
            case Code.UNSCHEDULABLE:
                refused = status if refused is None else refused
            case Code.UNSCHEDULABLE_AND_UNRESOLVABLE | Code.ERROR:
                return PreFiltered(status)
            case _:
                return PreFiltered(unexpected(plugin, "PreFilter", pod, status))
    return PreFiltered(SUCCESS if refused is None else refused, names, tuple(narrowed))


def _nothing_left(plugins: Sequence[str]) -> Status:
    if len(plugins) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}").by(plugins[0])
    names = " ".join(sorted(plugins))
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}] simultaneously").by(plugins[-1])


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
        try:
            refusals = plugin.filter_nodes(state, pod, nodes)
            if refusals is None:
                continue
            if not isinstance(refusals, Refusals):
                raise TypeError(
                    f"filter_nodes() must return nodes.refuse(…), nodes.refusals() or None, got {refusals!r}"
                )
            if refusals.nodes is not nodes:
                raise ValueError("filter_nodes() answered for another set of nodes than it was asked about")
            nodes, error = _apply(plugin, pod, nodes, refusals, statuses)
        except Exception as raised:
            return nodes, failed(plugin, "Filter", pod, raised)
        if error is not None:
            return nodes, error
    return nodes, SUCCESS


def _apply(
    plugin: FilterPlugin, pod: Pod, nodes: Nodes, refusals: Refusals, statuses: NodeStatuses
) -> tuple[Nodes, Status | None]:
    """Write one plugin's refusals; returns the survivors, or an Error that it answered for some node."""
    entries = [entry for entry in refusals.entries if entry.mask.any()]
    if not entries:
        return nodes, None
    if len(entries) == 1 and isinstance(entries[0].reason, str) and entries[0].code in _REFUSALS:
        entry = entries[0]
        status = Status(entry.code, (entries[0].text(0),), plugin.name)
        statuses.set_rows(nodes.rows[entry.mask], status)
        return nodes.where(~entry.mask), None
    hit = np.logical_or.reduce([entry.mask for entry in entries])
    for index in np.flatnonzero(hit).tolist():
        mine = [entry for entry in entries if entry.mask[index]]
        reasons = tuple(text for text in (entry.text(index) for entry in mine) if text)
        status = Status(gravest(entry.code for entry in mine), reasons)
        if status.code not in _REFUSALS:
            name = nodes.names[index]
            bad = checked if status.code is Code.ERROR else unexpected
            return nodes, bad(plugin, "Filter", pod, status, name)
        statuses.set_row(int(nodes.rows[index]), status.by(plugin.name))
    return nodes.where(~hit), None


_REFUSALS = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


def filter_one(profile: Profile, state: CycleState, pod: Pod, node: NodeView) -> Status:
    """All Filter plugins on one node, in the scalar form; the first refusal or Error ends it."""
    for plugin in profile.filter:
        if plugin.name in state.skip_filter:
            continue
        try:
            status = checked(plugin, "Filter", pod, plugin.filter(state, pod, node), node.name)
        except Exception as error:
            return failed(plugin, "Filter", pod, error, node.name)
        if status.is_success:
            continue
        if status.is_rejected or status.code is Code.ERROR:
            return status
        return unexpected(plugin, "Filter", pod, status, node.name)
    return SUCCESS


def run_add_pod(profile: Profile, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status:
    """Tell the PreFilter plugins that `added` now runs on `node`."""
    for plugin in profile.pre_filter:
        if plugin.name not in state.skip_filter:
            try:
                status = checked(plugin, "AddPod", pod, plugin.add_pod(state, pod, added, node), node.name)
            except Exception as error:
                return failed(plugin, "AddPod", pod, error, node.name)
            if not status.is_success:
                return status
    return SUCCESS


def run_remove_pod(profile: Profile, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status:
    """Tell the PreFilter plugins that `removed` no longer runs on `node`."""
    for plugin in profile.pre_filter:
        if plugin.name not in state.skip_filter:
            try:
                status = checked(
                    plugin, "RemovePod", pod, plugin.remove_pod(state, pod, removed, node), node.name
                )
            except Exception as error:
                return failed(plugin, "RemovePod", pod, error, node.name)
            if not status.is_success:
                return status
    return SUCCESS


async def run_post_filter(
    profile: Profile, state: CycleState, pod: Pod, statuses: NodeStatuses
) -> tuple[PostFilterResult | None, Status]:
    """PostFilter plugins in order, until one succeeds, calls it hopeless, or fails. Reasons are joined; the
    result that is kept is the last one that says something about the nomination."""
    kept: PostFilterResult | None = None
    reasons: list[str] = []
    rejector = ""
    for plugin in profile.post_filter:
        try:
            result, answer = _split(await maybe_await(plugin.post_filter(state, pod, statuses)))
        except Exception as error:
            return None, failed(plugin, "PostFilter", pod, error)
        status = checked(plugin, "PostFilter", pod, answer)
        if status.is_success:
            return result, status
        if status.code is Code.ERROR:
            # Told as it is, without a prefix: it ends up at the tail of the pod's message.
            return None, Status(Code.ERROR, status.reasons if answer is None else answer.reasons, plugin.name)
        if not status.is_rejected:
            return None, unexpected(plugin, "PostFilter", pod, status)
        if result is not None and result.nominated_node is not None:
            kept = result
        reasons.extend(status.reasons)
        rejector = rejector or plugin.name
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return kept, Status(status.code, tuple(reasons), rejector)
    return kept, Status(Code.UNSCHEDULABLE, tuple(reasons), rejector)


def _split(answer: object) -> tuple[PostFilterResult | None, Status | None]:
    match answer:
        case None:
            return None, None
        case Status():
            return None, answer
        case (PostFilterResult() | None as result, Status() | None as status):
            return result, status
        case _:
            raise TypeError(
                f"post_filter() must return a Status, a (PostFilterResult, Status) pair or None, got {answer!r}"
            )


def sample_size(percentage: int, nodes: int) -> int:
    """How many feasible nodes to look for in the compatible mode."""
    if nodes < 100 or percentage >= 100:
        return nodes
    return max(100, nodes * percentage // 100)


def rotate(rows: IntArray, start: int) -> IntArray:
    """`rows` from index `start` on, wrapped round."""
    return rows if start == 0 else np.concatenate((rows[start:], rows[:start]))
