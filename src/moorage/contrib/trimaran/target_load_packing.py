"""TargetLoadPacking: fill nodes up to a target of measured cpu usage, and prefer emptier nodes above it. Follows
pkg/trimaran/targetloadpacking/targetloadpacking.go of scheduler-plugins."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager
from typing import Self

import msgspec
import numpy as np

from moorage.api.meta import Int64
from moorage.api.pod import Container, Pod
from moorage.api.problems import Problem, child, invalid
from moorage.api.quantity import ResourceList
from moorage.api.requests import CPU
from moorage.api.resources import PODS
from moorage.contrib.metrics.metrics_server import NEEDS
from moorage.contrib.metrics.sample import capacity
from moorage.contrib.trimaran.amounts import amount
from moorage.contrib.trimaran.plugin import TrimaranArgs, TrimaranPlugin, rounded
from moorage.contrib.trimaran.recent_pods import RecentPods
from moorage.framework.access import LISTED, Access, Dependency, Reads
from moorage.framework.args import ArgsContext
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import FloatArray, IntArray, Nodes, NodeView
from moorage.framework.points import ReservePlugin

REPORTING_SECONDS = 60
"""After which a pod is sure to be in what is measured."""
DEFAULT_TARGET = 40


class TargetLoadPackingArgs(TrimaranArgs):
    """The target utilization, and the expected usage of containers."""

    default_requests: ResourceList = msgspec.field(default_factory=lambda: {CPU: "1000m"})
    """Of a container without request and limit."""
    default_requests_multiplier: str = "1.5"
    """Of the request of a container without limit."""
    target_utilization: Int64 = DEFAULT_TARGET

    def completed(self, context: ArgsContext) -> Self:
        target = self.target_utilization if self.target_utilization > 0 else DEFAULT_TARGET
        return msgspec.structs.replace(self, target_utilization=target)

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        yield from super().validate(path, context)
        if self.target_utilization >= 100:
            where = child(path, "targetUtilization")
            yield invalid(where, self.target_utilization, "must be a percentage from 1 to 99")
        try:
            valid = 0 <= self.multiplier < float("inf")
        except ValueError:
            valid = False
        if not valid:
            where = child(path, "defaultRequestsMultiplier")
            yield invalid(where, self.default_requests_multiplier, 'must be a number as a text, such as "1.5"')

    @property
    def multiplier(self) -> float:
        return float(self.default_requests_multiplier)


class TargetLoadPacking(TrimaranPlugin, ReservePlugin):
    name = "TargetLoadPacking"
    Args = TargetLoadPackingArgs
    needs = (*NEEDS, Access(PODS, LISTED))

    def __init__(self, args: TargetLoadPackingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._default = amount(args.default_requests, CPU)
        self._multiplier = args.multiplier
        self._recent = RecentPods(self.expected, handle.clock.wall)
        handle.on_change(PODS, self._recent.pod_changed)

    async def run(self) -> None:
        await self.usage.run(self.handle, self._tick)

    @contextmanager
    def _tick(self) -> Iterator[None]:
        yield
        oldest = self.usage.taken().array
        if len(oldest) and not np.isnan(oldest).all():
            self._recent.forget(float(np.nanmin(oldest)) - REPORTING_SECONDS)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._recent.add(pod, node_name, self.handle.clock.wall())

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._recent.remove(pod, node_name)

    def expected(self, pod: Pod) -> int:
        """Return the milli-cpu that a pod is expected to use."""
        return sum(map(self._of_container, pod.spec.containers)) + amount(pod.spec.overhead, CPU)

    def _of_container(self, container: Container) -> int:
        if CPU in container.resources.limits:
            return amount(container.resources.limits, CPU)
        if CPU in container.resources.requests:
            return int(amount(container.resources.requests, CPU) * self._multiplier + 0.5)
        return self._default

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> None:
        size = capacity(nodes, CPU)
        used = self.average(CPU).of(nodes) / 100 * size
        key = (self, self.usage.version.value)
        recent = nodes.row_column(key, self._unmeasured, self._unmeasured_on)
        total = 100 * (used + self.expected(pod) + recent)
        # A node without capacity is neither full nor empty: its usage is 0 of nothing.
        percent = np.divide(total, size, out=total * 0, where=size > 0)
        out[:] = rounded(self._points(percent))

    def _points(self, percent: FloatArray) -> FloatArray:
        target = float(self.args.target_utilization)
        below = (100 - target) * percent / target + target
        above = target * (100 - percent) / (100 - target)
        return np.where(percent <= target, below, np.maximum(above, 0))

    def _unmeasured(self, nodes: Nodes) -> IntArray:
        found = np.zeros(len(nodes), dtype=np.int64)
        for index, name in enumerate(nodes.names):
            if name in self._recent:  # few have one
                found[index] = self._unmeasured_on(nodes[index])
        return found

    def _unmeasured_on(self, node: NodeView) -> int:
        return self._recent.expected(node.name, self.usage.taken().at(node.name) - REPORTING_SECONDS)

    def sign(self, pod: Pod) -> Hashable:
        return self.expected(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW, self.usage.version)
