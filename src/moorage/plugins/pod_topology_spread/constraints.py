"""Spread constraints: the arguments with the default ones, and compiled, which pods count where and which
nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import msgspec
import numpy as np

from moorage.api.meta import qualified_name_faults
from moorage.api.node import HOSTNAME, ZONE
from moorage.api.node_selectors import NodeTerm, RequiredNodeAffinity
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.problems import Problem, child, duplicate, forbidden, invalid, required, unsupported
from moorage.api.selectors import IN, Requirement, Selector, compile_label_selector
from moorage.api.taints import find_untolerated
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.nodes import BoolArray, Columns, Nodes, NodeView
from moorage.plugins.node_masks import compute_term

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)

_HONOR = "Honor"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of a pod, with the values of its matchLabelKeys in the selector."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    """Only nodes that the pod's node affinity admits are counted."""
    honors_taints: bool
    """Only nodes whose taints the pod tolerates are counted."""

    def admits(self, pod: Pod, required: RequiredNodeAffinity, node: NodeView) -> bool:
        """Whether pods on this node count for `pod`."""
        if self.honors_affinity and not required.matches(node.labels, node.name):
            return False
        return not (self.honors_taints and find_untolerated(node.taints, pod.spec.tolerations))


def compile_constraints(
    constraints: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str
) -> tuple[Constraint, ...]:
    """Those that have this action. A bad selector raises SelectorError."""
    return tuple([_compile(c, labels) for c in constraints if c.when_unsatisfiable == action])


def _compile(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> Constraint:
    selector = compile_label_selector(constraint.label_selector)
    if constraint.match_label_keys:
        own = [Requirement(key, IN, (labels[key],)) for key in constraint.match_label_keys if key in labels]
        selector = selector.plus(*own)
    return Constraint(
        constraint.max_skew,
        constraint.topology_key,
        selector,
        1 if constraint.min_domains is None else constraint.min_domains,
        constraint.node_affinity_policy in (None, _HONOR),
        constraint.node_taints_policy == _HONOR,
    )


def with_selector(constraint: Constraint, selector: Selector) -> Constraint:
    """A default constraint for pods that this selector selects."""
    return Constraint(
        constraint.max_skew,
        constraint.topology_key,
        selector,
        constraint.min_domains,
        constraint.honors_affinity,
        constraint.honors_taints,
    )


ANY_NODE = RequiredNodeAffinity(None, None)


def admitted_mask(columns: Columns, required: RequiredNodeAffinity) -> BoolArray | None:
    """Rows of the nodes that a node selector and required affinity admit; None for all."""
    if required == ANY_NODE:
        return None
    key = ("PodTopologySpread.admitted", required.key)
    mask: BoolArray = columns.node_column(key, lambda nodes: _admitted(nodes, required))
    return mask


def tolerated_mask(columns: Columns, pod: Pod) -> BoolArray | None:
    """Rows of the nodes without a NoSchedule or NoExecute taint that the pod does not tolerate; None for
    all."""
    tolerations = pod.spec.tolerations
    refused = [find_untolerated(cls.taints, tolerations) is not None for cls in columns.taints.classes]
    return ~np.array(refused)[columns.taints.ids] if any(refused) else None


def _admitted(nodes: Nodes, required: RequiredNodeAffinity) -> BoolArray:
    mask = np.ones(len(nodes), dtype=np.bool_)
    if required.selector is not None:
        mask &= compute_term(nodes, NodeTerm(required.selector.requirements))
    if required.terms is not None:
        matched = [compute_term(nodes, term) for term in required.terms.terms]
        mask &= np.logical_or.reduce(matched) if matched else False
    return mask


SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class PodTopologySpreadArgs(PluginArgs):
    """Spread constraints for pods that bring none."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING

    def completed(self, context: ArgsContext) -> Self:
        return msgspec.structs.replace(self, defaulting_type=self.defaulting_type or SYSTEM_DEFAULTING)

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        where = child(path, "defaultingType")
        if self.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
            yield unsupported(where, self.defaulting_type, (SYSTEM_DEFAULTING, LIST_DEFAULTING))
        elif self.defaulting_type == SYSTEM_DEFAULTING and self.default_constraints:
            yield invalid(where, self.defaulting_type, "when .defaultConstraints are not empty")
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints):
            where = child(path, "defaultConstraints", index)
            yield from _validate_constraint(constraint, where)
            key = (constraint.topology_key, constraint.when_unsatisfiable)
            if key in seen:
                yield duplicate(where, f"{{{key[0]}, {key[1]}}}")
            seen.add(key)


def _validate_constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[Problem]:
    if constraint.max_skew <= 0:
        yield invalid(child(path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required(child(path, "topologyKey"), "can not be empty")
    else:
        for fault in qualified_name_faults(constraint.topology_key):
            yield invalid(child(path, "topologyKey"), constraint.topology_key, fault)
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if not constraint.when_unsatisfiable:
        yield required(child(path, "whenUnsatisfiable"), "can not be empty")
    elif constraint.when_unsatisfiable not in actions:
        yield unsupported(child(path, "whenUnsatisfiable"), constraint.when_unsatisfiable, actions)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden(child(path, "labelSelector"), detail)
