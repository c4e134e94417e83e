"""Spread constraints, compiled: which pods count, in domains of what, and on which nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mooring.api.node_selectors import RequiredNodeAffinity
from mooring.api.pod import Pod, TopologySpreadConstraint
from mooring.api.selectors import IN, Requirement, Selector, compile_label_selector
from mooring.api.taints import find_untolerated
from mooring.framework.nodes import NodeView

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

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
