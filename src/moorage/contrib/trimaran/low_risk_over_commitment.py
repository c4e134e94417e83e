"""LowRiskOverCommitment: avoid nodes where pods may use more than the node has, by their limits and by measured load.
Follows pkg/trimaran/lowriskovercommitment/{lowriskovercommitment,beta}.go of scheduler-plugins."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable
from typing import Any, Self, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.api.meta import Int64
from moorage.api.pod import Pod
from moorage.api.requests import CPU, MEMORY
from moorage.api.resources import PODS
from moorage.contrib.metrics.metrics_server import NEEDS
from moorage.contrib.trimaran.amounts import KnownAmounts, PodAmounts
from moorage.contrib.trimaran.plugin import TrimaranArgs, TrimaranPlugin, rounded
from moorage.framework.access import LISTED, Access, Dependency, Reads
from moorage.framework.args import ArgsContext
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import FloatArray, IntArray, Nodes, NodeView
from moorage.framework.status import MAX_NODE_SCORE

T = TypeVar("T", float, FloatArray)

_STEPS = 300
_SMALL = 1e-300
_NEAR = 1e-12
_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


def distributions(x: FloatArray, alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Return the probability that a variable is at most `x`, 0 to 1; `alpha` and `beta` are above 0."""
    turned = x > (alpha + 1) / (alpha + beta + 2)  # the fraction converges fast on one side of the mean
    a, b, z = np.where(turned, beta, alpha), np.where(turned, alpha, beta), np.where(turned, 1 - x, x)
    inside = z > 0
    z = np.where(inside, z, 0.5)
    logs = (_log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)).astype(np.float64)
    share = np.exp(logs + a * np.log(z) + b * np.log1p(-z)) / a
    share = np.where(inside, share * _fraction(z, a, b, _nonzeros, _are_near_one), 0.0)
    found: FloatArray = np.where(turned, 1 - share, share).clip(0, 1)
    return found


def distribution(x: float, alpha: float, beta: float) -> float:
    """Return `distributions` for one value: many times faster than an array of one entry."""
    turned = x > (alpha + 1) / (alpha + beta + 2)
    a, b, z = (beta, alpha, 1 - x) if turned else (alpha, beta, x)
    share = 0.0
    if z > 0:
        logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        share = math.exp(logs + a * math.log(z) + b * math.log1p(-z)) / a
        share *= _fraction(z, a, b, _nonzero, _is_near_one)
    return min(max(1 - share if turned else share, 0.0), 1.0)


def _fraction(x: T, a: T, b: T, nonzero: Callable[[T], T], is_near_one: Callable[[T], bool]) -> T:
    """Compute the continued fraction of the incomplete beta function with Lentz's method."""
    c, d = x * 0 + 1, 1 / nonzero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / nonzero(1 + even * d), nonzero(1 + even / c)
        result = result * (c * d)
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / nonzero(1 + odd * d), nonzero(1 + odd / c)
        step = c * d
        result = result * step
        if is_near_one(step):
            break
    return result


def _nonzeros(values: FloatArray) -> FloatArray:
    return np.where(np.abs(values) < _SMALL, _SMALL, values)


def _nonzero(value: float) -> float:
    return value if abs(value) >= _SMALL else _SMALL


def _are_near_one(values: FloatArray) -> bool:
    return bool(np.abs(values - 1).max(initial=0.0) < _NEAR)


def _is_near_one(value: float) -> bool:
    return abs(value - 1) < _NEAR


DEFAULT_WINDOW, DEFAULT_WEIGHT = 5, 0.5
MAX_VARIANCE = 0.99
"""Of the largest variance that a beta distribution of some mean can have."""

SUMS = np.dtype([(name, np.float64) for name in PodAmounts._fields])
MIN_DEVIATION = 0.002
"""Of a share; less counts as none: usage is then as good as certain."""


class LowRiskOverCommitmentArgs(TrimaranArgs):
    """How the two risks are combined. As in the Go plugin, invalid values mean the default."""

    smoothing_window_size: Int64 = DEFAULT_WINDOW
    """The samples that a measured value is an average of."""
    risk_limit_weights: dict[str, float] = {}
    """Resource → share of the risk by limits, 0 to 1; the rest is the risk by load."""

    def completed(self, context: ArgsContext) -> Self:
        given = {name: w if 0 <= w <= 1 else DEFAULT_WEIGHT for name, w in self.risk_limit_weights.items()}
        weights = {CPU: DEFAULT_WEIGHT, MEMORY: DEFAULT_WEIGHT, **given}
        window = self.smoothing_window_size if self.smoothing_window_size > 0 else DEFAULT_WINDOW
        return msgspec.structs.replace(self, smoothing_window_size=window, risk_limit_weights=weights)


class LowRiskOverCommitment(TrimaranPlugin):
    name = "LowRiskOverCommitment"
    Args = LowRiskOverCommitmentArgs
    needs = (*NEEDS, Access(PODS, LISTED))

    def __init__(self, args: LowRiskOverCommitmentArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._smoothing = math.sqrt(args.smoothing_window_size)
        self._amounts = KnownAmounts()
        handle.on_change(PODS, self._amounts.pod_changed)

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> int | None:
        own = PodAmounts.of(pod)
        if not any(own):
            return 0
        measured = ~(np.isnan(self.average(CPU).of(nodes)) & np.isnan(self.average(MEMORY).of(nodes)))
        cpu = self._risk(nodes, CPU, own.cpu_request, own.cpu_limit)
        memory = self._risk(nodes, MEMORY, own.memory_request, own.memory_limit)
        out[:] = rounded(np.where(measured, (1 - np.maximum(cpu, memory)) * MAX_NODE_SCORE, 0.0))
        return None

    def _risk(self, nodes: Nodes, resource: str, request: int, limit: int) -> FloatArray:
        size = nodes.floats("allocatable", resource)
        requests = np.minimum(self._sum(nodes, resource, "request") + request, size)
        limits = self._sum(nodes, resource, "limit") + limit
        over = limits > size
        by_limits = np.divide(limits - size, limits - requests, out=np.zeros(len(nodes)), where=over)
        by_load = nodes.row_column(
            (self, self.usage.version.value, resource),
            lambda some: self._risks_by_load(some, resource),
            lambda node: self._risk_by_load(node, resource),
        )
        weight = self.args.risk_limit_weights[resource]
        risk: FloatArray = (weight * by_limits + (1 - weight) * by_load).clip(0, 1)
        return risk

    def _sum(self, nodes: Nodes, resource: str, kind: str) -> FloatArray:
        """Return the sum of the requests or limits of the pods on each node."""
        sums = nodes.row_column((self, "sums"), self._sums, self._sums_on)
        column: FloatArray = sums[f"{resource}_{kind}"]
        return column

    def _sums(self, nodes: Nodes) -> npt.NDArray[Any]:
        return np.array([self._sums_on(node) for node in nodes], dtype=SUMS)

    def _sums_on(self, node: NodeView) -> tuple[float, ...]:
        amounts = [self._amounts.of(pod) for pod in node.pods]
        return tuple(map(float, map(sum, zip(*amounts, strict=True)))) if amounts else (0.0,) * 4

    def _risks_by_load(self, nodes: Nodes, resource: str) -> FloatArray:
        """Return the probability that usage exceeds the requests of the current pods; 0 if the load is unknown."""
        size = np.maximum(nodes.floats("allocatable", resource), 1)
        mean = self.average(resource).of(nodes).clip(0, 100) / 100
        spread = self.deviation(resource).of(nodes).clip(0, 100) / 100 * self._smoothing
        spread = np.minimum(spread, np.sqrt(MAX_VARIANCE * mean * (1 - mean)))
        requests, limits = self._sum(nodes, resource, "request"), self._sum(nodes, resource, "limit")
        return np.nan_to_num(1 - within_all(np.minimum(requests / size, 1), limits / size, mean, spread))

    def _risk_by_load(self, node: NodeView, resource: str) -> float:
        """Return `_risks_by_load` for one node."""
        size = max(node.allocatable.get(resource, 0), 1)
        mean = min(max(self.average(resource).at(node.name), 0), 100) / 100
        if mean != mean:
            return 0.0
        spread = min(max(self.deviation(resource).at(node.name), 0), 100) / 100 * self._smoothing
        spread = min(spread, math.sqrt(MAX_VARIANCE * mean * (1 - mean)))
        sums = dict(zip(PodAmounts._fields, self._sums_on(node), strict=True))
        requests, limits = sums[f"{resource}_request"] / size, sums[f"{resource}_limit"] / size
        return 1 - within(min(requests, 1), limits, mean, spread)

    def sign(self, pod: Pod) -> Hashable:
        return PodAmounts.of(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW, self.usage.version)


def within_all(requested: FloatArray, limited: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the probability that usage is within the requests, given that it is within the limits; all are shares of
    the node. NaN if the mean is NaN."""
    fits = spread >= MIN_DEVIATION
    temper = np.where(fits, mean * (1 - mean) / np.where(fits, spread**2, 1) - 1, 1)
    alpha, other = np.where(fits, mean * temper, 1), np.where(fits, (1 - mean) * temper, 1)
    shares = np.concatenate((requested, np.minimum(limited, 1)))
    at_request, at_limit = np.split(distributions(shares, np.tile(alpha, 2), np.tile(other, 2)), 2)
    found, bounded = np.where(fits, at_request, mean <= requested), limited < 1
    given = np.divide(found, at_limit, out=found.copy(), where=fits & bounded & (at_limit > 0)).clip(0, 1)
    return np.where(np.isnan(mean), np.nan, np.where(limited == 0, 1.0, given))


def within(requested: float, limited: float, mean: float, spread: float) -> float:
    """Return `within_all` for one node."""
    if limited == 0:
        return 1.0
    if spread < MIN_DEVIATION:
        return float(mean <= requested)
    temper = mean * (1 - mean) / spread**2 - 1
    alpha, other = mean * temper, (1 - mean) * temper
    found = distribution(requested, alpha, other)
    at_limit = distribution(limited, alpha, other) if limited < 1 else 1.0
    return min(found / at_limit, 1.0) if at_limit > 0 else found
