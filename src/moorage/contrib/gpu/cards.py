"""Compute the free capacity of the cards of every node.

The cards of a pod are in its annotation, and until that is written, in `Cards.booked`; nothing else is stored. The
column is computed from the pods of a row when they change, so a restart, a dry run and an ended pod need no code here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.contrib.gpu.requests import GPU_COUNT, MAX_CARDS, WHOLE, GpuRequest, cards_of, gpu_request
from moorage.framework.handle import Handle
from moorage.framework.nodes import IntArray, Nodes, NodeView

ROW = np.dtype([("free", np.int64, (MAX_CARDS,)), ("kinds", np.int64)])
"""Milli free on each card, 0 for cards that a node does not have; the kinds of GPU pods there, as bits."""

Choice = Callable[[Pod, GpuRequest, NodeView, Sequence[int]], int]
"""`choose(pod, request, node, free)`: the card for a part of one, which fits on at least one. The pod counts
on `node` already, but not in `free`."""


class Cards:
    """The cards of all nodes. There is one instance per process."""

    def __init__(self) -> None:
        self.booked: dict[str, tuple[int, ...]] = {}
        """UID → cards, of pods whose annotation does not show them yet."""

    @classmethod
    def of(cls, handle: Handle) -> Cards:
        return handle.shared("moorage.contrib.gpu", cls)

    def free(self, nodes: Nodes) -> IntArray:
        """Return the free milli of every card, nodes by cards."""
        free: IntArray = self._column(nodes)["free"]
        return free

    def kinds(self, nodes: Nodes) -> IntArray:
        """Return the bits of `kind` of the pods on each node."""
        kinds: IntArray = self._column(nodes)["kinds"]
        return kinds

    def _column(self, nodes: Nodes) -> Any:
        return nodes.row_column("moorage.contrib.gpu", self._rows)

    def _rows(self, nodes: Nodes) -> Any:
        rows = np.zeros(len(nodes), dtype=ROW)
        for index, node in enumerate(nodes):
            if node.allocatable.get(GPU_COUNT):
                rows[index] = self.on(node)
        return rows

    def on(self, node: NodeView, without: str = "") -> tuple[list[int], int]:
        """Return `free` and `kinds` of one node, without one of its pods."""
        count = min(node.allocatable.get(GPU_COUNT, 0), MAX_CARDS)
        free, kinds = [WHOLE] * count + [0] * (MAX_CARDS - count), 0
        for request, cards in self._pods(node, without):
            kinds |= kind(request)
            # A pod that does not say which cards it has was bound by another scheduler, or is only nominated.
            for card in cards or given(request, free) or emptiest(request, free):
                free[card] = max(free[card] - request.milli, 0)
        return free, kinds

    def _pods(self, node: NodeView, without: str) -> Iterator[tuple[GpuRequest, tuple[int, ...]]]:
        """Return the pods that have GPUs; those whose cards are known come first."""
        later = []
        for pod in node.pods:
            request = gpu_request(pod)
            if request.cards and pod.uid != without:
                cards = self.booked.get(pod.uid) or cards_of(pod)
                if cards:
                    yield request, cards
                else:
                    later.append((request, cards))
        yield from later


def kind(request: GpuRequest) -> int:
    """Return a bit for the kind of request: parts of a card, one card, two cards and so on."""
    return 1 << (0 if request.is_part else request.cards)


def given(request: GpuRequest, free: Sequence[int], choose: Callable[[], int] | None = None) -> tuple[int, ...]:
    """Return the cards for a pod; empty if too few fit. These are the first idle ones; for a part of a card the one
    that `choose` selects, or the fullest that has enough."""
    fitting = [card for card, amount in enumerate(free) if amount >= request.milli]
    if len(fitting) < request.cards:
        return ()
    if not request.is_part:
        return tuple(fitting[: request.cards])
    return (choose() if choose else min(fitting, key=free.__getitem__),)


def emptiest(request: GpuRequest, free: Sequence[int]) -> tuple[int, ...]:
    """Return the cards that count for a pod that does not fit beside the running pods: some of these will end."""
    return tuple(sorted(range(len(free)), key=lambda card: -free[card])[: request.cards])
