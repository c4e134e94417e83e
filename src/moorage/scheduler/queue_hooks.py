"""Calls PreEnqueue, QueueSort and the signatures of a pod's profile for the queue."""

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
    """Implements `queue.hints.QueueHooks`.

    Profiles may be replaced between cycles, so a pod that is being bound may no longer have a profile.
    """

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self.profiles = profiles
        self._signers: dict[Profile, Signer] = {}

    def serves(self, pod: Pod) -> bool:
        """Return whether one of the profiles schedules the pod."""
        return pod.scheduler_name in self.profiles

    def pre_enqueue(self, pod: Pod, first: str = "") -> Status | None:
        profile = self.profiles[pod.scheduler_name]
        if profile.meter is None:
            return run_pre_enqueue(profile, pod, first)
        began = profile.meter.metrics.now()
        answer = run_pre_enqueue(profile, pod, first)
        # Always reported as a success, as kube-scheduler does; dashboards rely on it.
        profile.meter.observe(PRE_ENQUEUE, began)
        return answer

    def registrations(self, pod: Pod) -> Mapping[str, Sequence[Registration]]:
        profile = self.profiles.get(pod.scheduler_name)
        return profile.registrations if profile is not None else _NO_REGISTRATIONS

    def forget(self) -> None:
        """Drop everything that was cached for the replaced profiles."""
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
    """Return the first rejection, or None. The plugin that gated the pod last time runs first, because it
    most likely still does."""
    order = sorted(profile.pre_enqueue, key=lambda plugin: plugin.name != first)
    for plugin in order:
        try:
            status = checked(plugin, "PreEnqueue", pod, plugin.pre_enqueue(pod))
        except BaseException as error:
            return failed(plugin, "PreEnqueue", pod, error)
        if not status.is_success:
            return status
    return None


class Last:
    """A sort key that comes after every other, for a pod whose key cannot be computed."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, Last)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Last)

    __hash__ = None  # type: ignore[assignment]


def sort_key(sort: SortKeyPlugin, pod: QueuedPod) -> Any:
    """Return the QueueSort key of a pod. If the plugin fails, the pod is sorted last, so that it is never lost."""
    try:
        return sort.key(pod)
    except BaseException as error:
        failed(sort, "QueueSort", pod.pod, error)
        return Last()


def goes_before(profile: Profile, a: QueuedPod, b: QueuedPod) -> bool:
    """Call QueueSort's `less`. If the plugin fails, the pods are sorted by arrival."""
    try:
        return bool(profile.queue_sort.less(a, b))
    except BaseException as error:
        failed(profile.queue_sort, "QueueSort", a.pod, error)
        return False


def sort_by(queue: SchedulingQueue, profile: Profile) -> None:
    """Sort the queue by the QueueSort plugin of this profile. All profiles have the same QueueSort plugin."""
    sort = profile.queue_sort
    if isinstance(sort, SortKeyPlugin):
        queue.sort_by(key=functools.partial(sort_key, sort))
    else:
        queue.sort_by(less=functools.partial(goes_before, profile))
