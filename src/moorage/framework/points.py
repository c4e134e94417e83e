"""The extension points: one small class each. The bases of a plugin class list the points at which it takes part.

These are the points of pkg/scheduler/framework/interface.go, with methods for one pod, or for one pod and one node.
Optional base classes for all nodes at once and for reuse are in `optional`.

A plugin is built once per profile as `Plugin(args, handle)`. One pod meets the points in this order:

    PreEnqueue ─▶ (queue, ordered by QueueSort) ─▶ PreFilter ─▶ Filter ─┬─▶ PreScore ─▶ Score ─▶ Normalize
                                                                        └─▶ PostFilter (no node left)
    ─▶ Reserve ─▶ Permit ─▶ (wait) ─▶ PreBind ─▶ Bind ─▶ PostBind        any failure after Reserve: Unreserve

Up to Permit, hooks are synchronous and see one unchanging state of the cluster. PreBind, Bind and PostBind run in a
task per pod and may be `async def`; PostFilter may be `async def` too. Do not change arguments, and do not keep views
(`node`, `nodes`) after the hook returns.

Where a Status is expected, `None` means Success. An exception, a wrong type, NaN or a score outside 0-100 fails that
one attempt with an error that names the plugin, the point, the pod and the node.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from moorage.api.pod import Pod
from moorage.framework._contract import derived, missing, required
from moorage.framework.access import Access
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import QueuedPod, Registration
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.status import Normalization, PostFilterResult, PreBindPreFlight, PreFilterResult, Status
from moorage.framework.statuses import NodeStatuses


class Plugin:
    """The base class of all plugins. Configurations use `name`, which must be unique in the process."""

    name: ClassVar[str] = ""
    Args: ClassVar[type | None] = None
    """The msgspec Struct that `pluginConfig` is decoded into; `None`: the plugin gets a plain dict."""
    needs: ClassVar[Sequence[Access]] = ()
    """The kinds that the plugin lists, watches or writes. The Handle refuses all others."""
    definitions: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """The CustomResourceDefinitions of the plugin, which `moorage manifests` prints."""
    replaces: ClassVar[Sequence[str]] = ()
    """Plugins that must not be enabled together with this one; `moorage check` warns about them."""
    precedes: ClassVar[Sequence[str]] = ()
    """Plugins that must come after this one at PostFilter; `moorage check` warns about another order."""

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def events_to_register(self) -> Sequence[Registration] | None:
        """Return the events that may make this plugin accept a pod that it refused. Called once, at start.

        `None` (the default): every event of the common kinds wakes a refused pod. An empty list: no event
        does. Used for plugins that can refuse a pod: PreEnqueue, PreFilter, Filter, Reserve, Permit.
        """
        return None

    @derived
    async def run(self) -> None:
        """Do background work, such as polling metrics. It starts on the leader after the informers have
        synced, and is cancelled on stop and by a reload that replaces the plugin. If it raises, that is
        logged and counted, and it starts again after 1 s, then 2 s, and so on up to 5 min."""


class PreEnqueuePlugin(Plugin):
    """May this pod enter the active queue? Called each time it is about to, so it must be cheap."""

    @required
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """A refusal makes the pod gated. The plugin is called again when an event arrives that it
        registered, or when the pod changes."""
        raise missing(self, "pre_enqueue")


class QueueSortPlugin(Plugin):
    """The order of the active queue. There is one per process; all profiles must enable the same one."""

    @required
    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        """Return whether `a` goes before `b`."""
        raise missing(self, "less")


class SortKeyPlugin(QueueSortPlugin):
    """A QueueSort with a sort key per pod, which is faster than comparing pairs."""

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return bool(self.key(a) < self.key(b))

    @required
    def key(self, pod: QueuedPod) -> Any:
        """Return the sort key. If it changes while the pod is queued, call `handle.resort(uids)`."""
        raise missing(self, "key")


class PreFilterPlugin(Plugin):
    """Looks at the pod once, before any node: prepares state, narrows the nodes, or refuses the pod."""

    @required
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult | Status | None:
        """`PreFilterResult`: only those nodes are considered (results are intersected). Skip: this
        plugin's Filter, AddPod and RemovePod are skipped for this pod. Unschedulable: the pod is refused,
        but the remaining PreFilters still run, so that preemption has their state.
        UnschedulableAndUnresolvable: refused at once. Error: the attempt fails."""
        raise missing(self, "pre_filter")

    @derived
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """Update the state of `pre_filter`, through `state.own(key)`, as if `added` ran on `node`.
        Override both add_pod and remove_pod, or neither if the state does not depend on other pods."""
        return None

    @derived
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """Update the state as if `removed`, and others removed with it, did not run on `node` any more."""
        return None

    @derived
    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        """Return whether `other`, when it is added to a node or removed from it, can change the answer
        about `pod` beyond that node. After False, `add_pod` and `remove_pod` are not called, and
        preemption can judge many nodes at once. It may read namespace, labels, affinity and volume claims
        of `other`, and whether it is being deleted; pods that are equal in these share one answer."""
        return True


class FilterPlugin(Plugin):
    """Can the pod run there? Called for one node at a time; `VectorFilterPlugin` is called for all at once."""

    @required
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Success keeps the node. Unschedulable, UnschedulableAndUnresolvable or Pending refuse it, with
        reasons for the pod's event; later filters do not see the node. Error fails the attempt. Read the
        pods of the node from `node`: in a dry run it shows other pods than the cluster has."""
        raise missing(self, "filter")


class PostFilterPlugin(Plugin):
    """Called if no node is feasible. Typically preemption."""

    @required
    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> (
        Status
        | tuple[PostFilterResult | None, Status | None]
        | Awaitable[Status | tuple[PostFilterResult | None, Status | None] | None]
        | None
    ):
        """Unschedulable continues with the next plugin, and the reasons are joined into the pod's message.
        Success (the pod can be scheduled later, on the nominated node), UnschedulableAndUnresolvable and
        Error end PostFilter. The attempt itself ends as unschedulable in every case."""
        raise missing(self, "post_filter")


class PreScorePlugin(Plugin):
    """Prepares scoring, once per pod, if at least two nodes are feasible."""

    @required
    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """`nodes` are the feasible nodes. Skip: this plugin's Score and NormalizeScore are skipped. Any
        answer other than Skip and Success fails the attempt."""
        raise missing(self, "pre_score")


class ScorePlugin(Plugin):
    """How good is the node? Called for one node at a time; `VectorScorePlugin` is called for all at once."""

    normalization: ClassVar[Normalization | None] = None
    """The default normalization, done by the runtime. Scores must not be negative then, and no normalizing
    method is called."""

    @required
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> float | Status:
        """Return any number; after normalization it must be in 0-100. Fractions are cut off. A Status
        fails the attempt."""
        raise missing(self, "score")

    @derived
    def normalize_scores(self, state: CycleState, pod: Pod, scores: Mapping[str, int]) -> Mapping[str, int] | Status:
        """Return the scores of all feasible nodes, by node name, scaled into 0-100. Do not override it if
        the scores are in 0-100 already."""
        return scores


class ReservePlugin(Plugin):
    """Reserves resources for the pod, after a node has been chosen and the pod is assumed there."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Any answer but Success ends the attempt: Unreserve runs for **all** Reserve plugins in reverse
        order, even for those whose Reserve did not run."""
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo `reserve`. It must be idempotent; an exception is logged, and the other plugins still run."""


class PermitPlugin(Plugin):
    """Approves, denies or delays the pod before it is bound."""

    @required
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Success approves. A rejection ends the attempt, and no further Permit plugin runs.
        `Status.wait(timeout=seconds)` holds the pod, at most 15 minutes, until this plugin calls
        `handle.waiting_pod(uid).allow(name)`, the pod is rejected, or the time is over."""
        raise missing(self, "permit")


class PreBindPlugin(Plugin):
    """Does work that must be finished before the pod is bound, such as binding volumes."""

    @derived
    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreBindPreFlight | Status | None:
        """Announce whether there is work; it must be cheap. Skip: `pre_bind` has nothing to do and is not
        called. Any other answer sets the pod's nominatedNodeName first. Error fails the attempt."""
        return None

    @required
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[Status | None] | Status | None:
        """Any answer but Success fails the attempt: Unreserve, forget, retry with backoff. May be cancelled."""
        raise missing(self, "pre_bind")


class BindPlugin(Plugin):
    """Binds the pod to the node. The first plugin that does not answer Skip decides."""

    @required
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[Status | None] | Status | None:
        """Success: the pod is bound. Skip: the next binder is called. Raise `api.errors.OutcomeUnknown` if
        the answer was lost: the pod then stays assumed until a GET shows the outcome. Never cancelled."""
        raise missing(self, "bind")


class PostBindPlugin(Plugin):
    """Called after a pod has been bound. It cannot refuse; an exception is logged."""

    @required
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[None] | None:
        """Clean up, count or notify."""
        raise missing(self, "post_bind")


PRE_ENQUEUE = "PreEnqueue"
QUEUE_SORT = "QueueSort"
PRE_FILTER = "PreFilter"
FILTER = "Filter"
POST_FILTER = "PostFilter"
PRE_SCORE = "PreScore"
SCORE = "Score"
RESERVE = "Reserve"
PERMIT = "Permit"
PRE_BIND = "PreBind"
BIND = "Bind"
POST_BIND = "PostBind"
# Calls that metrics label as extension points, although no configuration names them.
UNRESERVE = "Unreserve"
PRE_FLIGHT = "PreBindPreFlight"
SIGN = "Sign"


class ExtensionPoint(NamedTuple):
    """One row of the table of extension points."""

    label: str
    """The name in metrics, decision records and Go: PreFilter."""
    plugin: type[Plugin]
    """The base class that a plugin inherits to take part."""
    built: int
    """The position at which kube-scheduler builds the point (pkg/scheduler/framework/runtime/framework.go,
    getExtensionPoints). Its first error about an unknown plugin names the first point."""
    refuses: bool = False
    """Whether a plugin can refuse a pod here, so that its events may bring the pod back."""

    @property
    def name(self) -> str:
        """The name in a configuration: preFilter."""
        return self.label[0].lower() + self.label[1:]

    @property
    def attribute(self) -> str:
        """The name of its plugins in a running profile and in `config.types.Plugins`: pre_filter."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.label).lower()

    @property
    def go_type(self) -> str:
        """The Go interface, as messages of kube-scheduler name it: PreFilterPlugin."""
        return f"{self.label}Plugin"


EXTENSION_POINTS = (
    ExtensionPoint(PRE_ENQUEUE, PreEnqueuePlugin, 10, refuses=True),
    ExtensionPoint(QUEUE_SORT, QueueSortPlugin, 11),
    ExtensionPoint(PRE_FILTER, PreFilterPlugin, 0, refuses=True),
    ExtensionPoint(FILTER, FilterPlugin, 1, refuses=True),
    ExtensionPoint(POST_FILTER, PostFilterPlugin, 2),
    ExtensionPoint(PRE_SCORE, PreScorePlugin, 4),
    ExtensionPoint(SCORE, ScorePlugin, 5),
    ExtensionPoint(RESERVE, ReservePlugin, 3, refuses=True),
    ExtensionPoint(PERMIT, PermitPlugin, 9, refuses=True),
    ExtensionPoint(PRE_BIND, PreBindPlugin, 6),
    ExtensionPoint(BIND, BindPlugin, 7),
    ExtensionPoint(POST_BIND, PostBindPlugin, 8),
)
"""All extension points, in the order in which a pod meets them. Configurations, the registry, profiles,
metrics and the documentation read this table. `multiPoint` in a configuration stands for all of them."""

BY_NAME = {point.name: point for point in EXTENSION_POINTS}
"""The points by their name in a configuration."""
BUILT = tuple(sorted(BY_NAME, key=lambda name: BY_NAME[name].built))
"""The names in the order in which kube-scheduler builds the points."""


def implemented_by(cls: type[Plugin]) -> frozenset[str]:
    """Return the names of the points that a plugin class inherits from."""
    return frozenset(point.name for point in EXTENSION_POINTS if issubclass(cls, point.plugin))
