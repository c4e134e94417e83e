"""Arguments of VolumeBinding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import msgspec

from mooring.api.meta import Int64
from mooring.api.problems import Problem, child, invalid
from mooring.framework.args import ArgsContext, PluginArgs, UtilizationShapePoint, validate_shape

DEFAULT_STORAGE_SHAPE = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)
"""Prefer little used storage: the shape of the gate StorageCapacityScoring."""


class VolumeBindingArgs(PluginArgs):
    """How long a bind waits for volumes, and how free capacity of storage scores."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def completed(self, context: ArgsContext) -> Self:
        if context.feature_gate("StorageCapacityScoring") and not self.shape:
            return msgspec.structs.replace(self, shape=DEFAULT_STORAGE_SHAPE)
        return self

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            yield invalid(child(path, "bindTimeoutSeconds"), self.bind_timeout_seconds, detail)
        if context.feature_gate("StorageCapacityScoring"):
            yield from validate_shape(self.shape or (), child(path, "shape"))
        elif self.shape is not None:
            detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            yield invalid(child(path, "shape"), msgspec.to_builtins(self.shape), detail)
