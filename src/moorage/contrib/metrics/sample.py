"""One response of a source, and the interface of all sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from moorage.api.requests import CPU, MEMORY, resource_value
from moorage.framework.handle import Handle
from moorage.framework.nodes import FloatArray, Nodes

__all__ = ["CPU", "MEMORY", "Sample", "SampleSource", "capacity", "deviation"]


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of many nodes; entry `i` of every array belongs to `names[i]`."""

    names: Sequence[str]
    values: Mapping[str, FloatArray]
    """Measure → percent of the node's capacity; NaN if unknown."""
    taken: FloatArray
    """When the values were measured, in Unix seconds."""
    window: float = 0.0
    """The seconds before `taken` that the values are an average over."""


class SampleSource(Protocol):
    """A source of samples."""

    async def fetch(self, handle: Handle, measures: Sequence[str]) -> Sample:
        """Return the current values of the measures that the source knows. Raises the errors of the connection, or
        ValueError for an invalid response."""
        ...


def deviation(measure: str) -> str:
    """Return the measure that holds the standard deviation of another one."""
    return f"{measure} deviation"


def capacity(nodes: Nodes, resource: str) -> FloatArray:
    """Return the capacity of the nodes, including the reserved part; cpu in milli-units."""

    def compute(some: Nodes) -> FloatArray:
        found = [node.node.status.capacity.get(resource, 0) for node in some]
        return np.array([resource_value(resource, amount) for amount in found], dtype=np.float64)

    column: FloatArray = nodes.node_column(("moorage.contrib.capacity", resource), compute)
    return column
