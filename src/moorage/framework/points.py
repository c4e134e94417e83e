"""The extension points: one small class each, inherited explicitly so that a plugin's class line says what it
does. These are the points of the Go framework, with one method for one node or one pod; an author who never
looks further can write every plugin.

Filter and Score for all nodes at once are in `vectorized`, answers that are kept for later pods in
`reusable`.

A plugin is built once per profile as `Plugin(args, handle)`. The order in which one pod meets the points:

    PreEnqueue ─▶ (queue, ordered by QueueSort) ─▶ PreFilter ─▶ Filter ─┬─▶ PreScore ─▶ Score ─▶ Normalize
                                                                        └─▶ PostFilter (no node left)
    ─▶ Reserve ─▶ Permit ─▶ (wait) ─▶ PreBind ─▶ Bind ─▶ PostBind        any failure after Reserve: Unreserve

Up to Permit, hooks are plain synchronous calls and see one unchanging state of the cluster. PreBind, Bind and
PostBind run in a task of their own and may be `async def`; PostFilter may be too. Arguments must not be
changed, and views (`node`, `nodes`) not be kept after the hook returns.

Where a Status is expected `None` means Success. An exception, a wrong type, NaN or a score outside 0-100
fails that one attempt with an error that names plugin, point, pod and node.
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
from moorage.framework.status import (
    Normalization,
    PostFilterResult,
    PreBindPreFlight,
    PreFilterResult,
    Status,
)
from moorage.framework.statuses import NodeStatuses


class Plugin:
    """Base of all plugins. `name` is what configurations say; it must be unique in the process."""

    name: ClassVar[str] = ""
    Args: ClassVar[type | None] = None
    """A msgspec Struct that `pluginConfig` is decoded into, strictly; `None`: a plain dict is passed on."""
    needs: ClassVar[Sequence[Access]] = ()
    """Kinds that the plugin lists, watches or writes. The Handle refuses all others."""
    definitions: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """CustomResourceDefinition objects of the plugin's own kinds; `moorage manifests` prints them."""
    replaces: ClassVar[Sequence[str]] = ()
    """Plugins that must not be enabled beside this one, since both do the same in different ways; `moorage
    check` warns of them."""
    precedes: ClassVar[Sequence[str]] = ()
    """Plugins that must come after this one at PostFilter; `moorage check` warns of another order."""

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def events_to_register(self) -> Sequence[Registration] | None:
        """The events that may turn this plugin's refusal into a yes; asked once, at start.

        `None` (not overridden): every event of the common kinds wakes a refused pod. An empty list: no
        event ever does. Used only for plugins that can refuse a pod: PreEnqueue, PreFilter, Filter,
        Reserve, Permit.
        """
        return None

    @derived
    async def run(self) -> None:
        """Background work of the plugin (polling metrics, say). Started after the informers have synced, on
        the leader only; cancelled on reload and stop. When it returns it is finished; when it raises, that
        is logged and counted, and it is started again after 1 s, then 2 s, and so on up to 5 min."""


class PreEnqueuePlugin(Plugin):
    """May this pod enter the active queue? Called each time that it is about to, so it must be cheap."""

    @required
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Any refusal parks the pod as gated; it is asked again when an event arrives that this plugin
        registered, or when the pod itself changes."""
        raise missing(self, "pre_enqueue")


class QueueSortPlugin(Plugin):
    """The order of the active queue. Exactly one per process: all profiles must name the same."""

    @required
    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        """Whether `a` goes before `b`."""
        raise missing(self, "less")


class SortKeyPlugin(QueueSortPlugin):
    """A QueueSort that gives each pod a value to sort by, which is faster than comparing pairs."""

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return bool(self.key(a) < self.key(b))

    @required
    def key(self, pod: QueuedPod) -> Any:
        """A value that sorts as the pods should. If it changes while the pod waits, call
        `handle.resort(uids)`."""
        raise missing(self, "key")


class PreFilterPlugin(Plugin):
    """Looks at the pod once, before any node: prepares state, narrows the nodes, or refuses the pod."""

    @required
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult | Status | None:
        """`PreFilterResult`: only those nodes are looked at (results are intersected). Skip: this plugin's
        Filter, AddPod and RemovePod are left out for this pod. Unschedulable: the pod is refused, but the
        remaining PreFilters still run, so that preemption has their state.
        UnschedulableAndUnresolvable: refused at once. Error: the attempt fails."""
        raise missing(self, "pre_filter")

    @derived
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """What-if: `added` now runs on `node`. Correct what `pre_filter` wrote, through `state.own(key)`.
        Override both or none of add_pod and remove_pod; a plugin whose state does not depend on other
        pods needs neither."""
        return None

    @derived
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """What-if: `removed` no longer runs on `node`, nor do others that were taken away with it."""
        return None

    @derived
    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        """What-if: whether `other`, coming to some node or leaving it, can change what this plugin says about
        `pod` beyond that node's row. False spares its `add_pod` and `remove_pod`, and lets preemption judge
        many nodes at once. Of `other` it may read namespace, labels, affinity, volume claims, and whether it
        is being deleted: pods that are equal in this get one answer."""
        return True


class FilterPlugin(Plugin):
    """Can the pod run there? Asked about one node at a time; `vectorized.VectorFilterPlugin` is asked about
    all."""

    @required
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Success keeps the node. Unschedulable, UnschedulableAndUnresolvable or Pending refuse it, with
        reasons that end up in the pod's event; filters after this one do not see the node. Error fails the
        attempt. In a dry run `node` shows its pods as they would be: read them from it, not from
        elsewhere."""
        raise missing(self, "filter")


class PostFilterPlugin(Plugin):
    """Called when no node is left. Typically preemption."""

    @required
    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> (
        Status
        | tuple[PostFilterResult | None, Status | None]
        | Awaitable[Status | tuple[PostFilterResult | None, Status | None] | None]
        | None
    ):
        """Success (the pod can be scheduled later, on the nominated node) or UnschedulableAndUnresolvable
        end the row; Unschedulable goes on to the next plugin, and the reasons are joined into the pod's
        message; Error ends it. The attempt itself ends as unschedulable in every case."""
        raise missing(self, "post_filter")


class PreScorePlugin(Plugin):
    """Prepares scoring, once per pod, when at least two nodes are feasible."""

    @required
    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """`nodes` are the feasible ones. Skip: this plugin's Score and NormalizeScore are left out. Any
        other answer than Success fails the attempt."""
        raise missing(self, "pre_score")


class ScorePlugin(Plugin):
    """How good is the node? Asked about one node at a time; `vectorized.VectorScorePlugin` is asked about
    all."""

    normalization: ClassVar[Normalization | None] = None
    """The default normalisation, done by the runtime. Then scores must not be negative, and no normalising
    method is called."""

    @required
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> float | Status:
        """Any number; after normalisation it must be in 0-100. Fractions are cut off. A Status other than
        Success fails the attempt."""
        raise missing(self, "score")

    @derived
    def normalize_scores(
        self, state: CycleState, pod: Pod, scores: Mapping[str, int]
    ) -> Mapping[str, int] | Status:
        """Node name → score of this plugin for all feasible nodes; returns them scaled into 0-100. A plugin
        whose scores are in 0-100 already does not override it."""
        return scores


class ReservePlugin(Plugin):
    """Books what the pod will use, when a node has been chosen and the pod is assumed there."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Anything but Success ends the attempt: Unreserve runs for **all** Reserve plugins in reverse
        order, also for those whose Reserve did not run."""
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo. Must be idempotent and must not fail; an exception is logged and the others still run."""


class PermitPlugin(Plugin):
    """The last word before binding: approve, deny, or wait."""

    @required
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Success approves; a rejection ends the attempt and no further Permit plugin runs;
        `Status.wait(timeout=seconds)` holds the pod (at most 15 minutes) until this plugin allows it through
        `handle.waiting_pod(uid).allow(name)`, it is rejected, or the time is over."""
        raise missing(self, "permit")


class PreBindPlugin(Plugin):
    """Work that must be finished before the pod is bound (volumes, devices)."""

    @derived
    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> PreBindPreFlight | Status | None:
        """Cheap look ahead. Skip: `pre_bind` has nothing to do and is not called. Anything else announces
        work, and the pod's nominatedNodeName is set first. Error fails the attempt."""
        return None

    @required
    def pre_bind(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> Awaitable[Status | None] | Status | None:
        """Anything but Success fails the attempt: Unreserve, forget, retry by backoff. May be cancelled."""
        raise missing(self, "pre_bind")


class BindPlugin(Plugin):
    """Binds the pod to the node. The first plugin that does not answer Skip decides."""

    @required
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[Status | None] | Status | None:
        """Success: bound. Skip: the next binder. Raise `api.errors.OutcomeUnknown` when the answer was
        lost: the pod then stays assumed until a GET settles it. Never cancelled once called."""
        raise missing(self, "bind")


class PostBindPlugin(Plugin):
    """Notified after a pod has been bound. Cannot refuse; an exception is logged."""

    @required
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[None] | None:
        """Clean up, count, notify."""
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
