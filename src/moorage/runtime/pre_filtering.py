"""PreFilter and PostFilter: verdicts about the pod as a whole, before any node and if none is feasible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moorage.api.failures import is_cancellation, repr_of
from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import Nodes
from moorage.framework.points import POST_FILTER, PRE_FILTER, PreFilterPlugin
from moorage.framework.status import SKIP, SUCCESS, Code, PostFilterResult, PreFilterResult, Status
from moorage.framework.statuses import NodeStatuses
from moorage.runtime.calling import checked, failed, maybe_await, unexpected
from moorage.runtime.profile import Profile


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """The result of PreFilter: the nodes to consider, or the rejection of the pod as a whole."""

    status: Status
    node_names: frozenset[str] | None = None
    """`None`: all nodes."""
    narrowed_by: tuple[str, ...] = ()
    """Plugins that narrowed the nodes, in order."""


_PASSED = PreFiltered(SUCCESS)
"""No plugin has anything to say, as for most pods."""


def run_pre_filter(
    profile: Profile, state: CycleState, pod: Pod, nodes: Nodes, plugins: Iterable[PreFilterPlugin] | None = None
) -> PreFiltered:
    """Run all PreFilter plugins, or some of them. An Unschedulable is remembered while the others still run; an
    Unresolvable or an Error ends it at once."""
    refused: Status | None = None
    names: frozenset[str] | None = None
    narrowed: list[str] = []
    watch = state.stopwatch
    for plugin in profile.pre_filter if plugins is None else plugins:
        try:
            answer = plugin.pre_filter(state, pod, nodes)
        except BaseException as error:
            return PreFiltered(failed(plugin, "PreFilter", pod, error))
        if watch is not None and watch.now() > watch.next_look:
            watch.check(plugin.name, PRE_FILTER)
        if answer is None:
            continue
        if answer is SKIP:  # the common case, without a detour
            state.skip_filter.add(plugin.name)
            continue
        if isinstance(answer, PreFilterResult):
            narrowed.append(plugin.name)
            names = answer.node_names if names is None else names & answer.node_names
            if not names:
                return PreFiltered(_no_node(narrowed), frozenset(), tuple(narrowed))
            continue
        status = checked(plugin, "PreFilter", pod, answer)
        match status.code:
            case Code.SUCCESS:
                pass
            case Code.SKIP:
                state.skip_filter.add(plugin.name)
            case Code.UNSCHEDULABLE:
                refused = status  # the last one is reported, as upstream
            case Code.UNSCHEDULABLE_AND_UNRESOLVABLE | Code.ERROR:
                return PreFiltered(status)
            case _:
                return PreFiltered(unexpected(plugin, "PreFilter", pod, status))
    if refused is None and names is None:
        return _PASSED
    return PreFiltered(SUCCESS if refused is None else refused, names, tuple(narrowed))


def outside(plugins: Sequence[str]) -> Status:
    """Return the verdict on the nodes that PreFilter left out."""
    names = " ".join(sorted(plugins))
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")


def _no_node(plugins: Sequence[str]) -> Status:
    if len(plugins) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}").by(plugins[0])
    names = " ".join(sorted(plugins))
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}] simultaneously").by(plugins[-1])


async def run_post_filter(
    profile: Profile, state: CycleState, pod: Pod, statuses: NodeStatuses
) -> tuple[PostFilterResult | None, Status]:
    """Run PostFilter plugins in order, until one succeeds, returns Unresolvable, or fails. Reasons are joined; the last
    result with a nomination is kept."""
    kept: PostFilterResult | None = None
    reasons: list[str] = []
    rejector = ""
    for plugin in profile.post_filter:
        try:
            result, answer = _split(await maybe_await(plugin.post_filter(state, pod, statuses)))
        except BaseException as error:
            if is_cancellation(error):
                raise
            return None, failed(plugin, "PostFilter", pod, error)
        if (watch := state.stopwatch) is not None and watch.now() > watch.next_look:
            watch.lap(plugin.name, POST_FILTER)
        status = checked(plugin, "PostFilter", pod, answer)
        if status.is_success:
            return result, status if answer is None else answer  # its reasons end up in the pod's message
        if status.code is Code.ERROR:
            # As it is, without a prefix: it ends up at the tail of the pod's message.
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
                f"post_filter() must return a Status, a (PostFilterResult, Status) pair or None, got {repr_of(answer)}"
            )
