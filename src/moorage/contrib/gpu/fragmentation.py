"""How much idle GPU typical pods cannot use: the fragmentation of nodes, before and after one more pod.

For one typical pod, all idle GPU of a node is fragmented where the pod does not fit (too little cpu, too few
cards with enough free, another model, or it wants no GPU), and otherwise what is free on cards that are too
small for it. A node's fragmentation F is the mean over all typical pods, each with its weight. So

    F = idle - Σ weight · (what is free on cards that are large enough, if the pod fits)

Typical pods that differ in cpu and model alone look for the same cards, so the sum is over distinct sizes,
each with the weight of those pods that the node has cpu and the model for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from moorage.contrib.gpu.requests import WHOLE, GpuRequest
from moorage.framework.nodes import BoolArray, FloatArray, IntArray


class TypicalPod(NamedTuple):
    """A class of pods and its frequency."""

    cpu: int
    """Milli-cpu."""
    gpu: GpuRequest
    weight: float


class NodeStates(NamedTuple):
    """The relevant state of some nodes, one entry each."""

    cpu: IntArray
    """Milli-cpu free."""
    cards: IntArray
    """Milli free: nodes by cards."""
    models: IntArray
    """As `Fragmentation.model` numbers them."""


class Fragmentation:
    """Computes fragmentation for one list of typical pods."""

    def __init__(self, pods: Sequence[TypicalPod]) -> None:
        wanting = [pod for pod in pods if pod.gpu.cards]
        sizes = sorted({pod.gpu[:2] for pod in wanting})
        names = sorted({name for pod in wanting for name in pod.gpu.models})
        self._models = {name: number for number, name in enumerate(names)}
        self._cpu = np.array([pod.cpu for pod in wanting], dtype=np.int64)
        self._accepted = np.array(
            [[not pod.gpu.models or name in pod.gpu.models for pod in wanting] for name in (*names, None)]
        )
        """Models by typical pods; the last one is any other model."""
        self._weights = np.zeros((len(wanting), len(sizes)))
        """Typical pods by sizes."""
        total = sum(pod.weight for pod in pods)
        for number, pod in enumerate(wanting):
            self._weights[number, sizes.index(pod.gpu[:2])] = pod.weight / total
        amounts = np.arange(WHOLE + 1)[:, np.newaxis]
        self._usable = np.where(amounts >= [milli for _, milli in sizes], amounts, 0).astype(float)
        """What is free on a card by sizes: what a pod of that size can use of it."""
        self._least = np.array([count * milli for count, milli in sizes], dtype=float)
        """Of a node's usable GPU for a pod to fit: several cards are always whole ones."""

    def model(self, name: str) -> int:
        """Return the number of a card model; -1 for a model that no typical pod names."""
        return self._models.get(name, -1)

    def of(self, nodes: NodeStates) -> FloatArray:
        """Return the fragmented milli of each node."""
        return self._fragmented(nodes.cards.sum(axis=1), self._shares(nodes, 0), self._sums(nodes))

    def decrease(self, request: GpuRequest, cpu: int, nodes: NodeStates) -> FloatArray:
        """Return by how many milli a pod with this request reduces fragmentation, choices by nodes. A part of a card
        has one choice per card, -infinity where it does not fit; other requests have one choice."""
        before, idle, sums = self.of(nodes), nodes.cards.sum(axis=1) - request.total, self._sums(nodes)
        shares = self._shares(nodes, cpu)
        if not request.is_part:
            sums -= request.cards * self._usable[request.milli]
            return (before - self._fragmented(idle, shares, sums))[np.newaxis]
        changes = self._usable.take(np.arange(WHOLE + 1) - request.milli, axis=0, mode="clip") - self._usable
        found = np.full(nodes.cards.shape[::-1], -np.inf)
        for card, free in enumerate(nodes.cards.T):  # one by one: an array for all is too large for caches
            after = self._fragmented(idle, shares, sums + changes.take(free, axis=0))
            np.subtract(before, after, out=found[card], where=free >= request.milli)
        return found

    def _fragmented(self, idle: IntArray, shares: FloatArray, sums: FloatArray) -> FloatArray:
        found: FloatArray = idle - np.einsum("ns,ns->n", shares, sums * (sums >= self._least))
        return found

    def _sums(self, nodes: NodeStates) -> FloatArray:
        """Return the free milli on cards that are large enough, nodes by sizes."""
        sums: FloatArray = self._usable.take(nodes.cards.T, axis=0).sum(axis=0)
        return sums

    def _shares(self, nodes: NodeStates, cpu: int) -> FloatArray:
        """Return the weight of typical pods that fit by model, and by cpu with `cpu` more in use, nodes by sizes."""
        fitting: BoolArray = (nodes.cpu - cpu)[:, np.newaxis] >= self._cpu
        shares: FloatArray = (fitting & self._accepted[nodes.models]) @ self._weights
        return shares
