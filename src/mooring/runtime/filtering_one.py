"""Filter on one node; AddPod and RemovePod, which tell plugins of pods that come and go in a dry run."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import NodeView
from mooring.framework.points import FilterPlugin
from mooring.framework.status import SUCCESS, Code, Status
from mooring.runtime.calling import checked, failed, unexpected
from mooring.runtime.profile import Profile


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
