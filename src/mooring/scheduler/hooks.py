"""How the queue reaches the plugins of a pod's profile."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from mooring.api.pod import Pod
from mooring.framework.events import Registration
from mooring.framework.status import Status
from mooring.runtime.enqueuing import run_pre_enqueue
from mooring.runtime.profile import Profile


class ProfileHooks:
    """Implements `queue.hinting.QueueHooks`. The profiles may be replaced between cycles."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self.profiles = profiles

    def pre_enqueue(self, pod: Pod, first: str = "") -> Status | None:
        return run_pre_enqueue(self.profiles[pod.scheduler_name], pod, first)

    def registrations(self, pod: Pod) -> Mapping[str, Sequence[Registration]]:
        return self.profiles[pod.scheduler_name].registrations

    def signature(self, pod: Pod) -> Hashable:
        return self.profiles[pod.scheduler_name].signature(pod)
