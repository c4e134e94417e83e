"""Read usage from metrics.k8s.io, which a metrics server provides through the API server."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.api.requests import resource_value
from moorage.api.resources import Unstructured, custom
from moorage.api.times import DurationError, parse_duration, parse_time
from moorage.contrib.metrics.sample import CPU, MEMORY, Sample, capacity
from moorage.framework.access import Access
from moorage.framework.handle import Handle
from moorage.framework.nodes import FloatArray

NODE_METRICS = custom("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)
NEEDS: tuple[Access, ...] = (Access(NODE_METRICS, ("list",)),)
"""What a plugin with this source declares. The kind cannot be watched, so there is no informer for it."""


class MetricsServer:
    """Implements `Source`."""

    async def fetch(self, handle: Handle, measures: Sequence[str]) -> Sample:
        items: list[Unstructured] = list((await handle.client.list(NODE_METRICS)).items)
        nodes, names = handle.nodes, [item.name for item in items]
        position = {name: index for index, name in enumerate(nodes.names)}
        rows = np.array([position.get(name, -1) for name in names], dtype=np.int64)
        values = {}
        for resource in (CPU, MEMORY):
            size = np.append(capacity(nodes, resource), np.nan)[rows]
            # A node that reports no capacity has no percentage.
            values[resource] = 100 * _used(items, resource) / np.where(size > 0, size, np.nan)
        taken = [parse_time(item.get("timestamp")) for item in items]
        return Sample(names, values, np.array(taken, dtype=np.float64), max(map(_window, items), default=0.0))


def _used(items: list[Unstructured], resource: str) -> FloatArray:
    amounts = [item.get("usage", resource) for item in items]
    return np.array([np.nan if a is None else resource_value(resource, a) for a in amounts], dtype=np.float64)


def _window(item: Unstructured) -> float:
    try:
        return parse_duration(str(item.get("window", default="0s")))
    except DurationError:
        return 0.0
