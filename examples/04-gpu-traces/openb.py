"""What the published runs on the trace openb measure, as measures of `moorage simulate`, and the policy that they
compare with. GPU is in thousandths of a card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from moorage.api.pod import Pod
from moorage.api.requests import CPU, pod_requests
from moorage.contrib.gpu.fgd import TypicalPodArgs
from moorage.contrib.gpu.fragmentation import Fragmentation, NodeStates
from moorage.contrib.gpu.gpu_share import CHOICE
from moorage.contrib.gpu.requests import GPU_COUNT, GPU_MILLI, GPU_MODEL, MAX_CARDS, WHOLE, cards_of
from moorage.framework import PreFilterPlugin, PreScorePlugin, VectorScorePlugin

FGD = Path(__file__).parent / "FGD.yaml"


def milli(pod: Pod) -> int:
    """Of each of its cards."""
    return int(pod.annotations.get(GPU_MILLI, 0))


def requested(pod: Pod) -> int:
    return milli(pod) * int(pod.annotations.get(GPU_COUNT, 0))


class Arrived:
    """GPU that has been asked for so far."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, view: Any) -> float:
        self.total += sum(map(requested, view.arrived))
        return self.total


class Used:
    """GPU that is handed out."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, view: Any) -> float:
        self.total += sum(map(requested, view.bound))
        return self.total


class Fragmented:
    """GPU that is idle and of no use to typical pods, by what the API says of cards."""

    def __init__(self) -> None:
        self.fragmentation = Fragmentation([TypicalPodArgs(**snake(each)).typical() for each in typical_pods()])
        self.rows: dict[str, int] = {}

    def __call__(self, view: Any) -> float:
        if not self.rows:
            self._begin(view.nodes)
        for pod in view.bound:
            self._add(pod)
        return float(self.fragmented.sum())

    def _begin(self, nodes: Any) -> None:
        self.rows = {name: row for row, name in enumerate(nodes.names)}
        self.cpu = nodes.allocatable(CPU).copy()
        self.cards = WHOLE * (np.arange(MAX_CARDS) < nodes.allocatable(GPU_COUNT)[:, np.newaxis])
        models = [self.fragmentation.model(view.node.labels[GPU_MODEL]) for view in nodes]
        self.models = np.array(models)
        self.fragmented = self.fragmentation.of(NodeStates(self.cpu, self.cards, self.models))

    def _add(self, pod: Pod) -> None:
        row = self.rows[pod.spec.node_name]
        self.cpu[row] -= pod_requests(pod)[CPU]
        for card in cards_of(pod):
            self.cards[row, card] -= milli(pod)
        assert self.cards[row].min() >= 0, f"{pod.spec.node_name} gave more than it has to {pod.name}"
        one = slice(row, row + 1)
        state = NodeStates(self.cpu[one], self.cards[one], self.models[one])
        self.fragmented[row] = self.fragmentation.of(state)[0]


def typical_pods() -> list[dict[str, Any]]:
    """Those of FGD's configuration."""
    [profile] = yaml.safe_load(FGD.read_text())["profiles"]
    pods: list[dict[str, Any]] = profile["pluginConfig"][0]["args"]["typicalPods"]
    return pods


def snake(args: dict[str, Any]) -> dict[str, Any]:
    names = {"gpuMilli": "gpu_milli", "gpuCount": "gpu_count", "gpuCardModel": "gpu_card_model"}
    return {names.get(name, name): value for name, value in args.items()}


class Random(PreFilterPlugin, PreScorePlugin, VectorScorePlugin):
    """Any node and any card, to compare with."""

    name = "Random"

    def pre_filter(self, state: Any, pod: Any, nodes: Any) -> None:
        state.write(CHOICE, self.choose)

    def choose(self, pod: Any, request: Any, node: Any, free: Sequence[int]) -> int:
        return self.handle.random.choice([card for card, g in enumerate(free) if g >= request.milli])

    def pre_score(self, state: Any, pod: Any, nodes: Any) -> None:
        state.write(self.name, self.handle.random.choice(nodes.names))

    def score_nodes(self, state: Any, pod: Any, nodes: Any) -> Any:
        return nodes.named(state.read(self.name)) * 100
