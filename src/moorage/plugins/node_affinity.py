"""NodeAffinity: nodeSelector, required and preferred node affinity, and the affinity that a profile adds.

Follows pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.api.errors import SelectorError
from moorage.api.kubectl import kubectl
from moorage.api.meta import key_of, labels_key, qualified_name_faults
from moorage.api.node import Node, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.node_selectors import (
    PreferredTerms,
    RequiredNodeAffinity,
    compile_node_selector,
    compile_preferred_terms,
    required_node_affinity,
    required_node_names,
)
from moorage.api.pod import NodeAffinity as NodeAffinitySpec
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid, unsupported
from moorage.api.resources import NODES
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin, WholeTableScorePlugin
from moorage.framework.nodes import IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin
from moorage.framework.points import PreFilterPlugin, PreScorePlugin
from moorage.framework.status import Code, Normalization, PreFilterResult, Status
from moorage.plugins.label_facts import LabelCounts, label_counts, selector_facts
from moorage.plugins.node_masks import preference, required_mask
from moorage.plugins.unmet_terms import unmet

REASON_POD = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"

REQUIRED = "NodeAffinity.required"
PREFERRED = "NodeAffinity.preferred"

NOTHING = NodeAffinitySpec()
_POD_REFUSED = Status.unresolvable(REASON_POD)
_ENFORCED_REFUSED = Status.unresolvable(REASON_ENFORCED)


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_CORRECTED = 4
"""Labels of one selector for which a similar label is looked for."""


class NodeAffinityArgs(PluginArgs):
    """The node affinity that the profile adds to every pod."""

    added_affinity: NodeAffinitySpec | None = None

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if self.added_affinity is not None:
            yield from _check_affinity(self.added_affinity, child(path, "addedAffinity"))


class NodeAffinity(
    PreFilterPlugin, WholeTableFilterPlugin, PreScorePlugin, WholeTableScorePlugin, ReusablePlugin, ExplainingPlugin
):
    name = "NodeAffinity"
    few_signs = True
    Args = NodeAffinityArgs
    normalization = Normalization.DEFAULT

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        added = args.added_affinity or NOTHING
        self._added = _added_required(added)
        self._preferences = added.preferred_during_scheduling_ignored_during_execution
        self._added_preferences = compile_preferred_terms(self._preferences)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult | Status | None:
        """Restrict the search to the named nodes if every term names nodes."""
        selector = affinity_of(pod).required_during_scheduling_ignored_during_execution
        if selector is None and self._added is None and not pod.spec.node_selector:
            return Status.skip()
        state.write(REQUIRED, required_node_affinity(pod))
        names = required_node_names(selector)
        if names is None:
            return None
        return PreFilterResult(names) if names else Status.unresolvable(REASON_CONFLICT)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        if self._added is not None and not self._added.matches(node.labels, node.name):
            return _ENFORCED_REFUSED
        return None if _required(state, pod).matches(node.labels, node.name) else _POD_REFUSED

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        answer = nodes.refusals()
        refused = ~required_mask(nodes, _required(state, pod))
        if self._added is not None:
            fits = required_mask(nodes, self._added)
            answer.add(~fits, REASON_ENFORCED, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
            refused &= fits
        return answer.add(refused, REASON_POD, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        preferences = affinity_of(pod).preferred_during_scheduling_ignored_during_execution
        if not preferences and not self._preferences:
            return Status.skip()
        try:
            state.write(PREFERRED, compile_preferred_terms(preferences))
        except SelectorError as error:
            return Status.error(str(error), cause=error)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        own = _preferred(state, pod).score(node.labels, node.name)
        return own + self._added_preferences.score(node.labels, node.name)

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> None:
        out.fill(0)
        for preferences in (_preferred(state, pod), self._added_preferences):
            if preferences.terms:
                out += preference(nodes, preferences)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        if self._added is not None:
            yield from unmet(self._added, node, "addedAffinity of the profile: ")
        yield from unmet(_required(state, pod), node)

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        counts = label_counts(self.handle.nodes)
        yield from _corrections(pod, node, counts)
        yield from _proposals(_required(state, pod), pod, node, counts)

    def facts(self, state: CycleState, pod: Pod, nodes: Nodes) -> Iterator[str]:
        if self._added is not None:
            yield from (f"addedAffinity of the profile: {fact}" for fact in selector_facts(self._added, nodes))
        yield from selector_facts(_required(state, pod), nodes)

    def events_to_register(self) -> Sequence[Registration]:
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [Registration(node, self._node_matches_now)]

    def _node_matches_now(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """Queue if the node matches now and did not before. Invalid terms may match anything."""
        if not isinstance(new, Node):
            return QueueingHint.QUEUE
        if self._added is not None and not self._added.matches(new.labels, new.name):
            return QueueingHint.SKIP
        required = required_node_affinity(pod)
        before = isinstance(old, Node) and required.matches(old.labels, old.name)
        if required.matches(new.labels, new.name):
            return QueueingHint.SKIP if before else QueueingHint.QUEUE
        return QueueingHint.QUEUE if _unreadable(required, new) else QueueingHint.SKIP

    def sign(self, pod: Pod) -> Hashable:
        affinity = affinity_of(pod)
        own = b"" if affinity is NOTHING else key_of(affinity)
        return own, labels_key(pod.spec.node_selector)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE,)


def _proposals(required: RequiredNodeAffinity, pod: Pod, node: NodeView, counts: LabelCounts) -> Iterator[Proposal]:
    wrong = {key: value for key, value in pod.spec.node_selector.items() if node.labels.get(key) != value}
    fails = required.terms is not None and not required.terms.matches(node.labels, node.name)
    labels = " and ".join(f"{key}={value}" for key, value in sorted(wrong.items()))
    dropped = [f"node selector {labels}"] if wrong else []
    dropped += ["the required node affinity"] if fails else []
    if not dropped:
        return

    def drop(given: Pod) -> Pod:
        kept = {key: value for key, value in given.spec.node_selector.items() if key not in wrong}
        spec, affinity = replace(given.spec, node_selector=kept), given.spec.affinity
        if fails and affinity is not None and affinity.node_affinity is not None:
            free = replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=None)
            spec = replace(spec, affinity=replace(affinity, node_affinity=free))
        return replace(given, spec=spec)

    text = f"drop {' and '.join(dropped)}"
    yield Proposal(text, text, 4 * len(dropped), drop)
    mistyped = any(counts.corrected(*label) for label in itertools.islice(wrong.items(), _MAX_CORRECTED))
    if wrong and not fails and not mistyped and not any(map(_is_well_known, wrong)):
        meta = replace(node.node.metadata, labels={**node.labels, **wrong})
        change = (NODES, node.node, replace(node.node, metadata=meta))
        verb = "label --overwrite" if any(key in node.labels for key in wrong) else "label"
        given = (f"{key}={value}" for key, value in sorted(wrong.items()))
        command = kubectl(verb, f"node/{node.name}", *given)
        text = f"label node {node.name} with {labels}"
        yield Proposal(f"label {labels}", text, 3, changes=(change,), command=command)


def _corrections(pod: Pod, node: NodeView, counts: LabelCounts) -> Iterator[Proposal]:
    """Propose the label of the node in place of a similar one that no node has."""
    for key, value in itertools.islice(sorted(pod.spec.node_selector.items()), _MAX_CORRECTED):
        meant = counts.corrected(key, value)
        if meant is not None and node.labels.get(meant[0]) == meant[1]:
            text = f"select {meant[0]}={meant[1]} instead of {key}={value}"
            yield Proposal(text, text, 2, functools.partial(_selecting, wrong=key, meant=meant))


def _selecting(pod: Pod, wrong: str, meant: tuple[str, str]) -> Pod:
    kept = {key: value for key, value in pod.spec.node_selector.items() if key != wrong}
    return replace(pod, spec=replace(pod.spec, node_selector={**kept, meant[0]: meant[1]}))


def _is_well_known(key: str) -> bool:
    """Return whether Kubernetes itself sets the label, such as kubernetes.io/hostname: another value would be wrong."""
    domain, _, name = key.partition("/")
    return bool(name) and (domain in _KUBERNETES or domain.endswith(tuple(f".{own}" for own in _KUBERNETES)))


_KUBERNETES = ("kubernetes.io", "k8s.io")


def affinity_of(pod: Pod) -> NodeAffinitySpec:
    """Return the pod's own node affinity; empty if it has none."""
    affinity = pod.spec.affinity
    return NOTHING if affinity is None or affinity.node_affinity is None else affinity.node_affinity


def _added_required(added: NodeAffinitySpec) -> RequiredNodeAffinity | None:
    selector = added.required_during_scheduling_ignored_during_execution
    return None if selector is None else RequiredNodeAffinity(None, compile_node_selector(selector))


def _required(state: CycleState, pod: Pod) -> RequiredNodeAffinity:
    """Read the pod here if the profile has disabled PreFilter; the same holds for PreScore."""
    found: RequiredNodeAffinity | None = state.read(REQUIRED, None)
    return required_node_affinity(pod) if found is None else found


def _preferred(state: CycleState, pod: Pod) -> PreferredTerms:
    found: PreferredTerms | None = state.read(PREFERRED, None)
    if found is None:
        found = compile_preferred_terms(affinity_of(pod).preferred_during_scheduling_ignored_during_execution)
    return found


def _unreadable(required: RequiredNodeAffinity, node: Node) -> bool:
    """Return whether an invalid term decides the verdict on a node that does not match."""
    if required.terms is None or not required.terms.errors:
        return False
    return required.selector is None or required.selector.matches(node.labels)


def _check_affinity(affinity: NodeAffinitySpec, path: str) -> Iterator[Problem]:
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        where = child(path, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        for index, term in enumerate(required.node_selector_terms):
            yield from _check_term(term, child(where, index))
    where = child(path, "preferredDuringSchedulingIgnoredDuringExecution")
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        # A weight of zero switches the term off, whatever it says.
        if preferred.weight != 0:
            yield from _check_term(preferred.preference, child(where, index, "preference"))


def _check_term(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    for index, requirement in enumerate(term.match_expressions):
        yield from _check_expression(requirement, child(path, "matchExpressions", index))
    for index, requirement in enumerate(term.match_fields):
        yield from _check_field(requirement, child(path, "matchFields", index))


def _check_expression(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    for fault in qualified_name_faults(requirement.key):
        yield invalid(child(path, "key"), requirement.key, fault)
    if requirement.operator not in _OPERATORS:
        yield unsupported(child(path, "operator"), requirement.operator, _OPERATORS)
        return
    fault = _values_fault(requirement)
    if fault:
        yield invalid(child(path, "values"), requirement.values, fault)


def _values_fault(requirement: NodeSelectorRequirement) -> str:
    operator, values = requirement.operator, requirement.values
    if operator in ("In", "NotIn") and not values:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist") and values:
        return "values set must be empty for exists and does not exist"
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            return "for 'Gt', 'Lt' operators, exactly one value is required"
        if not _INTEGER.fullmatch(values[0]):
            return "for 'Gt', 'Lt' operators, the value must be an integer"
    return ""


def _check_field(requirement: NodeSelectorRequirement, path: str) -> Iterator[Problem]:
    if requirement.key != "metadata.name":
        yield unsupported(child(path, "key"), requirement.key, ("metadata.name",))
    if requirement.operator not in _FIELD_OPERATORS:
        yield unsupported(child(path, "operator"), requirement.operator, _FIELD_OPERATORS)
    if len(requirement.values) != 1:
        yield invalid(child(path, "values"), requirement.values, "must have one element")
