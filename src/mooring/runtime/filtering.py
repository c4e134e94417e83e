"""PreFilter, Filter and PostFilter: from a pod to the nodes that it may run on.

Filters run in configured order and each sees only what the ones before it kept, so the first plugin that
refuses a node is its rejector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.lifting import gravest
from mooring.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusal, Refusals
from mooring.framework.points import FilterPlugin, PreFilterPlugin
from mooring.framework.results import PostFilterResult, PreFilterResult
from mooring.framework.status import SKIP, SUCCESS, Code, Status
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


def run_pre_filter(
    profile: Profile,
    state: CycleState,
    pod: Pod,
    nodes: Nodes,
    plugins: Iterable[PreFilterPlugin] | None = None,
) -> PreFiltered:
    """All PreFilter plugins, or some of them. An Unschedulable is remembered while the others still run; an
    Unresolvable or an Error ends it at once."""
    refused: Status | None = None
    names: frozenset[str] | None = None
    narrowed: list[str] = []
    for plugin in profile.pre_filter if plugins is None else plugins:
        try:
            answer = plugin.pre_filter(state, pod, nodes)
        except Exception as error:
            return PreFiltered(failed(plugin, "PreFilter", pod, error))
        if answer is None:
            continue
        if answer is SKIP:  # the common case, without a detour
            state.skip_filter.add(plugin.name)
            continue
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
                refused = status  # the last one is told, as upstream
            case Code.UNSCHEDULABLE_AND_UNRESOLVABLE | Code.ERROR:
                return PreFiltered(status)
            case _:
                return PreFiltered(unexpected(plugin, "PreFilter", pod, status))
    return PreFiltered(SUCCESS if refused is None else refused, names, tuple(narrowed))


def outside(plugins: Sequence[str]) -> Status:
    """The verdict on the nodes that PreFilter left out, when it left others."""
    names = " ".join(sorted(plugins))
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")


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


def filter_one(profile: Profile, state: CycleState, pod: Pod, node: NodeView) -> Status:
    """All Filter plugins on one node, in the scalar form; the first refusal or Error ends it."""
    return filter_with(profile.filter, state, pod, node)


def filter_with(plugins: Iterable[FilterPlugin], state: CycleState, pod: Pod, node: NodeView) -> Status:
    """The same with some of the plugins."""
    for plugin in plugins:
        if plugin.name not in state.skip_filter:
            status = filter_by(plugin, state, pod, node)
            if status is not SUCCESS:
                return status
    return SUCCESS


def filter_by(plugin: FilterPlugin, state: CycleState, pod: Pod, node: NodeView) -> Status:
    """One Filter plugin on one node, in the scalar form: Success, a refusal or an Error."""
    try:
        answer = plugin.filter(state, pod, node)
        if answer is None:
            return SUCCESS
        status = checked(plugin, "Filter", pod, answer, node.name)
    except Exception as error:
        return failed(plugin, "Filter", pod, error, node.name)
    if status.is_success or status.is_rejected or status.code is Code.ERROR:
        return status
    return unexpected(plugin, "Filter", pod, status, node.name)


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
                f"post_filter() must return a Status, a (PostFilterResult, Status) pair or None, "
                f"got {answer!r}"
            )


def sample_size(percentage: int, nodes: int) -> int:
    """How many feasible nodes to look for in the compatible mode."""
    if nodes < 100 or percentage >= 100:
        return nodes
    return max(100, nodes * percentage // 100)


def rotate(rows: IntArray, start: int) -> IntArray:
    """`rows` from index `start` on, wrapped round."""
    return rows if start == 0 else np.concatenate((rows[start:], rows[:start]))
