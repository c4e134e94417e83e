"""Reserve, Unreserve, Permit: the end of the scheduling cycle, when a node has been chosen."""

from __future__ import annotations

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SUCCESS, Code, Status
from mooring.runtime.calling import checked, failed, unexpected
from mooring.runtime.profile import Profile
from mooring.runtime.waiting import HeldPod, permit_timeout

WAITING = Status(Code.WAIT, ("one or more plugins asked to wait and no plugin rejected pod",))


def run_reserve(profile: Profile, state: CycleState, pod: Pod, node: str) -> Status:
    """Reserve plugins in order, up to the first that does not succeed. The caller unreserves."""
    for plugin in profile.reserve:
        try:
            answer = plugin.reserve(state, pod, node)
            if answer is None:
                continue
            status = checked(plugin, "Reserve", pod, answer, node)
        except Exception as error:
            return failed(plugin, "Reserve", pod, error, node)
        if status.is_success:
            continue
        if status.is_rejected or status.code is Code.ERROR:
            return status
        return unexpected(plugin, "Reserve", pod, status, node)
    return SUCCESS


def run_unreserve(profile: Profile, state: CycleState, pod: Pod, node: str) -> None:
    """Unreserve **all** Reserve plugins in reverse order, whether they had reserved or not, and even when
    one of them raises."""
    for plugin in reversed(profile.reserve):
        try:
            plugin.unreserve(state, pod, node)
        except Exception as error:
            failed(plugin, "Unreserve", pod, error, node)


def run_permit(profile: Profile, state: CycleState, pod: Pod, node: str) -> tuple[Status, HeldPod | None]:
    """Permit plugins in order. A refusal ends it; those that asked to wait are collected, and the pod is held
    before this returns, so that no plugin can allow it too early."""
    timeouts: dict[str, float] = {}
    for plugin in profile.permit:
        try:
            status = checked(plugin, "Permit", pod, plugin.permit(state, pod, node), node)
        except Exception as error:
            return failed(plugin, "Permit", pod, error, node), None
        if status.is_success:
            continue
        if status.is_wait:
            timeouts[plugin.name] = permit_timeout(status.timeout)
        elif status.is_rejected or status.code is Code.ERROR:
            return status, None
        else:
            return unexpected(plugin, "Permit", pod, status, node), None
    if timeouts:
        return WAITING, profile.services.waiting.hold(pod, node, timeouts)
    return SUCCESS, None
