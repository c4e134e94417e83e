"""PreFilter: what is said about the pod as a whole, and which nodes are worth a look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.api.pod import Pod
from mooring.framework.cycle_state import CycleState
from mooring.framework.nodes import Nodes
from mooring.framework.points import PreFilterPlugin
from mooring.framework.results import PreFilterResult
from mooring.framework.status import SKIP, SUCCESS, Code, Status
from mooring.runtime.calling import checked, failed, unexpected
from mooring.runtime.profile import Profile


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """What PreFilter left: the nodes to look at, or the refusal of the pod as a whole."""

    status: Status
    node_names: frozenset[str] | None = None
    """`None`: all nodes."""
    narrowed_by: tuple[str, ...] = ()
    """Plugins that narrowed the nodes, in order."""


_PASSED = PreFiltered(SUCCESS)
"""No plugin has anything to say, as for most pods."""


def run_pre_filter(
    profile: Profile,
    state: CycleState,
    pod: Pod,
    nodes: Nodes,
    plugins: Iterable[PreFilterPlugin] | None = None,
) -> PreFiltered:
    """All PreFilter plugins, or some of them. An Unschedulable is remembered while the others still run; an
    Unresolvable or an Error ends it at once."""
    refused: Status | None = None
    names: frozenset[str] | None = None
    narrowed: list[str] = []
    for plugin in profile.pre_filter if plugins is None else plugins:
        try:
            answer = plugin.pre_filter(state, pod, nodes)
        except Exception as error:
            return PreFiltered(failed(plugin, "PreFilter", pod, error))
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
    """The verdict on the nodes that PreFilter left out, when it left others."""
    names = " ".join(sorted(plugins))
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")


def _no_node(plugins: Sequence[str]) -> Status:
    if len(plugins) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}").by(plugins[0])
    names = " ".join(sorted(plugins))
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{names}] simultaneously").by(plugins[-1])
