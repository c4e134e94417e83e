"""PreEnqueue, as the queue calls it."""

from __future__ import annotations

from mooring.api.pod import Pod
from mooring.framework.status import Status
from mooring.runtime.calling import checked, failed
from mooring.runtime.profile import Profile


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
