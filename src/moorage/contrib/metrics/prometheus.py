"""Read usage from Prometheus with one instant query per measure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from moorage.contrib.metrics.provider import MetricProvider, get_json
from moorage.contrib.metrics.sample import CPU, MEMORY, Sample
from moorage.framework.handle import Handle

QUERIES = {
    CPU: '100 * (1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[2m])))',
    MEMORY: "100 * (1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)",
}
"""Of node_exporter, in percent; `queries` of the provider come first."""
WINDOW = 120.0
"""Seconds that the query for cpu is an average over."""


class Prometheus:
    """Implements `Source`."""

    def __init__(self, provider: MetricProvider) -> None:
        self._provider = provider

    async def fetch(self, handle: Handle, measures: Sequence[str]) -> Sample:
        found: dict[str, dict[str, tuple[float, float]]] = {}
        queries = {**QUERIES, **self._provider.queries}
        for measure in measures:
            if not (query := queries.get(measure)):
                continue
            body = await get_json(self._provider, "/api/v1/query", {"query": query})
            by_node = self._by_node(body, node_names(handle), f"the query for {measure}")
            for name, value in by_node.items():
                found.setdefault(name, {})[measure] = value
        return joined(found)

    def _by_node(self, body: Any, known: Mapping[str, str], what: str) -> dict[str, tuple[float, float]]:
        """Return time and value by node. A response without any node raises, because a wrong query or label would
        otherwise go unnoticed."""
        found = {}
        for labels, value in series(body, what):
            name = known.get(host(labels.get(self._provider.node_label, "")))
            if name is not None:
                found[name] = value
        if not found:
            raise ValueError(
                f"{what} gave no series whose label {self._provider.node_label!r} names a node: "
                "check `queries` and `nodeLabel`"
            )
        return found


def node_names(handle: Handle) -> dict[str, str]:
    """Map the names and addresses of the nodes to their names."""
    found = {a.address: node.name for node in handle.nodes for a in node.node.status.addresses}
    return {**found, **{name: name for name in handle.nodes.names}}


def host(text: str) -> str:
    """Return the host without the port: `10.0.0.1:9100`, `[fd00::1]:9100`, `node-1:9100`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def series(body: Any, what: str) -> Iterator[tuple[Mapping[str, str], tuple[float, float]]]:
    """Yield the labels, time and value of an instant vector, without NaN and infinities."""
    if not isinstance(body, dict) or body.get("status") != "success":
        problem = body.get("error", body) if isinstance(body, dict) else body
        raise ValueError(f"{what} failed: {str(problem)[:200]}")
    data = body["data"]
    if data["resultType"] != "vector":
        raise ValueError(f"{what} must give an instant vector, not a {data['resultType']}")
    for entry in data["result"]:
        moment, value = float(entry["value"][0]), float(entry["value"][1])
        if math.isfinite(value):
            yield entry["metric"], (moment, value)


def joined(found: Mapping[str, Mapping[str, tuple[float, float]]]) -> Sample:
    """Join all measures into one sample; a node is as old as its oldest value."""
    measures = {measure for values in found.values() for measure in values}
    unknown = (math.inf, math.nan)
    values = {
        measure: np.array([by.get(measure, unknown)[1] for by in found.values()], dtype=np.float64)
        for measure in measures
    }
    taken = [min(moment for moment, _ in by.values()) for by in found.values()]
    return Sample(list(found), values, np.array(taken, dtype=np.float64), WINDOW)
