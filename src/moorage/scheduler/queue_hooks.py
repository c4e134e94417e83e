"""PreEnqueue, QueueSort and signatures, as the queue calls them for the profile of a pod."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from moorage.api.pod import Pod
from moorage.framework.events import QueuedPod, Registration
from moorage.framework.points import PRE_ENQUEUE, SIGN, SortKeyPlugin
from moorage.framework.status import Status
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.runtime.calling import checked, failed
from moorage.runtime.profile import Profile
from moorage.runtime.reuse.signatures import Signer

_NO_REGISTRATIONS: Mapping[str, Sequence[Registration]] = {}


class ProfileHooks:
    """Implements `queue.hints.QueueHooks`. The profiles may be replaced between cycles; a pod on its way to a
    node may then be left without one."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self.profiles = profiles
        self._signers: dict[Profile, Signer] = {}

    def serves(self, pod: Pod) -> bool:
        """Whether one of the profiles schedules the pod."""
        return pod.scheduler_name in self.profiles

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
        profile = self.profiles.get(pod.scheduler_name)
        return profile.registrations if profile is not None else _NO_REGISTRATIONS

    def forget(self) -> None:
        """The profiles were replaced."""
        self._signers.clear()

    def signature(self, pod: Pod) -> Hashable:
        profile = self.profiles[pod.scheduler_name]
        signer = self._signers.get(profile)
        if signer is None:
            signer = self._signers[profile] = Signer(profile)
        if profile.meter is None:
            return signer.signature(pod)
        began = profile.meter.metrics.now()
        answer = signer.signature(pod)
        profile.meter.observe(SIGN, began)
        return answer


def run_pre_enqueue(profile: Profile, pod: Pod, first: str = "") -> Status | None:
    """The first refusal, or None. The plugin that held the pod back last time is asked first: most likely it
    still does."""
    order = sorted(profile.pre_enqueue, key=lambda plugin: plugin.name != first)
    for plugin in order:
        try:
            status = checked(plugin, "PreEnqueue", pod, plugin.pre_enqueue(pod))
        except Exception as error:
            return failed(plugin, "PreEnqueue", pod, error)
        if not status.is_success:
            return status
    return None


class Last:
    """A sort key that goes after every other, for a pod whose own could not be computed."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, Last)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Last)

    __hash__ = None  # type: ignore[assignment]


def sort_key(sort: SortKeyPlugin, pod: QueuedPod) -> Any:
    """QueueSort's key. A plugin that fails puts the pod last: the queue must never lose one."""
    try:
        return sort.key(pod)
    except Exception as error:
        failed(sort, "QueueSort", pod.pod, error)
        return Last()


def goes_before(profile: Profile, a: QueuedPod, b: QueuedPod) -> bool:
    """QueueSort's `less`. A plugin that fails leaves the two to the order of their arrival."""
    try:
        return bool(profile.queue_sort.less(a, b))
    except Exception as error:
        failed(profile.queue_sort, "QueueSort", a.pod, error)
        return False


def sort_by(queue: SchedulingQueue, profile: Profile) -> None:
    """All profiles have the same QueueSort; the first one's instance orders the queue."""
    sort = profile.queue_sort
    if isinstance(sort, SortKeyPlugin):
        queue.sort_by(key=functools.partial(sort_key, sort))
    else:
        queue.sort_by(less=functools.partial(goes_before, profile))
