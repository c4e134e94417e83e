"""How the queue reaches the plugins of a pod's profile."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from mooring.api.pod import Pod
from mooring.framework.events import Registration
from mooring.framework.extension_points import PRE_ENQUEUE, SIGN
from mooring.framework.status import Status
from mooring.runtime.enqueuing import run_pre_enqueue
from mooring.runtime.profile import Profile


class ProfileHooks:
    """Implements `queue.hinting.QueueHooks`. The profiles may be replaced between cycles."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self.profiles = profiles

    def pre_enqueue(self, pod: Pod, first: str = "") -> Status | None:
        profile = self.profiles[pod.scheduler_name]
        if profile.meter is None:
            return run_pre_enqueue(profile, pod, first)
        began = profile.meter.metrics.now()
        answer = run_pre_enqueue(profile, pod, first)
        # Always as a success: so it is with kube-scheduler, and dashboards are made for it.
        profile.meter.observe(PRE_ENQUEUE, began)
        return answer

    def registrations(self, pod: Pod) -> Mapping[str, Sequence[Registration]]:
        return self.profiles[pod.scheduler_name].registrations

    def signature(self, pod: Pod) -> Hashable:
        profile = self.profiles[pod.scheduler_name]
        if profile.meter is None:
            return profile.signature(pod)
        began = profile.meter.metrics.now()
        answer = profile.signature(pod)
        profile.meter.observe(SIGN, began)
        return answer
