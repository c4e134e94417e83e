"""Arguments of the in-tree plugins: types, defaults, and the rules for their values.

A plugin reads these values; what they do is the plugin's business. `completed` fills in what depends on
other fields or on feature gates, `validate` says what is wrong; both know which fields the file wrote,
because some are refused while their gate is off even when they repeat the default.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Self

import msgspec

from mooring.api.pod import NodeAffinity, TopologySpreadConstraint
from mooring.api.record import Record
from mooring.config import affinity_rules
from mooring.config.durations import Duration
from mooring.config.durations import format as format_duration
from mooring.config.gates import DEFAULT_GATES, FeatureGates
from mooring.config.names import qualified_name_faults
from mooring.config.problems import Problem, child, duplicate, forbidden, invalid, required, unsupported
from mooring.config.scoring_args import (
    DEFAULT_RESOURCES,
    DEFAULT_STORAGE_SHAPE,
    LEAST_ALLOCATED,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    validate_shape,
    weighted,
)
from mooring.config.types import Int32, Int64

__all__ = [
    "IN_TREE_ARGS",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "InterPodAffinityArgs",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginArgs",
    "PodTopologySpreadArgs",
    "ResourceSpec",
    "ScoringStrategy",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
]

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class PluginArgs(Record):
    """Base of all in-tree arguments."""

    def completed(self, gates: FeatureGates, written: Collection[str]) -> Self:
        """With the defaults filled in that are not constants; `written` names the fields in the file."""
        return self

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        """What is wrong, with field paths below `path`."""
        return iter(())


class DefaultPreemptionArgs(PluginArgs):
    """How many nodes preemption tries: the larger of a share of all nodes and a fixed number."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        percentage_path = child(path, "minCandidateNodesPercentage")
        absolute_path = child(path, "minCandidateNodesAbsolute")
        if not 0 <= percentage <= 100:
            yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
        if absolute < 0:
            yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            text = "cannot be zero at the same time as"
            yield invalid(percentage_path, percentage, f"{text} minCandidateNodesAbsolute")
            yield invalid(absolute_path, absolute, f"{text} minCandidateNodesPercentage")


class InterPodAffinityArgs(PluginArgs):
    """Weight of a running pod's required affinity towards the incoming one."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            yield invalid(child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")


class NodeAffinityArgs(PluginArgs):
    """A node affinity that every pod of the profile gets on top of its own."""

    added_affinity: NodeAffinity | None = None

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        if self.added_affinity is not None:
            yield from affinity_rules.check(self.added_affinity, child(path, "addedAffinity"))


class NodeResourcesFitArgs(PluginArgs):
    """Which extended resources are not looked at, and how the rest is scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)

    def completed(self, gates: FeatureGates, written: Collection[str]) -> Self:
        strategy = self.scoring_strategy
        complete = msgspec.structs.replace(strategy, resources=weighted(strategy.resources))
        return msgspec.structs.replace(self, scoring_strategy=complete)

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        for index, name in enumerate(self.ignored_resources):
            for fault in qualified_name_faults(name):
                yield invalid(child(path, "ignoredResources", index), name, fault)
        for index, group in enumerate(self.ignored_resource_groups):
            where = child(path, "ignoredResourceGroups", index)
            if "/" in group:
                yield invalid(where, group, "resource group name can't contain '/'")
            for fault in qualified_name_faults(group):
                yield invalid(where, group, fault)
        yield from self.scoring_strategy.validate(child(path, "scoringStrategy"))


class NodeResourcesBalancedAllocationArgs(PluginArgs):
    """Resources whose utilization should be alike."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def completed(self, gates: FeatureGates, written: Collection[str]) -> Self:
        return msgspec.structs.replace(self, resources=weighted(self.resources))

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            where = child(path, "resources", index)
            if resource.name in seen:
                yield duplicate(child(where, "name"), resource.name)
            seen.add(resource.name)
            if resource.weight != 1:
                yield invalid(child(where, "weight"), resource.weight, "must be 1")


class PodTopologySpreadArgs(PluginArgs):
    """Spread constraints for pods that bring none."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING

    def completed(self, gates: FeatureGates, written: Collection[str]) -> Self:
        return msgspec.structs.replace(self, defaulting_type=self.defaulting_type or SYSTEM_DEFAULTING)

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
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


class VolumeBindingArgs(PluginArgs):
    """How long a bind waits for volumes, and how free capacity of storage scores."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def completed(self, gates: FeatureGates, written: Collection[str]) -> Self:
        if gates("StorageCapacityScoring") and not self.shape:
            return msgspec.structs.replace(self, shape=DEFAULT_STORAGE_SHAPE)
        return self

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            yield invalid(child(path, "bindTimeoutSeconds"), self.bind_timeout_seconds, detail)
        if gates("StorageCapacityScoring"):
            yield from validate_shape(self.shape or (), child(path, "shape"))
        elif self.shape is not None:
            detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            yield invalid(child(path, "shape"), msgspec.to_builtins(self.shape), detail)


class DynamicResourcesArgs(PluginArgs):
    """Limits in seconds; filter_timeout 0 means none, None means that the gate is off."""

    filter_timeout: Duration | None = 10.0
    binding_timeout: Duration | None = 600.0

    def completed(self, gates: FeatureGates, written: Collection[str]) -> Self:
        return msgspec.structs.replace(
            self,
            filter_timeout=self.filter_timeout if gates("DRASchedulerFilterTimeout") else None,
            binding_timeout=self.binding_timeout if _binding_conditions(gates) else None,
        )

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        where = child(path, "filterTimeout")
        if not gates("DRASchedulerFilterTimeout"):
            if "filterTimeout" in written:
                yield forbidden(where, "DRASchedulingFilterTimeout feature gate is disabled")
        elif self.filter_timeout is not None and self.filter_timeout < 0:
            yield invalid(where, format_duration(self.filter_timeout), "must be zero or positive")
        where = child(path, "bindingTimeout")
        if not _binding_conditions(gates):
            if "bindingTimeout" in written:
                names = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
                yield forbidden(where, f"{names} feature gate is disabled")
        elif self.binding_timeout is not None and self.binding_timeout < 1:
            yield invalid(where, format_duration(self.binding_timeout), "must be at least 1 second")


def _binding_conditions(gates: FeatureGates) -> bool:
    return gates("DRADeviceBindingConditions") and gates("DRAResourceClaimDeviceStatus")


# By plugin name; the kind on the wire is the plugin's name with "Args" behind it.
IN_TREE_ARGS: Mapping[str, type[PluginArgs]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
