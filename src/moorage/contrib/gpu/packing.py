"""Score plugins that pack GPUs: each is a formula over the free resources. GpuShare does the accounting.

The first four score as in the experiments of "Beware of Fragmentation", where a fixed node wins among equal scores.
Here it is the first one of the snapshot."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.api.requests import CPU, pod_requests
from moorage.contrib.gpu.cards import Cards, kind
from moorage.contrib.gpu.requests import GPU_COUNT, MAX_CARDS, WHOLE, GpuRequest, gpu_request
from moorage.contrib.normalizing import min_max
from moorage.framework.access import Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.nodes import IntArray, Nodes
from moorage.framework.optional import ReusablePlugin, VectorScorePlugin

MAX_CPU = 128_000
"""Milli-cpu of a node that counts as the largest."""
MAX_GPU_MILLI = WHOLE * MAX_CARDS


class GpuScorePlugin(VectorScorePlugin, ReusablePlugin):
    """A score that depends on the pod's request and on the free resources of a node."""

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.cards = Cards.of(handle)

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Any:
        return self.points(gpu_request(pod), pod_requests(pod).get(CPU, 0), nodes)

    @abstractmethod
    def points(self, request: GpuRequest, cpu: int, nodes: Nodes) -> IntArray:
        """Return the scores of nodes for a pod with this request of GPUs and of milli-cpu."""

    def sign(self, pod: Pod) -> Hashable:
        return gpu_request(pod), pod_requests(pod).get(CPU, 0)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.NODE, Reads.ROW)


class BestFit(GpuScorePlugin):
    """Prefers nodes with the least cpu and GPU left."""

    name = "BestFit"

    def points(self, request: GpuRequest, cpu: int, nodes: Nodes) -> IntArray:
        free_cpu = (nodes.free(CPU) - cpu) / MAX_CPU
        free_gpu = (self.cards.free(nodes).sum(axis=1) - request.total) / MAX_GPU_MILLI
        return whole(100 * (1 - 0.5 * free_cpu - 0.5 * free_gpu))

    def normalize_nodes(self, state: CycleState, pod: Pod, scores: IntArray, nodes: Nodes) -> Any:
        return min_max(scores)


class DotProduct(GpuScorePlugin):
    """Prefers nodes with the smallest product of free and requested resources."""

    name = "DotProduct"

    def points(self, request: GpuRequest, cpu: int, nodes: Nodes) -> IntArray:
        by_cpu = nodes.free(CPU) / MAX_CPU * (cpu / MAX_CPU)
        by_gpu = self.cards.free(nodes).sum(axis=1) / MAX_GPU_MILLI * (request.total / MAX_GPU_MILLI)
        return whole(100 * (1 - 0.5 * (by_cpu + by_gpu))).clip(0, 100)


class GpuPacking(GpuScorePlugin):
    """Prefers cards in use, then nodes with a card in use, then idle nodes, the smallest first."""

    name = "GpuPacking"

    def points(self, request: GpuRequest, cpu: int, nodes: Nodes) -> IntArray:
        if not request.cards:
            return np.zeros(len(nodes), dtype=np.int64)
        free, cards = self.cards.free(nodes), np.minimum(nodes.allocatable(GPU_COUNT), MAX_CARDS)
        idle = free == WHOLE
        scores = np.full(len(nodes), max(50 - request.cards, 33), dtype=np.int64)
        if request.is_part:
            best = np.where(~idle & (free >= request.milli), free, WHOLE).min(axis=1)
            scores = np.where(best < WHOLE, 100 - best * 100 // WHOLE // 10, scores)
        packed: IntArray = np.where(idle.sum(axis=1) == cards, 33 - cards, scores)
        return packed


class GpuClustering(GpuScorePlugin):
    """Prefers nodes whose GPU pods are all of the same kind: parts of a card, one card, two cards and so on."""

    name = "GpuClustering"

    def points(self, request: GpuRequest, cpu: int, nodes: Nodes) -> IntArray:
        if not request.cards:
            return np.zeros(len(nodes), dtype=np.int64)
        kinds, own = self.cards.kinds(nodes), kind(request)
        used = 25 * (MAX_GPU_MILLI - self.cards.free(nodes).sum(axis=1)) // MAX_GPU_MILLI
        alike = np.select([kinds == own, (kinds & own) > 0, kinds == 0], [75, 50, 25], 0)
        clustered: IntArray = used + alike
        return clustered


class GpuLeastFree(GpuScorePlugin):
    """Prefers nodes with the fewest idle cards, so that pods that request many cards find them together. Pods without
    GPUs prefer nodes without idle cards."""

    name = "GpuLeastFree"

    def points(self, request: GpuRequest, cpu: int, nodes: Nodes) -> IntArray:
        idle = (self.cards.free(nodes) == WHOLE).sum(axis=1)
        points: IntArray = 100 - 100 * idle // MAX_CARDS
        return points


def whole(points: Any) -> IntArray:
    """Truncate fractions."""
    cut: IntArray = points.astype(np.int64)
    return cut
