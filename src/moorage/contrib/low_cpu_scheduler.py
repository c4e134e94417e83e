"""LowCpuScheduler: reject nodes that use too much cpu or memory, and prefer those that use the least.

Usage is measured (`contrib.metrics`) and always slightly out of date. Pods that were assigned to a node after the
measurement, by any scheduler, are therefore added with their requests: in a burst each pod sees the previous ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid, unsupported
from moorage.api.quantity import unit_of
from moorage.contrib.metrics import CPU, MEMORY, MetricProvider, NodeUsage, Window
from moorage.contrib.metrics.metrics_server import NEEDS
from moorage.contrib.metrics.usage import Values
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import (
    ASSIGNED_POD_DELETE,
    NODE,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
    Registration,
)
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin, WholeTableScorePlugin
from moorage.framework.nodes import FloatArray, IntArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, ReusablePlugin
from moorage.framework.status import Status

USAGE = EventResource("NodeUsage")
ALLOW, REFUSE, USE_REQUESTS = "Allow", "Refuse", "UseRequests"
MISSING = (ALLOW, REFUSE, USE_REQUESTS)
LEVELS = 5
"""Of usage that reasons distinguish: above 80 (the threshold), 85, 90, 95 and 100 %. A figure of its own for
each node would make events that are too long to read."""
BITS = 7
"""Of a judgement that are the node's score; the others are the number of the reason to refuse it, or 0."""
REFUSED = 1 << BITS

Judgements = npt.NDArray[np.int16]


class LowCpuSchedulerArgs(PluginArgs):
    """Thresholds, weights, and the measure of usage. Percentages are of a node's allocatable resources, as in `kubectl
    top node`."""

    cpu_threshold_percent: float = 80.0
    memory_threshold_percent: float = 90.0
    cpu_weight: float = 1.0
    memory_weight: float = 1.0
    window: Window = Window()
    metrics_max_age_seconds: float = 180.0
    """Older values count as missing."""
    when_missing: str = USE_REQUESTS
    """What a node without values is: not refused and of score 0 (Allow), refused, or judged by what its pods
    request."""
    metric_provider: MetricProvider = MetricProvider()

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        thresholds = {"cpu": self.cpu_threshold_percent, "memory": self.memory_threshold_percent}
        for name, percent in thresholds.items():
            if not 0 < percent <= 100:
                where = child(path, f"{name}ThresholdPercent")
                yield invalid(where, percent, "must be above 0 and at most 100")
        for name, weight in {"cpu": self.cpu_weight, "memory": self.memory_weight}.items():
            if not 0 <= weight <= 100:
                yield invalid(child(path, f"{name}Weight"), weight, "must be from 0 to 100")
        if self.cpu_weight + self.memory_weight == 0:
            yield invalid(child(path, "cpuWeight"), self.cpu_weight, "one of the weights must be above 0")
        if self.metrics_max_age_seconds <= 0:
            where = child(path, "metricsMaxAgeSeconds")
            yield invalid(where, self.metrics_max_age_seconds, "must be above 0")
        if self.when_missing not in MISSING:
            yield unsupported(child(path, "whenMissing"), self.when_missing, MISSING)
        yield from self.window.validate(child(path, "window"))
        yield from self.metric_provider.validate(child(path, "metricProvider"))


class LowCpuScheduler(WholeTableFilterPlugin, WholeTableScorePlugin, ReusablePlugin, ExplainingPlugin):
    name = "LowCpuScheduler"
    Args = LowCpuSchedulerArgs
    needs = NEEDS

    def __init__(self, args: LowCpuSchedulerArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        keep = max(args.window.seconds, args.metrics_max_age_seconds)
        self.usage = NodeUsage.of(handle, args.metric_provider, (CPU, MEMORY), keep)
        thresholds = {CPU: args.cpu_threshold_percent, MEMORY: args.memory_threshold_percent}
        self._levels = {name: np.linspace(lowest, 100, LEVELS).tolist() for name, lowest in thresholds.items()}
        weight = args.cpu_weight + args.memory_weight
        self._shares = {CPU: args.cpu_weight / weight, MEMORY: args.memory_weight / weight}
        self._reasons = ["", *(text for name in thresholds for text in reasons(name, self._levels[name]))]
        self._unknown = LEVELS + 1 if args.when_missing == REFUSE else 0
        """The number of the reason for unknown usage."""
        self._made: Sequence[Load] = ()
        self._made_for = -1

    async def run(self) -> None:
        await self.usage.run(self.handle, self._tick)

    @contextmanager
    def _tick(self) -> Iterator[None]:
        """Requeue rejected pods when a node is no longer rejected."""
        before = self._refused()
        yield
        self.handle.wake(USAGE, before, self._refused())

    def _refused(self) -> frozenset[str]:
        nodes = self.handle.nodes
        return frozenset(nodes.where(self._judgements(nodes) >= REFUSED).names)

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        judged = self._judgements(nodes)
        if judged.max(initial=0) < REFUSED:
            return None
        refused = judged >= REFUSED
        first, *more = sorted({*(judged[refused.nonzero()[0]] >> BITS).tolist()})
        if not more:
            return nodes.refuse(refused, self._reasons[first])
        numbers, answer = judged >> BITS, nodes.refusals()
        for number in (first, *more):
            answer.add(numbers == number, self._reasons[number])
        return answer

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        number = self._judgement(node) >> BITS
        return Status.unschedulable(self._reasons[number]) if number else None

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> None:
        np.bitwise_and(self._judgements(nodes), REFUSED - 1, out=out)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return self._judgement(node) & REFUSED - 1

    def _judgements(self, nodes: Nodes) -> Judgements:
        """Return the verdicts. The node table keeps them up to date: after a pod is placed, one node is computed
        again."""
        column: Judgements = nodes.row_column((self, self.usage.version.value), self._judge, self._judgement)
        return column

    def _judge(self, nodes: Nodes) -> Judgements:
        used, number = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=np.int16)
        for load in self._loads():
            percent = load.percentages(nodes)
            used += load.share * percent
            level = np.searchsorted(load.levels, percent)
            level[np.isnan(percent)] = self._unknown
            number = np.where(level > 0, level + load.first, number)
        points = np.nan_to_num(np.maximum(100 - used, 0)).astype(np.int16)
        return (number * REFUSED + points).astype(np.int16)

    def _judgement(self, node: NodeView) -> int:
        """Return `_judge` for one node, without arrays of one entry."""
        used, number = 0.0, 0
        for load in self._loads():
            percent = load.percentage(node)
            used += load.share * percent
            level = bisect_left(load.levels, percent) if percent == percent else self._unknown
            number = level + load.first if level else number
        return number * REFUSED + (int(max(100 - used, 0)) if used == used else 0)

    def _loads(self) -> Sequence[Load]:
        """Return the loads of this tick; cpu comes last, so that its reason wins."""
        if self._made_for != self.usage.version.value:
            self._made_for = self.usage.version.value
            self._made = [self._load(MEMORY, LEVELS + 1), self._load(CPU, 0)]
        return self._made

    def _load(self, resource: str, first: int) -> Load:
        usage, args = self.usage, self.args
        used = usage.used(resource, args.window).array
        contained = usage.measured_requests(resource, args.window).array
        fresh = usage.ages().array <= args.metrics_max_age_seconds
        known = fresh & ~np.isnan(used)
        missing = 0.0 if args.when_missing == USE_REQUESTS else np.nan
        return Load(
            resource,
            usage.values(np.where(known, used, missing), missing),
            usage.values(np.where(known, contained, 0.0), 0.0),
            self._shares[resource],
            self._levels[resource],
            first,
        )

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        for load in reversed(self._loads()):
            resource, percent, most = load.resource, load.percentage(node), load.levels[0]
            if percent > most:
                hundredth = max(node.allocatable.get(resource, 0), 1) / 100
                # Rounded away from 0: a node is refused as well where it is above by less than one unit.
                asked, missing = int(most * hundredth), max(ceil((percent - most) * hundredth), 1)
                subject, unit = f"{resource} usage above {most:g}%", unit_of(resource)
                yield Detail(subject, asked=asked, there=asked + missing, missing=missing, unit=unit)
            elif percent != percent and self._unknown:
                yield Detail(f"{resource} usage", there="not known")

    def events_to_register(self) -> Sequence[Registration]:
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        usage = ClusterEvent(USAGE, ActionType.UPDATE)
        return [Registration(node), Registration(ASSIGNED_POD_DELETE), Registration(usage, some_node_is_back)]

    def sign(self, pod: Pod) -> Hashable:
        return ()

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW, self.usage.version)


@dataclass(frozen=True, slots=True)
class Load:
    """One resource at one tick: the usage of nodes, including pods that were assigned since."""

    resource: str
    used: Values
    contained: Values
    """The requests of the pods that `used` includes."""
    share: float
    """The weight in the score."""
    levels: list[float]
    """Percentages, rising; the first is the threshold."""
    first: int
    """The number before that of the first reason."""

    def percentages(self, nodes: Nodes) -> FloatArray:
        """Return usage in percent of each node's allocatable amount; NaN if unknown."""
        later = nodes.floats("nonzero_requested", self.resource) - self.contained.of(nodes)
        size = np.maximum(nodes.floats("allocatable", self.resource), 1)
        found: FloatArray = (self.used.of(nodes) + np.maximum(later, 0)) * 100 / size
        return found

    def percentage(self, node: NodeView) -> float:
        """Return `percentages` for one node."""
        name, resource = node.name, self.resource
        later = node.nonzero_requested.get(resource, 0) - self.contained.at(name)
        used = self.used.at(name) + (later if later > 0 else 0)
        return used * 100 / max(node.allocatable.get(resource, 0), 1)


def reasons(resource: str, levels: Sequence[float]) -> Iterator[str]:
    """Return the messages for usage above each level, and for unknown usage."""
    for level in levels:
        yield f"{resource} usage too high: above {level:g}%"
    yield f"{resource} usage is not known"


def some_node_is_back(pod: Pod, old: frozenset[str], new: frozenset[str]) -> QueueingHint:
    """Queue if a node is no longer rejected; `old` and `new` are the rejected nodes."""
    return QueueingHint.QUEUE if old - new else QueueingHint.SKIP
