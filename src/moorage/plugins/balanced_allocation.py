"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used more evenly once the pod runs there.

Follows pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go. The score is the change that the pod makes
to the balance of a node: 100 minus one point per hundredth of standard deviation between the used shares of its
resources. The scalar and the vector form round in the same order as kube-scheduler, because results are truncated to
integers. A resource that a node does not have is ignored on that node."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Self, cast

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, duplicate, invalid
from moorage.api.requests import is_scalar_resource
from moorage.api.resource_weights import DEFAULT_RESOURCES, ResourceSpec, weighted
from moorage.framework.access import Dependency, Reads
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.hot import ManyPodsScorePlugin, WholeTableScorePlugin
from moorage.framework.nodes import FloatArray, IntArray, Nodes, NodeView
from moorage.framework.optional import ReusablePlugin
from moorage.framework.points import PreScorePlugin
from moorage.framework.status import Status
from moorage.plugins.pod_demand import PodDemands, is_counted

SCORED = "NodeResourcesBalancedAllocation.score"


class NodeResourcesBalancedAllocationArgs(PluginArgs):
    """The resources whose utilization should be balanced."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def completed(self, context: ArgsContext) -> Self:
        return msgspec.structs.replace(self, resources=weighted(self.resources))

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            where = child(path, "resources", index)
            if resource.name in seen:
                yield duplicate(child(where, "name"), resource.name)
            seen.add(resource.name)
            if resource.weight != 1:
                yield invalid(child(where, "weight"), resource.weight, "must be 1")


class NodeResourcesBalancedAllocation(PreScorePlugin, WholeTableScorePlugin, ManyPodsScorePlugin, ReusablePlugin):
    name = "NodeResourcesBalancedAllocation"
    Args = NodeResourcesBalancedAllocationArgs

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resources = tuple(spec.name for spec in args.resources)
        self._demands = handle.shared(PodDemands, PodDemands)
        self._standard = not any(is_scalar_resource(name) or not is_counted(name) for name in self._resources)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Skip pods without requests. They do not change the balance, and scoring them would gather them on a few
        nodes."""
        asks = self._asks(pod)
        if asks is None:
            return Status.skip()
        state.write(SCORED, asks)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        asks: Asks | None = state.read(SCORED, None)
        if asks is None:
            asks = self._asks(pod)
        return 0 if asks is None else score_one(asks, node.allocatable, node.requested)

    def score_for(self, state: CycleState, pod: Pod) -> Callable[[NodeView], int]:
        asks = self._scored(state, pod)
        return (lambda node: 0) if asks is None else prepared(asks)

    def score_amounts(self, state: CycleState, pod: Pod) -> tuple[int, ...] | None:
        asks = self._scored(state, pod)
        if asks is None or len(asks) != 2 or not self._standard:
            return None
        amounts = tuple([ask for _, ask in asks])
        return amounts if max(amounts) <= _EXACT else None

    def score_many(self, amounts: FloatArray, node: NodeView) -> IntArray | None:
        return score_pods(self._resources, amounts, node)

    def score_into(self, state: CycleState, pod: Pod, nodes: Nodes, out: IntArray) -> int | None:
        asks = self._scored(state, pod)
        if asks is None or len(asks) < 2:
            return 0 if asks is None else NO_CHANGE
        if len(asks) > 2:
            out[:] = scores(asks, nodes)
            return None
        names = (asks[0][0], asks[1][0])
        pair = nodes.kept(("NodeResourcesBalancedAllocation", names), lambda some: Pair(some, names))
        pair.score_into(asks, nodes, out)
        return None

    def _scored(self, state: CycleState, pod: Pod) -> Asks | None:
        """Read the pod here if the profile has disabled PreScore."""
        found: Asks | None = state.read(SCORED, None)
        return self._asks(pod) if found is None else found

    def _asks(self, pod: Pod) -> Asks | None:
        """Return the requests that count for this pod; an extended resource counts only if the pod requests it. Return
        None for a pod that requests none of the resources."""
        requests = self._demands.of(pod).balanced
        asks = tuple([(name, requests.get(name, 0)) for name in self._resources])
        for _, ask in asks:
            if ask:
                return asks if self._standard else tuple([(n, ask) for n, ask in asks if _counts(n, ask)])
        return None

    def sign(self, pod: Pod) -> Hashable:
        return self._demands.of(pod).signature

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW)


def _counts(name: str, ask: int) -> bool:
    return is_counted(name) and (ask != 0 or not is_scalar_resource(name))


_EXACT = 2**53
"""Whole numbers up to here are exact as floats."""
NO_CHANGE = 75
"""The score of a pod that changes nothing; fewer than two resources are always balanced."""

Asks = tuple[tuple[str, int], ...]
"""Resource, and what comes on top of what the node's pods request of it."""


def score_one(asks: Asks, allocatable: Mapping[str, int], requested: Mapping[str, int]) -> int:
    """Return how much the requests change the balance of one node: 75 for no change, 100 at best, 50 at worst."""
    nothing = tuple((name, 0) for name, _ in asks)
    difference = balance(asks, allocatable, requested) - balance(nothing, allocatable, requested)
    return 50 + int((50 + difference) / 2)


def prepared(asks: Asks) -> Callable[[NodeView], int]:
    """Return `score` for requests that were read already. Two resources are written out, since this runs for every
    pod."""
    if len(asks) != 2:
        return lambda node: score_one(asks, node.allocatable, node.requested)
    (first, one), (second, other) = asks

    def score_pair(node: NodeView) -> int:
        allocatable, requested = node.allocatable, node.requested
        try:  # nearly every node has both, and this is half as long as asking for defaults
            left, right = allocatable[first], allocatable[second]
            used, taken = requested[first], requested[second]
        except KeyError:
            return score_one(asks, allocatable, requested)
        now, then = used + one, taken + other
        if not left or now > left or not right or then > right:  # it lacks one of them, or is full
            return score_one(asks, allocatable, requested)
        before, after = used * 1.0 / left - taken * 1.0 / right, now * 1.0 / left - then * 1.0 / right
        gained = int((1 - abs(after / 2)) * 100) - int((1 - abs(before / 2)) * 100)
        return 50 + int((50 + gained) / 2)

    return score_pair


def score_pods(names: Sequence[str], amounts: FloatArray, node: NodeView) -> IntArray | None:
    """Return `score_one` of one node for pods that request these amounts of two resources."""
    allocatable, requested = node.allocatable, node.requested
    capacities, used, before = [], [], []
    for name in names:
        capacity, taken = allocatable.get(name, 0), requested.get(name, 0)
        if not 0 < capacity <= _EXACT:
            return None
        capacities.append((capacity,))
        used.append((taken,))
        before.append(taken * 1.0 / capacity if taken < capacity else 1.0)
    fractions: FloatArray = amounts + np.array(used)
    fractions /= np.array(capacities)
    np.minimum(fractions, 1.0, out=fractions)
    apart: FloatArray = fractions[0] - fractions[1]
    np.abs(apart, out=apart)
    np.subtract(2.0, apart, out=apart)
    apart *= 50.0
    scores: IntArray = apart.astype(np.int64)
    scores += 150 - int((1 - deviation(before)) * 100)
    scores >>= 1
    return scores


def balance(asks: Asks, allocatable: Mapping[str, int], requested: Mapping[str, int]) -> int:
    """Return the balance of one node with the requests added."""
    fractions = []
    for name, ask in asks:
        capacity = allocatable.get(name, 0)
        if capacity:
            fractions.append(min(float(requested.get(name, 0) + ask) / float(capacity), 1.0))
    return int((1 - deviation(fractions)) * 100)


def deviation(fractions: Sequence[float]) -> float:
    """Return the population standard deviation; two values have a short formula."""
    count = len(fractions)
    if count < 2:
        return 0.0
    if count == 2:
        return abs((fractions[0] - fractions[1]) / 2)
    mean, total = _sum(fractions) / count, 0.0
    for fraction in fractions:
        total = total + (fraction - mean) * (fraction - mean)
    return math.sqrt(total / count)


def _sum(numbers: Sequence[float]) -> float:
    """Add from left to right. `sum` corrects rounding errors in newer versions of Python, which upstream does not."""
    total = 0.0
    for number in numbers:
        total += number
    return total


class Pair:
    """Two resources of all nodes, by far the most common case. Holds work arrays and the columns that do not depend on
    the pod; they are computed once until a node changes."""

    __slots__ = ("_before_key", "_left", "_names", "_right", "_work")

    def __init__(self, nodes: Nodes, names: tuple[str, str]) -> None:
        # Infinite where a node lacks either of them: then both fractions are 0, and so is their difference.
        both = (nodes.allocatable(names[0]) != 0) & (nodes.allocatable(names[1]) != 0)
        capacities = [np.where(both, nodes.floats("allocatable", name), np.inf) for name in names]
        self._left = nodes.floats("requested", names[0]), capacities[0]
        self._right = nodes.floats("requested", names[1]), capacities[1]
        self._work = np.empty(len(nodes)), np.empty(len(nodes))
        self._names = names
        self._before_key = ("before", names)

    def score_into(self, asks: Asks, nodes: Nodes, out: IntArray) -> None:
        left, right = self._work
        used, capacity = self._left
        np.add(used, float(asks[0][1]), out=left)
        np.divide(left, capacity, out=left)
        np.minimum(left, 1.0, out=left)
        used, capacity = self._right
        np.add(used, float(asks[1][1]), out=right)
        np.divide(right, capacity, out=right)
        np.minimum(right, 1.0, out=right)
        # `(1 - abs((a - b) / 2)) * 100` with the halving moved to the end: scaling by 2 rounds nothing.
        np.subtract(left, right, out=left)
        np.abs(left, out=left)
        np.subtract(2.0, left, out=left)
        np.multiply(left, 50.0, out=left)
        out[:] = left
        # 50 + (50 + after - before) // 2; balances are between 50 and 100, so nothing is negative.
        np.add(out, nodes.row_column(self._before_key, self._compute, self._compute_row), out=out)
        np.right_shift(out, 1, out=out)

    def _compute(self, nodes: Nodes) -> IntArray:
        """Compute the part of twice the score that does not depend on the pod: 150 minus the current balance."""
        now = balances(tuple((name, 0) for name in self._names), nodes)
        return cast(IntArray, (150 - now).astype(np.int64))

    def _compute_row(self, node: NodeView) -> int:
        allocatable, requested = node.allocatable, node.requested
        first, second = self._names
        left, right = allocatable.get(first, 0), allocatable.get(second, 0)
        if not left or not right:
            return 50  # a single resource is always in balance
        used, taken = requested.get(first, 0), requested.get(second, 0)
        apart = (used * 1.0 / left if used < left else 1.0) - (taken * 1.0 / right if taken < right else 1.0)
        return 150 - int((1 - abs(apart / 2)) * 100)


def scores(asks: Asks, nodes: Nodes) -> FloatArray:
    """Score all nodes for any number of resources."""
    nothing = tuple((name, 0) for name, _ in asks)

    def compute_row(node: NodeView) -> float:
        return balance(nothing, node.allocatable, node.requested)

    before = nodes.row_column(("balance", nothing), lambda some: balances(nothing, some), compute_row)
    return cast(FloatArray, 50 + np.trunc((50 + balances(asks, nodes) - before) / 2))


def balances(asks: Asks, nodes: Nodes) -> FloatArray:
    """Return the balance of all nodes with the requests added."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fractions = [_fractions(name, ask, nodes) for name, ask in asks]
        return np.trunc((1 - _deviations(fractions, len(nodes))) * 100)


def _fractions(name: str, ask: int, nodes: Nodes) -> FloatArray:
    """Return the used share of one resource, at most 1; NaN on nodes that do not have it."""
    capacity = nodes.allocatable(name)
    used = np.minimum((nodes.requested(name) + ask) / capacity.astype(np.float64), 1.0)
    return np.where(capacity == 0, np.nan, used)


def _deviations(fractions: Sequence[FloatArray], width: int) -> FloatArray:
    """Return `deviation` of each column. Adding 0 for a missing resource does not change the sum."""
    count, total, difference = np.zeros(width), np.zeros(width), np.zeros(width)
    for fraction in fractions:
        present = ~np.isnan(fraction)
        used = np.where(present, fraction, 0.0)
        total = total + used
        difference += np.where(count == 0, used, np.where(count == 1, -used, 0.0))
        count += present
    mean, squares = total / count, np.zeros(width)
    for fraction in fractions:
        squares = squares + np.where(np.isnan(fraction), 0.0, (fraction - mean) * (fraction - mean))
    several = np.where(count == 2, np.abs(difference / 2), np.sqrt(squares / count))
    return np.where(count < 2, 0.0, several)
