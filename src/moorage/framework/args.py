"""Arguments of plugins: the base class, and the parts that arguments of several plugins have in common.

A plugin's `Args` is what its `pluginConfig` is decoded into. Decoding is strict and collects every mistake:
unknown fields, wrong types, and what `validate` finds.

    class NodeRackArgs(PluginArgs):
        label: str = "topology.example.com/rack"
        max_pods: Int32 = 0

        def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
            if self.max_pods < 0:
                yield invalid(child(path, "maxPods"), self.max_pods, "must be zero or positive")

    class NodeRack(FilterPlugin):
        name = "NodeRack"
        Args = NodeRackArgs

Attributes are snake_case, the fields of a file camelCase. Where the file is read is left to `moorage.config`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, Self

from moorage.api.meta import Int32, Int64, Record
from moorage.api.problems import Problem, child, invalid, required


class ArgsContext(NamedTuple):
    """What arguments may depend on beside their own fields."""

    feature_gate: Callable[[str], bool]
    """Whether a feature gate is on; raises KeyError for one that does not exist."""
    written: Collection[str] = ()
    """The fields that the file has, by their names there."""


class PluginArgs(Record):
    """Base of a plugin's arguments: an immutable record whose defaults are those of its fields."""

    def completed(self, context: ArgsContext) -> Self:
        """With the defaults filled in that are not constants; called before `validate`."""
        return self

    def validate(self, path: str, context: ArgsContext) -> Iterable[Problem]:
        """Everything that is wrong, each with its field path below `path`."""
        return ()


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
    """The resources to score, with the defaults for an empty list and for weights of zero."""
    chosen = resources or DEFAULT_RESOURCES
    return tuple(ResourceSpec(name=each.name, weight=each.weight or 1) for each in chosen)


def validate_resources(resources: tuple[ResourceSpec, ...], path: str) -> Iterator[Problem]:
    """Weights are 1 to 100."""
    for index, resource in enumerate(resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(child(path, index, "weight"), resource.weight, detail)


def validate_shape(shape: tuple[UtilizationShapePoint, ...], path: str) -> Iterator[Problem]:
    """At least one point, utilization rising within 0-100, scores 0-10."""
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
