"""EnergyAware: reject nodes that are too hot, and prefer nodes where a pod adds the least power.

The power model of a node is linear: idle watts without load, maximum watts with all cpus in use; labels or annotations
state both. A pod adds its share of the difference, and the idle watts of a node that it wakes up. Temperature and power
are measured (`contrib.metrics`); a label or annotation may also state the temperature."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil, floor
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid, required
from moorage.api.requests import CPU, pod_requests
from moorage.contrib.metrics import MetricProvider, NodeUsage
from moorage.contrib.metrics.metrics_server import NEEDS
from moorage.contrib.metrics.sample import capacity
from moorage.contrib.node_metadata import number
from moorage.contrib.normalizing import min_max
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, ActionType, ClusterEvent, EventResource, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.nodes import BoolArray, FloatArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, ReusablePlugin, VectorFilterPlugin, VectorScorePlugin
from moorage.framework.status import MAX_NODE_SCORE, Code

TEMPERATURE, POWER = "temperature", "power"
"""The measures, in degrees Celsius and watts; Prometheus gives them by `queries` of these names."""
HEAT = EventResource("NodeTemperature")
UNKNOWN = -1
"""The raw score of a node without a model; others are milliwatts."""


class EnergyAwareArgs(PluginArgs):
    """The temperature limit, and the labels or annotations that describe a node."""

    max_temperature_celsius: float = 75.0
    temperature_key: str = "moorage.dev/temperature-celsius"
    idle_watts_key: str = "moorage.dev/idle-watts"
    max_watts_key: str = "moorage.dev/max-watts"
    metrics_max_age_seconds: float = 180.0
    """Older values count as missing."""
    metric_provider: MetricProvider = MetricProvider()

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        if not -50 <= self.max_temperature_celsius <= 200:
            where = child(path, "maxTemperatureCelsius")
            yield invalid(where, self.max_temperature_celsius, "must be from -50 to 200")
        for field, key in (("idleWattsKey", self.idle_watts_key), ("maxWattsKey", self.max_watts_key)):
            if not key:
                yield required(child(path, field), "the name of a label or annotation of the nodes")
        if self.metrics_max_age_seconds <= 0:
            where = child(path, "metricsMaxAgeSeconds")
            yield invalid(where, self.metrics_max_age_seconds, "must be above 0")
        yield from self.metric_provider.validate(child(path, "metricProvider"))


class EnergyAware(VectorFilterPlugin, VectorScorePlugin, ReusablePlugin, ExplainingPlugin):
    name = "EnergyAware"
    Args = EnergyAwareArgs
    needs = NEEDS

    def __init__(self, args: EnergyAwareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        keep = args.metrics_max_age_seconds
        self.usage = NodeUsage.of(handle, args.metric_provider, (TEMPERATURE, POWER), keep)
        self._reason = f"temperature too high: above {args.max_temperature_celsius:g} °C"

    async def run(self) -> None:
        if self.args.metric_provider.queries:  # no other source has what is needed here
            await self.usage.run(self.handle, self._tick)

    @contextmanager
    def _tick(self) -> Iterator[None]:
        """Requeue rejected pods when a node is no longer rejected."""
        before = self._hot_nodes()
        yield
        self.handle.wake(HEAT, before, self._hot_nodes())

    def _hot_nodes(self) -> frozenset[str]:
        nodes = self.handle.nodes
        return frozenset(nodes.where(self._is_hot(nodes)).names)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        # Preempting pods would not help: a machine cools down slowly.
        return nodes.refuse(self._is_hot(nodes), self._reason, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def _is_hot(self, nodes: Nodes) -> BoolArray:
        hot: BoolArray = self._temperature(nodes) > self.args.max_temperature_celsius
        return hot

    def _temperature(self, nodes: Nodes) -> FloatArray:
        """Return degrees Celsius; NaN if unknown."""
        measured, written = self._fresh(nodes, TEMPERATURE), self._written(nodes, self.args.temperature_key)
        return np.where(np.isnan(measured), written, measured)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        """Return the milliwatts that the pod would add."""
        idle, top = (self._written(nodes, key) for key in (self.args.idle_watts_key, self.args.max_watts_key))
        share = pod_requests(pod).get(CPU, 0) / np.maximum(capacity(nodes, CPU), 1)
        watts = np.maximum(top - idle, 0) * share + self._to_wake(nodes, idle)
        return np.where(np.isnan(watts), UNKNOWN, watts * 1000)

    def _to_wake(self, nodes: Nodes, idle: FloatArray) -> FloatArray:
        """Return the watts that a sleeping node needs to become idle. If power is not measured, a node without pods
        counts as asleep."""
        power, empty = self._fresh(nodes, POWER), nodes.requested("pods") == 0
        return np.where(np.isnan(power), np.where(empty, idle, 0), (idle - power).clip(0))

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        """Give the least power the highest score; a node without a model scores 0."""
        known, normalized = scores != UNKNOWN, np.zeros_like(scores)
        normalized[known] = MAX_NODE_SCORE - min_max(scores[known])
        return normalized

    def _fresh(self, nodes: Nodes, measure: str) -> FloatArray:
        fresh = self.usage.ages().of(nodes) <= self.args.metrics_max_age_seconds
        return np.where(fresh, self.usage.percent(measure).of(nodes), np.nan)

    def _written(self, nodes: Nodes, key: str) -> FloatArray:
        """Return the number in a label or annotation; NaN if there is none."""

        def compute(some: Nodes) -> FloatArray:
            return np.array([written(node, key) for node in some], dtype=np.float64)

        column: FloatArray = nodes.node_column((self.name, key), compute)
        return column

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        above = float(self._temperature(node.alone())[0]) - self.args.max_temperature_celsius
        if above > 0:
            asked, missing = floor(self.args.max_temperature_celsius), ceil(above)
            yield Detail("temperature", asked=asked, there=asked + missing, missing=missing, unit="°C")

    def events_to_register(self) -> Sequence[Registration]:
        changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ANNOTATION
        heat = ClusterEvent(HEAT, ActionType.UPDATE)
        return [Registration(ClusterEvent(NODE, changes)), Registration(heat, some_node_is_cool)]

    def sign(self, pod: Pod) -> Hashable:
        return pod_requests(pod).get(CPU, 0)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW, self.usage.version)


def written(node: NodeView, key: str) -> float:
    text = node.labels.get(key) or node.node.annotations.get(key) or ""
    found = number(text)
    return np.nan if found is None else found


def some_node_is_cool(pod: Pod, old: frozenset[str], new: frozenset[str]) -> QueueingHint:
    """Queue if a node cooled down; `old` and `new` are the nodes that were too hot."""
    return QueueingHint.QUEUE if old - new else QueueingHint.SKIP
