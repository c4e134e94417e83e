"""What a plugin says of the nodes that it refuses, held against its Filter."""

from __future__ import annotations

from typing import Any

from moorage.api.pod import Pod
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import Nodes
from moorage.framework.optional import Detail
from moorage.framework.status import Code, PreFilterResult
from tests.plugins.one_plugin import as_status

Details = dict[str, list[Detail]]
"""Refused node → what is in the way there."""


def explained(plugin: Any, pod: Pod, nodes: Nodes) -> Details:
    """Runs PreFilter, Filter and `explain`. There must be details for the nodes that the plugin refuses, and
    for these only; where PreFilter refuses the pod, the reason may say it all."""
    state = CycleState()
    answer = plugin.pre_filter(state, pod, nodes) if hasattr(plugin, "pre_filter") else None
    pre = as_status(None if isinstance(answer, PreFilterResult) else answer)
    if pre.is_skip or pre.code is Code.ERROR:
        return {}
    found = {node.name: [*plugin.explain(state, pod, node)] for node in nodes}
    for details in found.values():
        assert all(detail.missing is None or detail.missing > 0 for detail in details), details
    if pre.is_success:
        for node in nodes:
            status = as_status(plugin.filter(state, pod, node))
            if status.code is not Code.ERROR:
                assert bool(found[node.name]) is not status.is_success, (node.name, status)
    return {name: details for name, details in found.items() if details}
