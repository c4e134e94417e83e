"""Parts of plugin arguments about scoring resources: weights, shapes and the strategy of NodeResourcesFit."""

from collections.abc import Iterator

from mooring.api.record import Record
from mooring.config.problems import Problem, child, forbidden, invalid, required, unsupported
from mooring.config.types import Int32, Int64

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)


class ResourceSpec(Record):
    """A resource and its share in a score; weight 0 counts as 1."""

    name: str = ""
    weight: Int64 = 1


class UtilizationShapePoint(Record):
    """At `utilization` percent the score is `score`, 0-10; between points it is linear."""

    utilization: Int32 = 0
    score: Int32 = 0


DEFAULT_RESOURCES = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))
# Prefer little used storage: the shape of the gate StorageCapacityScoring.
DEFAULT_STORAGE_SHAPE = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)


def weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """The resources to score, with the defaults for an empty list and for weights of zero."""
    chosen = resources or DEFAULT_RESOURCES
    return tuple(ResourceSpec(name=each.name, weight=each.weight or 1) for each in chosen)


def validate_shape(shape: tuple[UtilizationShapePoint, ...], path: str) -> Iterator[Problem]:
    if not shape:
        yield required(path, "at least one point must be specified")
        return
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            where = child(path, index, "utilization")
            yield invalid(where, shape[index].utilization, "values must be sorted in increasing order")
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid(child(path, index, "utilization"), point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            yield invalid(child(path, index, "score"), point.score, "not in valid range [0, 10]")


def validate_resources(resources: tuple[ResourceSpec, ...], path: str) -> Iterator[Problem]:
    for index, resource in enumerate(resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(child(path, index, "weight"), resource.weight, detail)


class RequestedToCapacityRatioParam(Record):
    """The shape of the score over utilization."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Record):
    """How NodeResourcesFit scores. Upstream gives no default to `type` once the block is written."""

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
