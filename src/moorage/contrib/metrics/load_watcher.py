"""Read usage from a load-watcher, the service that the Trimaran plugins were written for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from moorage.contrib.metrics.provider import MetricProvider, get_json
from moorage.contrib.metrics.sample import CPU, MEMORY, Sample, deviation
from moorage.framework.handle import Handle

AVERAGE, LATEST, DEVIATION = "AVG", "Latest", "STD"
_TYPES = {CPU: "CPU", MEMORY: "Memory"}


class Metric(msgspec.Struct):
    """One value of one node, in percent of its capacity."""

    type: str = ""
    operator: str = ""
    value: float = 0.0


class NodeMetrics(msgspec.Struct):
    """The values of one node."""

    metrics: list[Metric] = []


class Data(msgspec.Struct, rename="pascal"):
    """The values of all nodes."""

    node_metrics_map: dict[str, NodeMetrics] = {}


class Span(msgspec.Struct):
    """When the values were measured, in Unix seconds."""

    start: float = 0.0
    end: float = 0.0


class WatcherAnswer(msgspec.Struct):
    """The response to `GET /watcher`."""

    window: Span = msgspec.field(default_factory=Span)
    data: Data = msgspec.field(default_factory=Data)


class LoadWatcher:
    """Implements `Source`."""

    def __init__(self, provider: MetricProvider) -> None:
        self._provider = provider

    async def fetch(self, handle: Handle, measures: Sequence[str]) -> Sample:
        return read(await get_json(self._provider, "/watcher"))


def read(body: Any) -> Sample:
    """Return the values of a response."""
    answer = msgspec.convert(body, WatcherAnswer, strict=False)
    nodes = answer.data.node_metrics_map
    values = {}
    for measure, kind in _TYPES.items():
        own = [[metric for metric in node.metrics if metric.type == kind] for node in nodes.values()]
        values[measure] = np.array([usage(metrics) for metrics in own], dtype=np.float64)
        values[deviation(measure)] = np.array([spread(metrics) for metrics in own], dtype=np.float64)
    taken = np.full(len(nodes), answer.window.end)
    return Sample(list(nodes), values, taken, max(answer.window.end - answer.window.start, 0.0))


def usage(metrics: Iterable[Metric]) -> float:
    """Return the average, or else the latest value; NaN if only a deviation is known. Old load-watchers do not name the
    operator of an average."""
    found = {metric.operator: metric.value for metric in metrics}
    return next((found[name] for name in (AVERAGE, LATEST, "") if name in found), np.nan)


def spread(metrics: Iterable[Metric]) -> float:
    """Return the standard deviation; 0 if unknown."""
    return next((metric.value for metric in metrics if metric.operator == DEVIATION), 0.0)
