"""PostFilter: no node fits, and a plugin may change that, by preemption as a rule."""

from __future__ import annotations

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.results import PostFilterResult
from mooring.framework.status import Code, Status
from mooring.framework.statuses import NodeStatuses
from mooring.runtime.calling import checked, failed, maybe_await, unexpected
from mooring.runtime.profile import Profile


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
                f"post_filter() must return a Status, a (PostFilterResult, Status) pair or None, "
                f"got {answer!r}"
            )
