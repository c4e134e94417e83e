"""The extension points of PodTopologySpread. Follows pkg/scheduler/framework/plugins/podtopologyspread/plugin.go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

from moorage.api.errors import SelectorError
from moorage.api.meta import key_of, labels_key
from moorage.api.node_selectors import required_node_affinity
from moorage.api.pod import Pod, TopologySpreadConstraint, controller_of
from moorage.api.recent import Recent
from moorage.api.resources import REPLICA_SETS, REPLICATION_CONTROLLERS, SERVICES, STATEFUL_SETS
from moorage.api.selectors import size_of
from moorage.framework.access import LISTED, Access, Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import Registration
from moorage.framework.handle import Handle
from moorage.framework.hot import IncrementalScore, IncrementalScorePlugin, WholeTableFilterPlugin
from moorage.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin
from moorage.framework.points import PreFilterPlugin, PreScorePlugin
from moorage.framework.status import SKIP, Status
from moorage.plugins.pod_topology_spread import filtering, following, scoring
from moorage.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTING,
    SYSTEM_DEFAULTS,
    Constraint,
    DefaultSelectors,
    PodTopologySpreadArgs,
    compile_constraints,
    with_selector,
)
from moorage.plugins.pod_topology_spread.counted import count
from moorage.plugins.pod_topology_spread.hints import Hints

_REMEMBERED = 16384
"""Constraints with their requirements and values that are kept."""

FILTER = "PodTopologySpread.filter"
SCORE = "PodTopologySpread.score"


class PodTopologySpread(
    PreFilterPlugin, WholeTableFilterPlugin, PreScorePlugin, IncrementalScorePlugin, ReusablePlugin, ExplainingPlugin
):
    name = "PodTopologySpread"
    Args = PodTopologySpreadArgs
    needs = (
        Access(SERVICES, LISTED),
        Access(REPLICATION_CONTROLLERS, LISTED),
        Access(REPLICA_SETS, LISTED),
        Access(STATEFUL_SETS, LISTED),
    )

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._system = args.defaulting_type == SYSTEM_DEFAULTING
        defaults = SYSTEM_DEFAULTS if self._system else args.default_constraints
        self._defaults = {
            action: compile_constraints(defaults, {}, action) for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        }
        """Action → default constraints, without the selector that each pod gets its own of."""
        self._selectors = DefaultSelectors(handle)
        self._counters = handle.pod_counters  # made now, while there are no pods yet
        self._compiled: Recent[Hashable, tuple[Constraint, ...]] = Recent(_REMEMBERED)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        try:
            constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        except SelectorError as error:
            text = "get constraints from pod: obtaining pod's hard topology spread constraints"
            return Status.error(f"{text}: {error}")
        if not constraints:
            return SKIP
        required = required_node_affinity(pod)
        counted = count(constraints, pod, required, self.handle, require_all=True)
        state.write(FILTER, filtering.SpreadState(filtering.Spread.of_all(counted, pod), required))
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        state.own(FILTER).update(pod, added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        state.own(FILTER).update(pod, removed, node, -1)
        return None

    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        if other.namespace != pod.namespace:
            return False
        prepared: filtering.SpreadState = state.read(FILTER)
        return any(spread.constraint.selector.matches(other.labels) for spread in prepared.spreads)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        return filtering.filter_node(state.read(FILTER), node)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        return filtering.filter_nodes(state.read(FILTER), nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        own = bool(pod.spec.topology_spread_constraints)
        try:
            constraints = self._constraints(pod, SCHEDULE_ANYWAY)
        except SelectorError as error:
            text = "calculating preScoreState: obtaining pod's soft topology spread constraints"
            return Status.error(f"{text}: {error}")
        if not constraints:
            return SKIP
        required, require_all = required_node_affinity(pod), own or not self._system
        counted = count(constraints, pod, required, self.handle, require_all)
        state.write(SCORE, scoring.ScoreState(counted, nodes, require_all))
        return None

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> None:
        scoring.score_into(state.read(SCORE), nodes, out)

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> IntArray:
        return scoring.normalize(state.read(SCORE), scores, nodes)

    def normalize_rows(
        self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes, feasible: BoolArray
    ) -> IntArray | int:
        prepared: scoring.ScoreState = state.read(SCORE)
        if prepared.grouped is not None and prepared.grouped.nodes is nodes:
            return prepared.grouped.normalized(feasible)
        return scoring.normalize(prepared, scores, nodes, feasible)

    def incremental_score(
        self, state: CycleState, pod: Pod, nodes: Nodes, feasible: BoolArray
    ) -> IncrementalScore | None:
        own = pod.spec.topology_spread_constraints
        return following.follow(state.read(SCORE), nodes, feasible, () if own else self._selectors.versions(pod))

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        return filtering.explain_node(state.read(FILTER), node)

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        prepared: filtering.SpreadState | None = state.read(FILTER, None)
        return filtering.proposals(prepared, pod, node) if prepared is not None else iter(())

    def events_to_register(self) -> Sequence[Registration]:
        return Hints(lambda pod: self._constraints(pod, DO_NOT_SCHEDULE)).registrations()

    def sign(self, pod: Pod) -> Hashable:
        """Return the constraints, the labels that they count, and everything that decides which nodes count."""
        labels = labels_key(pod.labels)
        own = pod.spec.topology_spread_constraints
        if own:
            return (pod.namespace, labels, key_of(own, _about_nodes(pod)))
        owner = controller_of(pod)
        selector = self._selectors.of(pod)
        about_nodes = b"" if selector.empty else key_of(_about_nodes(pod))
        return (pod.namespace, labels, owner and (owner.kind, owner.name), selector, about_nodes)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        if pod.spec.topology_spread_constraints:
            return (Reads.NODE, Reads.PODS)
        versions = self._selectors.versions(pod)
        return versions if self._selectors.of(pod).empty else (Reads.NODE, Reads.PODS, *versions)

    def _constraints(self, pod: Pod, action: str) -> tuple[Constraint, ...]:
        """Return the pod's own constraints with this action. A pod without constraints gets the default constraints if
        a Service or an owner selects it."""
        own = pod.spec.topology_spread_constraints
        if own:
            return self._own_constraints(own, pod, action)
        defaults = self._defaults[action]
        if not defaults:
            return ()
        selector = self._selectors.of(pod)
        if selector.empty:
            return ()
        return self._remembered((selector, action), lambda: tuple([with_selector(c, selector) for c in defaults]))

    def _own_constraints(
        self, own: Sequence[TopologySpreadConstraint], pod: Pod, action: str
    ) -> tuple[Constraint, ...]:
        reads_labels = any(constraint.match_label_keys for constraint in own)
        labels = labels_key(pod.labels) if reads_labels else b""
        return self._remembered((key_of(own), labels, action), lambda: compile_constraints(own, pod.labels, action))

    def _remembered(self, key: Hashable, compute: Callable[[], tuple[Constraint, ...]]) -> tuple[Constraint, ...]:
        """Return the cached constraints; pods of one template have equal constraints."""
        found = self._compiled.get(key)
        if found is None:
            found = compute()
            self._compiled.put(key, found, sum(1 + size_of(each.selector.requirements) for each in found))
        return found


def _about_nodes(pod: Pod) -> tuple[object, ...]:
    """Return the fields of a pod that decide which nodes count."""
    affinity = pod.spec.affinity
    return (pod.spec.node_selector, affinity and affinity.node_affinity, pod.spec.tolerations)
