"""Compile spread constraints: the arguments with default constraints, and which pods and nodes count.

Follows pkg/scheduler/framework/plugins/podtopologyspread/common.go, with matchLabelKeys (KEP-3243). Default constraints
count the pods that the Services and the controller of a pod select. Services are indexed by one of the labels that they
select and owners by name, so that thousands of them cost nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import msgspec
import numpy as np

from moorage.api.errors import SelectorError
from moorage.api.meta import labels_key, qualified_name_faults
from moorage.api.node import HOSTNAME, ZONE
from moorage.api.node_selectors import NodeTerm, RequiredNodeAffinity
from moorage.api.pod import Pod, TopologySpreadConstraint, controller_of
from moorage.api.problems import Problem, child, duplicate, forbidden, invalid, required, unsupported
from moorage.api.recent import Recent
from moorage.api.resources import REPLICA_SETS, REPLICATION_CONTROLLERS, SERVICES, STATEFUL_SETS
from moorage.api.selectors import (
    EVERYTHING,
    IN,
    Requirement,
    Selector,
    compile_label_selector,
    selector_from_labels,
    size_of,
)
from moorage.api.taints import find_untolerated
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from moorage.framework.access import Version
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.handle import Handle
from moorage.framework.indexes import ObjectIndex
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
    """One constraint of a pod, with the values of its matchLabelKeys added to the selector."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    """Only nodes that the pod's node affinity admits are counted."""
    honors_taints: bool
    """Only nodes whose taints the pod tolerates are counted."""


class Admission:
    """Whether pods on one node count for `pod`, asked once for all of its constraints."""

    def __init__(self, pod: Pod, required: RequiredNodeAffinity, node: NodeView) -> None:
        self._pod, self._required, self._node = pod, required, node
        self._known: dict[tuple[bool, bool], bool] = {}

    def counts_for(self, constraint: Constraint) -> bool:
        """Return whether pods on the node count for this constraint."""
        policies = (constraint.honors_affinity, constraint.honors_taints)
        if policies not in self._known:
            self._known[policies] = self._admits(*policies)
        return self._known[policies]

    def _admits(self, affinity: bool, taints: bool) -> bool:
        node = self._node
        if affinity and not self._required.matches(node.labels, node.name):
            return False
        return not (taints and find_untolerated(node.taints, self._pod.spec.tolerations))


def compile_constraints(
    constraints: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str
) -> tuple[Constraint, ...]:
    """Return the constraints with this action. Raises SelectorError for an invalid selector."""
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
    """Return a default constraint that counts the pods of this selector."""
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
    """Return the nodes that a node selector and required affinity admit; None for all."""
    if required == ANY_NODE:
        return None
    key = ("PodTopologySpread.admitted", required.key)
    mask: BoolArray = columns.node_column(key, lambda nodes: _admitted(nodes, required))
    return mask


def tolerated_mask(columns: Columns, pod: Pod) -> BoolArray | None:
    """Return the nodes without a NoSchedule or NoExecute taint that the pod does not tolerate; None for all."""
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
    """Spread constraints for pods that define none."""

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


_REMEMBERED = 16384
"""Selectors with their requirements and values that are kept."""
Owner = ReplicationController | ReplicaSet | StatefulSet


class DefaultSelectors:
    """Combines the selectors of a pod's Services and owner into one selector."""

    def __init__(self, handle: Handle) -> None:
        self._services = handle.object_index("spread", SERVICES, service_keys)
        self._owners: dict[tuple[str, str], ObjectIndex] = {
            (resource.api_version, resource.kind): handle.object_index("spread", resource, owner_keys)
            for resource in (REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS)
        }
        self._known: Recent[Hashable, tuple[tuple[int, ...], Selector]] = Recent(_REMEMBERED)
        """What a pod's answer depends on of the pod → versions of the rest, and the answer."""
        self._latest: tuple[Pod | None, tuple[int, ...], Selector] = (None, (), EVERYTHING)
        """The answer about the latest pod, which is asked for several times."""

    def of(self, pod: Pod) -> Selector:
        """Return the selector; empty if nothing selects the pod. It is cached for similar pods."""
        owner, meta = controller_of(pod), pod.metadata
        owners = None if owner is None else self._owners.get((owner.api_version, owner.kind))
        versions = (self._services.version.value, owners.version.value if owners is not None else 0)
        latest, as_of, selector = self._latest
        if latest is pod and as_of == versions:
            return selector
        key = (meta.namespace, labels_key(meta.labels), owner and (owner.api_version, owner.kind, owner.name))
        known = self._known.get(key)
        if known is None or known[0] != versions:
            selector = self._find(pod)
            known = self._known.put(key, (versions, selector), 1 + size_of(selector.requirements))
        self._latest = (pod, *known)
        return known[1]

    def _find(self, pod: Pod) -> Selector:
        labels: dict[str, str] = {}
        for service in self._services_of(pod):
            labels |= service.spec.selector
        owner = self._owner_of(pod)
        if isinstance(owner, ReplicationController):
            return selector_from_labels(labels | owner.spec.selector)
        selector = selector_from_labels(labels)
        return selector if owner is None else selector.plus(*_requirements(owner))

    def versions(self, pod: Pod) -> tuple[Version, ...]:
        """Return a value that changes when `of` may return another selector for this pod."""
        owners = self._owners_index(pod)
        return (self._services.version,) if owners is None else (self._services.version, owners.version)

    def _services_of(self, pod: Pod) -> Iterator[Service]:
        labels = pod.labels
        for label in labels.items():
            for service in self._services.at((pod.namespace, label)):
                if service.spec.selector.items() <= labels.items():
                    yield service

    def _owner_of(self, pod: Pod) -> Owner | None:
        reference, owners = controller_of(pod), self._owners_index(pod)
        if reference is None or owners is None:
            return None
        return next(iter(owners.at((pod.namespace, reference.name))), None)

    def _owners_index(self, pod: Pod) -> ObjectIndex | None:
        reference = controller_of(pod)
        return None if reference is None else self._owners.get((reference.api_version, reference.kind))


def _requirements(owner: ReplicaSet | StatefulSet) -> tuple[Requirement, ...]:
    """Return the requirements of an owner. As upstream, an invalid selector counts as none."""
    try:
        return compile_label_selector(owner.spec.selector).requirements
    except SelectorError:
        return ()


def service_keys(service: Service) -> Iterator[Hashable]:
    """Return one label to index by, and all of them, so that a change is noticed."""
    selector = sorted(service.spec.selector.items())
    if selector:
        yield (service.namespace, selector[0])
        yield tuple(selector)


def owner_keys(owner: Owner) -> Iterator[Hashable]:
    """Return the name to index by, and the selector, so that a change is noticed."""
    yield (owner.namespace, owner.name)
    yield msgspec.json.encode(owner.spec.selector)
