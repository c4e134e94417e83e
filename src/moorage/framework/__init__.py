"""Everything that a plugin author imports: extension points, Status, CycleState, Handle, node views, ports.

`moorage.framework.points` has the contract of every extension point, and `optional` has the base classes for
answers about all nodes at once, for reuse and for explanations. What is provisional is in `hot` and not
exported here. Nothing here knows a concrete plugin, a queue or a transport."""

from moorage.framework.access import Access, Dependency, Kind, Reads, Version
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState, StateKeyError
from moorage.framework.events import (
    ActionType,
    ClusterEvent,
    EventResource,
    HintFn,
    QueuedPod,
    QueueingHint,
    Registration,
)
from moorage.framework.handle import AssumeCache, DryRun, Handle, Lister, Nominator, WaitingPod
from moorage.framework.nodes import Nodes, NodeView, Refusals
from moorage.framework.optional import (
    Detail,
    ExplainingPlugin,
    Proposal,
    ReusablePlugin,
    VectorFilterPlugin,
    VectorScorePlugin,
)
from moorage.framework.points import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    SortKeyPlugin,
)
from moorage.framework.ports import ApiClient, Clock, EventRecorder
from moorage.framework.status import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    Code,
    Normalization,
    PostFilterResult,
    PreBindPreFlight,
    PreFilterResult,
    Status,
    default_normalize,
)
from moorage.framework.statuses import NodeStatuses

__all__ = [
    "MAX_NODE_SCORE", "MIN_NODE_SCORE", "Access", "ActionType", "ApiClient", "ArgsContext", "AssumeCache",
    "BindPlugin", "Clock", "ClusterEvent", "Code", "CycleState", "Dependency", "Detail", "DryRun",
    "EventRecorder", "EventResource", "ExplainingPlugin", "FilterPlugin", "Handle", "HintFn", "Kind",
    "Lister", "NodeStatuses", "NodeView", "Nodes", "Nominator", "Normalization", "PermitPlugin", "Plugin",
    "PluginArgs", "PostBindPlugin", "PostFilterPlugin", "PostFilterResult", "PreBindPlugin",
    "PreBindPreFlight", "PreEnqueuePlugin", "PreFilterPlugin", "PreFilterResult", "PreScorePlugin",
    "Proposal", "QueueSortPlugin", "QueuedPod", "QueueingHint", "Reads", "Refusals", "Registration",
    "ReservePlugin", "ReusablePlugin", "ScorePlugin", "SortKeyPlugin", "StateKeyError", "Status",
    "VectorFilterPlugin", "VectorScorePlugin", "Version", "WaitingPod", "default_normalize",
]  # fmt: skip
