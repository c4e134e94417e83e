"""One answer of a source, and what all sources have in common."""

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
    """Values of many nodes; entry `i` of every array belongs to `names[i]`."""

    names: Sequence[str]
    values: Mapping[str, FloatArray]
    """Measure → percent of the node's capacity; NaN where it is not known."""
    taken: FloatArray
    """When the values were measured, in Unix seconds."""
    window: float = 0.0
    """The seconds before `taken` that the values are an average over."""


class SampleSource(Protocol):
    """Where samples come from."""

    async def fetch(self, handle: Handle, measures: Sequence[str]) -> Sample:
        """The present values of these measures, as far as the source knows them. Raises what the connection
        raises, or a ValueError for an answer that makes no sense."""
        ...


def deviation(measure: str) -> str:
    """The measure that is the standard deviation of another one, where a source knows it."""
    return f"{measure} deviation"


def capacity(nodes: Nodes, resource: str) -> FloatArray:
    """What the machines have, the reserved part included; cpu in milli-units."""

    def compute(some: Nodes) -> FloatArray:
        found = [node.node.status.capacity.get(resource, 0) for node in some]
        return np.array([resource_value(resource, amount) for amount in found], dtype=np.float64)

    column: FloatArray = nodes.node_column(("moorage.contrib.capacity", resource), compute)
    return column
