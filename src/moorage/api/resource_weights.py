"""Arguments that several plugins share: weights of resources, and the shape of a score by utilization.

Follows types_pluginargs.go of k8s.io/kube-scheduler/config/v1 and its validation."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.meta import Int32, Int64, Record
from moorage.api.problems import Problem, child, invalid, required


class ResourceSpec(Record):
    """A resource and its share in a score; weight 0 counts as 1."""

    name: str = ""
    weight: Int64 = 1


class UtilizationShapePoint(Record):
    """At `utilization` percent the score is `score`, 0-10; between points it is linear."""

    utilization: Int32 = 0
    score: Int32 = 0


DEFAULT_RESOURCES = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


def weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """Return the resources to score, with the defaults for an empty list and for weights of zero."""
    chosen = resources or DEFAULT_RESOURCES
    return tuple(ResourceSpec(name=each.name, weight=each.weight or 1) for each in chosen)


def validate_resources(resources: tuple[ResourceSpec, ...], path: str) -> Iterator[Problem]:
    """Yield a problem for every weight outside 1-100."""
    for index, resource in enumerate(resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(child(path, index, "weight"), resource.weight, detail)


def validate_shape(shape: tuple[UtilizationShapePoint, ...], path: str) -> Iterator[Problem]:
    """Check that there is a point, that utilization rises within 0-100, and that scores are 0-10."""
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
