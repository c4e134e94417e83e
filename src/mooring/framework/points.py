"""The extension points: one small class each, inherited explicitly so that a plugin's class line says what
it does.

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

import functools
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from mooring.api.pod import Pod
from mooring.framework import lifting
from mooring.framework.access import Access, Reads
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Registration
from mooring.framework.handle import Handle
from mooring.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusals
from mooring.framework.queued import QueuedPod
from mooring.framework.results import PostFilterResult, PreBindPreFlight, PreFilterResult
from mooring.framework.scoring import Normalization, ScoreFollower
from mooring.framework.status import Status
from mooring.framework.statuses import NodeStatuses


class Plugin:
    """Base of all plugins. `name` is what configurations say; it must be unique in the process."""

    name: ClassVar[str] = ""
    Args: ClassVar[type | None] = None
    """A msgspec Struct that `pluginConfig` is decoded into, strictly; `None`: a plain dict is passed on."""
    needs: ClassVar[Sequence[Access]] = ()
    """Kinds that the plugin lists, watches or writes. The Handle refuses all others."""
    signs_repeat: ClassVar[bool] = False
    """For plugins that write `sign` and `reads`: the sign takes few different values, however different the
    pods are (tolerations and node selectors do, labels and requests do not). As long as `reads` names nothing
    but NODE, NODE_COUNT, kinds and versions, what such a plugin says about the nodes is kept and used for all
    pods with an equal sign, until a node changes. It makes nothing right or wrong, only faster."""

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

    @lifting.derived
    def sign(self, pod: Pod) -> Hashable:
        """All that this plugin reads of the pod, as a hashable value. Pods with equal signatures share hint
        answers and evaluations. `None`: never share (not overridden: hints are shared by equal namespace,
        labels, owner and spec; evaluations are not)."""
        return None

    @lifting.derived
    def reads(self, pod: Pod) -> Collection[Reads] | None:
        """What, beside the pod, the answer depends on: NODE, ROW, PODS, NODE_COUNT, `Kind(resource)`, a
        `Version` of the plugin's own. `None`: unknown, so no answer is ever reused."""
        return None

    @lifting.derived
    async def run(self) -> None:
        """Background work of the plugin (polling metrics, say). Started after the informers have synced, on
        the leader only; cancelled on reload and stop. What it raises is logged; it is not restarted."""


class PreEnqueuePlugin(Plugin):
    """May this pod enter the active queue? Called each time that it is about to, so it must be cheap."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Any refusal parks the pod as gated; it is asked again when an event arrives that this plugin
        registered, or when the pod itself changes."""
        raise lifting.missing(self, "pre_enqueue")


class QueueSortPlugin(Plugin):
    """The order of the active queue. Exactly one per process: all profiles must name the same."""

    @lifting.derived
    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        """Whether `a` goes before `b`. Override this, or `key`, which is faster."""
        return bool(self.key(a) < self.key(b))

    @lifting.derived
    def key(self, pod: QueuedPod) -> Any:
        """A value that sorts as the pods should. If it changes while the pod waits, call
        `handle.resort(uids)`."""
        raise lifting.missing(self, "less or key")


class PreFilterPlugin(Plugin):
    """Looks at the pod once, before any node: prepares state, narrows the nodes, or refuses the pod."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult | Status | None:
        """`PreFilterResult`: only those nodes are looked at (results are intersected). Skip: this plugin's
        Filter, AddPod and RemovePod are left out for this pod. Unschedulable: the pod is refused, but the
        remaining PreFilters still run, so that preemption has their state.
        UnschedulableAndUnresolvable: refused at once. Error: the attempt fails."""
        raise lifting.missing(self, "pre_filter")

    @lifting.derived
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        """What-if: `added` now runs on `node`. Correct what `pre_filter` wrote, through `state.own(key)`.
        Override both or none of add_pod and remove_pod; a plugin whose state does not depend on other
        pods needs neither."""
        return None

    @lifting.derived
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        """What-if: `removed` no longer runs on `node`, nor do others that were taken away with it."""
        return None

    @lifting.derived
    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        """What-if: whether `other`, coming to some node or leaving it, can change what this plugin says about
        `pod` beyond that node's row. False spares its `add_pod` and `remove_pod`, and lets preemption judge
        many nodes at once. Of `other` it may read namespace, labels, affinity, volume claims, and whether it
        is being deleted: pods that are equal in this get one answer."""
        return True


class FilterPlugin(Plugin):
    """Can the pod run there? Write `filter` for one node at a time, or `filter_nodes` for all at once."""

    filters_anywhere: ClassVar[bool] = False
    """A hot plugin may set this: `filter_nodes` is then asked about all rows of the table, also those that
    another filter has refused or that have no node (no labels, nothing allocatable). Its answers there are
    not used; it must not fail on them nor answer Error."""

    @lifting.derived
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        """Success keeps the node. Unschedulable, UnschedulableAndUnresolvable or Pending refuse it, with
        reasons that end up in the pod's event; filters after this one do not see the node. Error fails the
        attempt. In a dry run `node` shows the what-if world: read the node's pods from it, not from
        elsewhere."""
        return lifting.lower_filter(self, state, pod, node)

    @lifting.derived
    def filter_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], Status | None]:
        """`filter` prepared for pods like this one, for a hot plugin with `sign` and `reads`: what it reads
        of pod and state is read once, and the function is called for every node that changes while an
        evaluation is remembered. It must answer as `filter` does for any pod with the same sign."""
        return functools.partial(self.filter, state, pod)

    @lifting.derived
    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        """`nodes` holds only those that all filters before this one kept. Return `nodes.refuse(mask,
        reason)`, or `nodes.refusals()` filled with several reasons and codes. `None` keeps all."""
        return lifting.lift_filter(self, state, pod, nodes)

    @lifting.derived
    def headroom(self, state: CycleState, pod: Pod, nodes: Nodes) -> Mapping[str, IntArray] | None:
        """For a plugin that does nothing but hold sums of requests against what a node has: resource → how
        much more of it other pods may request on each node with `pod` still passing. `filter` must say yes
        exactly where no entry is negative, so that preemption can reckon instead of asking. Both this and
        `filter_nodes` must take the sums from `nodes`, which in a dry run shows a what-if world. `None`: not
        for this pod."""
        return None


class PostFilterPlugin(Plugin):
    """Called when no node is left. Typically preemption."""

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
        raise lifting.missing(self, "post_filter")


class PreScorePlugin(Plugin):
    """Prepares scoring, once per pod, when at least two nodes are feasible."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """`nodes` are the feasible ones. Skip: this plugin's Score and NormalizeScore are left out. Any
        other answer than Success fails the attempt."""
        raise lifting.missing(self, "pre_score")


class ScorePlugin(Plugin):
    """How good is the node? Write `score` for one node at a time, `score_nodes` for all at once, or
    `score_into` for a hot path without a fresh array."""

    scores_anywhere: ClassVar[bool] = False
    """The same as `filters_anywhere` for `score_nodes` and `score_into`. Such scores are trusted: they are
    not checked to be within 0-100."""
    writes_all_scores: ClassVar[bool] = False
    """With `scores_anywhere`: `score_into` writes every entry of `out`, or returns an int, so `out` may hold
    anything before."""
    normalization: ClassVar[Normalization | None] = None
    """The default normalisation, left to the runtime. Then scores must not be negative, and neither
    `normalize_scores` nor `normalize_nodes` is called."""

    @lifting.derived
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> float | Status:
        """Any number; after normalisation it must be in 0-100. Fractions are cut off. A Status other than
        Success fails the attempt."""
        return lifting.lower_score(self, state, pod, node)

    @lifting.derived
    def score_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], float | Status]:
        """The same as `filter_for` for `score`."""
        return functools.partial(self.score, state, pod)

    @lifting.derived
    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        """An array of int64 or float64, one entry per node of `nodes` (the feasible ones), or a Status."""
        return lifting.lift_score(self, state, pod, nodes)

    @lifting.derived
    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> Status | int | None:
        """The same, written into `out`, an int64 buffer of `len(nodes)` that belongs to the runtime and holds
        zeros (unless `writes_all_scores`). Returning an int instead gives every node that score."""
        return lifting.fill_scores(self, state, pod, nodes, out)

    @lifting.derived
    def normalize_scores(
        self, state: CycleState, pod: Pod, scores: Mapping[str, int]
    ) -> Mapping[str, int] | Status:
        """Node name → score of this plugin for all feasible nodes; returns them scaled into 0-100. Override
        this or `normalize_nodes`; a plugin whose scores are already in 0-100 needs neither."""
        return scores

    @lifting.derived
    def normalize_rows(
        self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes, feasible: BoolArray
    ) -> IntArray | int:
        """For plugins with `scores_anywhere`: the same on the scores of every row, of which only those where
        `feasible` is true count. Saves gathering them. Trusted like the scores themselves. Returning an int
        gives every node that score."""
        return lifting.normalize_feasible(self, state, pod, scores, nodes, feasible)

    @lifting.derived
    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        """The same on arrays."""
        return lifting.lift_normalize(self, state, pod, scores, nodes)

    @lifting.derived
    def follow_scores(
        self, state: CycleState, pod: Pod, nodes: Nodes, feasible: BoolArray
    ) -> ScoreFollower | None:
        """For plugins with `scores_anywhere` whose answer depends on pods anywhere, so that it cannot be
        remembered: somebody who keeps it up to date instead. Asked after a pod was scored; `nodes` are all
        rows, `state` is that of the attempt. None: every pod is scored from the beginning."""
        return None


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

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Success approves; a rejection ends the attempt and no further Permit plugin runs;
        `Status.wait(timeout=seconds)` holds the pod (at most 15 minutes) until this plugin allows it through
        `handle.waiting_pod(uid).allow(name)`, someone rejects it, or the time is over."""
        raise lifting.missing(self, "permit")


class PreBindPlugin(Plugin):
    """Work that must be finished before the pod is bound (volumes, devices)."""

    @lifting.derived
    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> PreBindPreFlight | Status | None:
        """Cheap look ahead. Skip: `pre_bind` has nothing to do and is not called. Anything else announces
        work, and the pod's nominatedNodeName is set first. Error fails the attempt."""
        return None

    def pre_bind(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> Awaitable[Status | None] | Status | None:
        """Anything but Success fails the attempt: Unreserve, forget, retry by backoff. May be cancelled."""
        raise lifting.missing(self, "pre_bind")


class BindPlugin(Plugin):
    """Binds the pod to the node. The first plugin that does not answer Skip decides."""

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[Status | None] | Status | None:
        """Success: bound. Skip: the next binder. Raise `api.errors.OutcomeUnknown` when the answer was
        lost: the pod then stays assumed until a GET settles it. Never cancelled once called."""
        raise lifting.missing(self, "bind")


class PostBindPlugin(Plugin):
    """Told after a pod has been bound. Cannot refuse; an exception is logged."""

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[None] | None:
        """Clean up, count, notify."""
        raise lifting.missing(self, "post_bind")
