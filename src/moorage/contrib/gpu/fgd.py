"""FGD, Fragmentation Gradient Descent: prefer the node, and on it the card, that adds the least fragmentation: idle GPU
that typical pods cannot use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from moorage.api.errors import QuantityError
from moorage.api.meta import Record
from moorage.api.pod import Pod
from moorage.api.problems import Problem, child, invalid, required
from moorage.api.quantity import Quantity
from moorage.api.requests import CPU, pod_requests, resource_value
from moorage.contrib.gpu.fragmentation import Fragmentation, NodeStates, TypicalPod
from moorage.contrib.gpu.gpu_share import CHOICE
from moorage.contrib.gpu.packing import GpuScorePlugin, whole
from moorage.contrib.gpu.requests import GPU_MODEL, MAX_CARDS, WHOLE, GpuRequest, models_of
from moorage.framework.args import ArgsContext, PluginArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import IntArray, Nodes, NodeView
from moorage.framework.points import PreFilterPlugin

NOISE = 1e-6
"""Milli that differ by rounding alone. A decrease of nothing is frequent, and scores make a step there."""


class TypicalPodArgs(Record):
    """A class of pods."""

    cpu: Quantity = 0
    gpu_milli: int = 0
    """Of each card; 0 for pods without GPU."""
    gpu_count: int = 1
    gpu_card_model: str = ""
    """Accepted models, joined by `|`; empty: any."""
    weight: float = 1.0
    """How frequent such pods are, relative to the others."""

    def validate(self, path: str) -> Iterator[Problem]:
        try:
            negative = resource_value(CPU, self.cpu) < 0
        except QuantityError:
            negative = True
        if negative:
            yield invalid(child(path, "cpu"), self.cpu, 'must be a quantity of cpu, such as 500m or "4"')
        if not 0 <= self.gpu_milli <= WHOLE:
            yield invalid(child(path, "gpuMilli"), self.gpu_milli, f"must be from 0 to {WHOLE}")
        if not 1 <= self.gpu_count <= MAX_CARDS:
            yield invalid(child(path, "gpuCount"), self.gpu_count, f"must be from 1 to {MAX_CARDS}")
        elif self.gpu_count > 1 and self.gpu_milli != WHOLE:
            detail = f"must be {WHOLE} where gpuCount is above 1: parts are of one card"
            yield invalid(child(path, "gpuMilli"), self.gpu_milli, detail)
        if not 0 < self.weight < np.inf:
            yield invalid(child(path, "weight"), self.weight, "must be above 0")

    def typical(self) -> TypicalPod:
        gpu = GpuRequest(self.gpu_count, self.gpu_milli, models_of(self.gpu_card_model))
        return TypicalPod(resource_value(CPU, self.cpu), gpu if self.gpu_milli else GpuRequest(), self.weight)


class FGDArgs(PluginArgs):
    """The classes of pods that are expected."""

    typical_pods: tuple[TypicalPodArgs, ...] = ()

    def validate(self, path: str, context: ArgsContext) -> Iterator[Problem]:
        where = child(path, "typicalPods")
        if not any(pod.gpu_milli for pod in self.typical_pods):
            yield required(where, "at least one class of pods with GPUs")
        for index, pod in enumerate(self.typical_pods):
            yield from pod.validate(child(where, index))


class FGD(PreFilterPlugin, GpuScorePlugin):
    name = "FGD"
    Args = FGDArgs

    def __init__(self, args: FGDArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.fragmentation = Fragmentation([pod.typical() for pod in args.typical_pods])

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        state.write(CHOICE, self.choose)

    def points(self, request: GpuRequest, cpu: int, nodes: Nodes) -> IntArray:
        """Return the scores. The node table keeps them up to date: for a pod like an earlier one only changed nodes are
        computed."""

        def compute(nodes: Nodes) -> IntArray:
            found: IntArray = self._scores(request, cpu, self.states(nodes)).max(axis=0).clip(0)
            return found

        return nodes.row_column((self, request, cpu), compute)

    def choose(self, pod: Pod, request: GpuRequest, node: NodeView, free: Sequence[int]) -> int:
        cpu, model = pod_requests(pod).get(CPU, 0), self.fragmentation.model(node.labels.get(GPU_MODEL, ""))
        before = NodeStates(np.array([node.free(CPU) + cpu]), np.array([free]), np.array([model]))
        return int(self._scores(request, cpu, before).argmax())

    def states(self, nodes: Nodes) -> NodeStates:
        models = nodes.node_column((self, GPU_MODEL), self._models)
        return NodeStates(nodes.free(CPU), self.cards.free(nodes), models)

    def _models(self, nodes: Nodes) -> IntArray:
        names = (node.labels.get(GPU_MODEL, "") for node in nodes)
        return np.array([self.fragmentation.model(name) for name in names], dtype=np.int64)

    def _scores(self, request: GpuRequest, cpu: int, nodes: NodeStates) -> IntArray:
        """Return scores, choices by nodes: 50 if fragmentation does not change, -1 for cards where the pod does not
        fit. The score is a sigmoid over whole cards, truncated to integers."""
        decrease = self.fragmentation.decrease(request, cpu, nodes)
        decrease[np.abs(decrease) < NOISE] = 0.0
        points = whole(100 / (1 + np.exp(-decrease / WHOLE)))
        points[np.isneginf(decrease)] = -1
        return points
