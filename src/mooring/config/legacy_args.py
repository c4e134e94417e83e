"""Arguments of plugins that only v1beta1 knew, read so that their meaning can be carried over."""

from collections.abc import Collection, Iterator, Mapping
from typing import Self

from msgspec.structs import replace

from mooring.config.gates import DEFAULT_GATES, FeatureGates
from mooring.config.names import qualified_name_faults
from mooring.config.plugin_args import PluginArgs
from mooring.config.problems import Problem, child, invalid
from mooring.config.scoring_args import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    UtilizationShapePoint,
    validate_resources,
    validate_shape,
    weighted,
)


class NodeLabelArgs(PluginArgs):
    """Label keys that a node must or must not have, or had better have or not have."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        for present, absent, name in (
            (self.present_labels, self.absent_labels, "presentLabels"),
            (self.present_labels_preference, self.absent_labels_preference, "presentLabelsPreference"),
        ):
            for index, label in enumerate(present):
                where = child(path, name, index)
                for fault in qualified_name_faults(label):
                    yield invalid(where, label, fault)
                if label in absent:
                    yield invalid(where, label, "cannot be both present and absent")


class ServiceAffinityArgs(PluginArgs):
    """Labels on which pods of one service should agree; read only to be reported."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


class AllocationArgs(PluginArgs):
    """Resources of NodeResourcesLeastAllocated and NodeResourcesMostAllocated."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def completed(self, gates: FeatureGates, written: Collection[str]) -> Self:
        return replace(self, resources=weighted(self.resources))

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        yield from validate_resources(self.resources, child(path, "resources"))


class RatioArgs(AllocationArgs):
    """Resources and shape of RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = ()

    def validate(
        self, path: str, gates: FeatureGates = DEFAULT_GATES, written: Collection[str] = ()
    ) -> Iterator[Problem]:
        yield from super().validate(path, gates, written)
        yield from validate_shape(self.shape, child(path, "shape"))


V1BETA1_ARGS: Mapping[str, type[PluginArgs]] = {
    "NodeLabel": NodeLabelArgs,
    "NodeResourcesLeastAllocated": AllocationArgs,
    "NodeResourcesMostAllocated": AllocationArgs,
    "RequestedToCapacityRatio": RatioArgs,
    "ServiceAffinity": ServiceAffinityArgs,
}
