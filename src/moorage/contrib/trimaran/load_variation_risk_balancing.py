"""LoadVariationRiskBalancing: avoid nodes with a high or a highly variable load. Follows
pkg/trimaran/loadvariationriskbalancing/analysis.go of scheduler-plugins."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Self

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.api.requests import CPU, MEMORY
from moorage.contrib.trimaran.amounts import effective
from moorage.contrib.trimaran.plugin import TrimaranArgs, TrimaranPlugin, rounded
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext
from moorage.framework.cycle_state import CycleState
from moorage.framework.nodes import FloatArray, IntArray, Nodes
from moorage.framework.status import MAX_NODE_SCORE


class LoadVariationRiskBalancingArgs(TrimaranArgs):
    """The weight of the deviation; negative values mean the default."""

    safe_variance_margin: float = 1.0
    """The deviation is multiplied by this."""
    safe_variance_sensitivity: float = 1.0
    """Of the deviation this root is taken before."""

    def completed(self, context: ArgsContext) -> Self:
        margin, sensitivity = self.safe_variance_margin, self.safe_variance_sensitivity
        return msgspec.structs.replace(
            self,
            safe_variance_margin=margin if margin >= 0 else 1.0,
            safe_variance_sensitivity=sensitivity if sensitivity >= 0 else 1.0,
        )


class LoadVariationRiskBalancing(TrimaranPlugin):
    name = "LoadVariationRiskBalancing"
    Args = LoadVariationRiskBalancingArgs

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> None:
        cpu, memory = (self._points(pod, nodes, resource) for resource in (CPU, MEMORY))
        out[:] = rounded(np.fmin(cpu, memory))  # the known one, where only one is

    def _points(self, pod: Pod, nodes: Nodes, resource: str) -> FloatArray:
        """Return 100 minus the risk; NaN if the load is unknown."""
        size = nodes.floats("allocatable", resource)
        used = self.average(resource).of(nodes).clip(0, 100) * size / 100 + effective(pod, resource)
        mean = np.divide(used, size, out=used * np.nan, where=size > 0).clip(0, 1)
        spread = (self.deviation(resource).of(nodes) / 100).clip(0, 1)
        risk = (mean + self._weighted(spread)) / 2
        # As in the Go plugin: a node that has nothing of a resource, and is measured, is the worst.
        points: FloatArray = np.where((size > 0) | np.isnan(used), (1 - risk) * MAX_NODE_SCORE, 0.0)
        return points

    def _weighted(self, spread: FloatArray) -> FloatArray:
        sensitivity = self.args.safe_variance_sensitivity
        power = 1 / sensitivity if sensitivity else np.inf
        weighted: FloatArray = (self.args.safe_variance_margin * np.power(spread, power)).clip(0, 1)
        return weighted

    def sign(self, pod: Pod) -> Hashable:
        return effective(pod, CPU), effective(pod, MEMORY)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, self.usage.version)
