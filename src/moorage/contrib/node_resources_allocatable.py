"""NodeResourcesAllocatable: prefer small or large nodes by their allocatable resources. Follows
pkg/noderesources/allocatable.go of scheduler-plugins (KEP-48).

Running pods do not count; NodeResourcesFit scores by free resources."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Any, Self

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid, unsupported
from moorage.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar_resource
from moorage.api.resource_weights import ResourceSpec
from moorage.contrib.normalizing import min_max
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import IntArray, Nodes
from moorage.framework.optional import ReusablePlugin, VectorScorePlugin

LEAST, MOST = "Least", "Most"
MODES = (LEAST, MOST)
DEFAULT_RESOURCES = (ResourceSpec(name=CPU, weight=1 << 20), ResourceSpec(name=MEMORY, weight=1))
"""A milli-cpu weighs as much as a MiB."""


class NodeResourcesAllocatableArgs(PluginArgs):
    """The resources that count, and whether more of them is better."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    mode: str = LEAST

    def completed(self, context: ArgsContext) -> Self:
        return msgspec.structs.replace(self, resources=self.resources or DEFAULT_RESOURCES, mode=self.mode or LEAST)

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        for index, resource in enumerate(self.resources):
            if resource.weight <= 0:
                detail = f"resource weight of {resource.name} should be a positive value"
                yield invalid(child(path, "resources", index, "weight"), resource.weight, detail)
        if self.mode not in MODES:
            yield unsupported(child(path, "mode"), self.mode, MODES)


class NodeResourcesAllocatable(VectorScorePlugin, ReusablePlugin):
    name = "NodeResourcesAllocatable"
    Args = NodeResourcesAllocatableArgs
    few_signs = True

    def __init__(self, args: NodeResourcesAllocatableArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._weights = {resource.name: resource.weight for resource in args.resources}
        self._key = (self.name, args.mode, *self._weights.items())

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        return nodes.node_column(self._key, self._sizes)

    def _sizes(self, nodes: Nodes) -> IntArray:
        sizes = np.array([weighted_size(node.allocatable, self._weights) for node in nodes], dtype=np.int64)
        return -sizes if self.args.mode == LEAST else sizes

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        return min_max(scores)

    def sign(self, pod: Pod) -> Hashable:
        return ()

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE,)


def weighted_size(allocatable: Mapping[str, int], weights: Mapping[str, int]) -> int:
    """Return the weighted mean, rounded down, in Python's integers: weights times bytes exceed 64 bits."""
    total = sum(allocatable.get(name, 0) * weight for name, weight in weights.items() if _counts(name))
    return total // sum(weights.values())


def _counts(name: str) -> bool:
    """Return whether a resource counts. As in the Go plugin, the number of pods, for example, does not."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)
