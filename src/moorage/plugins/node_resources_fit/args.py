"""Arguments of NodeResourcesFit: ignored resources and the scoring strategy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import msgspec

from moorage.api.meta import Record, qualified_name_faults
from moorage.api.problems import Problem, child, forbidden, invalid, required, unsupported
from moorage.api.resource_weights import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    UtilizationShapePoint,
    validate_resources,
    validate_shape,
    weighted,
)
from moorage.framework.args import ArgsContext, PluginArgs

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)


class RequestedToCapacityRatioParam(Record):
    """The shape of the score as a function of utilization."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Record):
    """How NodeResourcesFit scores. As upstream, `type` has no default once the block is present."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def validate(self, path: str) -> Iterator[Problem]:
        if self.type not in STRATEGIES:
            yield unsupported(child(path, "type"), self.type, STRATEGIES)
        yield from validate_resources(self.resources, child(path, "resources"))
        yield from self._validate_ratio(child(path, "requestedToCapacityRatio"))

    def _validate_ratio(self, path: str) -> Iterator[Problem]:
        ratio = self.requested_to_capacity_ratio
        if self.type == REQUESTED_TO_CAPACITY_RATIO:
            if ratio is None:
                yield required(path, "must be specified when type is RequestedToCapacityRatio")
            else:
                yield from validate_shape(ratio.shape, child(path, "shape"))
        elif ratio is not None:
            yield forbidden(path, "must be nil when type is not RequestedToCapacityRatio")


class NodeResourcesFitArgs(PluginArgs):
    """Which extended resources are ignored, and how the others are scored."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)

    def completed(self, context: ArgsContext) -> Self:
        strategy = self.scoring_strategy
        complete = msgspec.structs.replace(strategy, resources=weighted(strategy.resources))
        return msgspec.structs.replace(self, scoring_strategy=complete)

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
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
