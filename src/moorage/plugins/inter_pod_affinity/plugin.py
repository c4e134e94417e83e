"""The extension points of InterPodAffinity. Follows pkg/scheduler/framework/plugins/interpodaffinity/plugin.go."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from moorage.api.meta import Int32, labels_key
from moorage.api.pod import Pod
from moorage.api.pod_affinity import NO_TERMS, PodTerms, compile_pod_terms, terms_key
from moorage.api.problems import Problem, child, invalid
from moorage.api.resources import NAMESPACES
from moorage.framework.access import LISTED, Access, Dependency, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import Registration
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin, WholeTableScorePlugin
from moorage.framework.indexes import TermKind
from moorage.framework.nodes import BoolArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin
from moorage.framework.points import PreFilterPlugin, PreScorePlugin
from moorage.framework.status import SKIP, Status
from moorage.plugins.inter_pod_affinity import explaining, filtering, hints, scoring
from moorage.plugins.inter_pod_affinity.terms import Namespaces

FILTER = "InterPodAffinity.filter"
SCORE = "InterPodAffinity.score"
TERMS = "InterPodAffinity.terms"

HOSTILE = frozenset((TermKind.ANTI_AFFINITY,))
PREFERRED_ONLY = frozenset((TermKind.PREFERRED,))
ALL_KINDS = frozenset(TermKind)
PREFERRED_AND_REQUIRED = frozenset((TermKind.PREFERRED, TermKind.AFFINITY))


class InterPodAffinityArgs(PluginArgs):
    """The weight of a running pod's required affinity for the incoming pod."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            yield invalid(child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")


class InterPodAffinity(
    PreFilterPlugin, WholeTableFilterPlugin, PreScorePlugin, WholeTableScorePlugin, ReusablePlugin, ExplainingPlugin
):
    name = "InterPodAffinity"
    Args = InterPodAffinityArgs
    needs = (Access(NAMESPACES, LISTED),)

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._hard_weight = args.hard_pod_affinity_weight
        self._namespaces = Namespaces(handle)
        self._counters = handle.pod_counters  # made now, while there are no pods yet
        self._running = handle.affinity_terms

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        own = compile_pod_terms(pod)
        if own.errors:
            return Status.unresolvable(f"parsing pod: {_joined(own)}")
        state.write(TERMS, own)
        if own is NO_TERMS and not len(self._running):
            return SKIP
        namespace_labels = self._namespaces.labels(pod.namespace)
        held = self._running.matching(pod, namespace_labels, HOSTILE)
        if not (held or own.affinity or own.anti_affinity):
            return SKIP
        resolve = self._namespaces.resolve
        near, away = tuple(map(resolve, own.affinity)), tuple(map(resolve, own.anti_affinity))
        prepared = filtering.AffinityState.of(pod, near, away, namespace_labels, self.handle)
        prepared.count(held)
        if not (prepared.hostile or near or away):
            return Status.skip()
        state.write(FILTER, prepared)
        return None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        state.own(FILTER).update(pod, added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        state.own(FILTER).update(pod, removed, node, -1)
        return None

    def concerns(self, state: CycleState, pod: Pod, other: Pod) -> bool:
        prepared: filtering.AffinityState = state.read(FILTER)
        return prepared.concerns(pod, other)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        return filtering.filter_node(state.read(FILTER), node)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        return filtering.filter_nodes(state.read(FILTER), nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        own: PodTerms = state.read(TERMS, None) or compile_pod_terms(pod)
        if own is NO_TERMS and not len(self._running):
            return SKIP
        if own.errors:
            return Status.error(f"failed to parse pod: {_joined(own)}")
        resolve = self._namespaces.resolve
        preferences = [(resolve(preferred.term), preferred.weight) for preferred in own.preferred]
        preferences += [(resolve(preferred.term), -preferred.weight) for preferred in own.preferred_anti]
        if not preferences and self.args.ignore_preferred_terms_of_existing_pods:
            return Status.skip()
        kinds = PREFERRED_AND_REQUIRED if self._hard_weight > 0 else PREFERRED_ONLY
        held = self._running.matching(pod, self._namespaces.labels(pod.namespace), kinds)
        if not (preferences or held):
            return SKIP
        tables = scoring.tables(preferences, held, self._hard_weight, self.handle)
        if not tables:
            return Status.skip()
        state.write(SCORE, tables)
        return None

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> None:
        out[:] = scoring.score_nodes(state.read(SCORE), nodes)

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> IntArray:
        return scoring.normalize(scores)

    def normalize_rows(
        self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes, feasible: BoolArray
    ) -> IntArray:
        return scoring.normalize(scores, feasible)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        prepared: filtering.AffinityState | None = state.read(FILTER, None)
        if prepared is not None:
            held = self._running.matching(pod, prepared.namespace_labels, HOSTILE)
            yield from explaining.explain_node(prepared, held, pod, node)

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        prepared: filtering.AffinityState | None = state.read(FILTER, None)
        if prepared is not None:
            held = self._running.matching(pod, prepared.namespace_labels, HOSTILE)
            yield from explaining.proposals(prepared, held, pod, node)

    def facts(self, state: CycleState, pod: Pod, nodes: Nodes) -> Iterator[str]:
        prepared: filtering.AffinityState | None = state.read(FILTER, None)
        if prepared is not None:
            yield from explaining.facts(prepared, pod)

    def events_to_register(self) -> Sequence[Registration]:
        return hints.registrations(self.handle.behaviour)

    def sign(self, pod: Pod) -> Hashable:
        """Return the labels and the namespace, which terms of other pods select by, and the pod's own terms."""
        return (pod.namespace, labels_key(pod.labels), terms_key(pod))

    def reads(self, pod: Pod) -> Collection[Dependency]:
        """Depend on nothing if the pod has no terms and no term selects it, until other terms appear."""
        terms, namespaces = self._running.version, self._namespaces.version
        if compile_pod_terms(pod) is NO_TERMS:
            labels = self._namespaces.labels(pod.namespace)
            if not self._running.matching(pod, labels, ALL_KINDS):
                return (terms, namespaces)
        return (Reads.NODE, Reads.PODS, terms, namespaces)


def _joined(terms: PodTerms) -> str:
    """Join several errors in upstream's format."""
    return terms.errors[0] if len(terms.errors) == 1 else f"[{', '.join(terms.errors)}]"
