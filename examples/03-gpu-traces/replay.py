"""Replays the trace openb through the scheduler: pods arrive one after the other, none leaves, and each gets one
attempt. Prints how much GPU is in use when a load has arrived, as per cent of what there is.

python replay.py FOLDER [--trace default] [--policy FGD] [--seed 42]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from openb import Arrival, Trace

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.requests import CPU, node_allocatable
from mooring.contrib.gpu.fgd import FGDArgs, TypicalPodArgs
from mooring.contrib.gpu.fragmentation import Fragmentation, NodeStates
from mooring.contrib.gpu.gpu_share import CHOICE
from mooring.contrib.gpu.requests import GPU_COUNT, GPU_MODEL, MOST_CARDS, WHOLE, cards_of
from mooring.framework import PreFilterPlugin, PreScorePlugin, VectorScorePlugin
from mooring.testing import Cluster

POLICIES = ("Random", "DotProduct", "GpuClustering", "GpuPacking", "BestFit", "FGD")
LOADS = (50, 80, 90, 100, 110, 120, 130)


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


class Event(NamedTuple):
    """The cluster after one pod more, in milli."""

    arrived: int
    used: int
    fragmented: float
    placed: bool


class Ledger:
    """What pods hold, by what the API says: nodes by cards."""

    def __init__(self, nodes: Sequence[Node], typical: Sequence[dict[str, Any]]) -> None:
        self.rows = {node.name: row for row, node in enumerate(nodes)}
        amounts = [node_allocatable(node) for node in nodes]
        self.cpu = np.array([amount[CPU] for amount in amounts])
        self.cards = np.array(
            [[WHOLE * (card < amount[GPU_COUNT]) for card in range(MOST_CARDS)] for amount in amounts]
        )
        self.capacity = int(self.cards.sum())
        self.fragmentation = Fragmentation([TypicalPodArgs(**snake(each)).typical() for each in typical])
        self.models = np.array([self.fragmentation.model(node.labels[GPU_MODEL]) for node in nodes])
        self.fragmented = self.fragmentation.of(NodeStates(self.cpu, self.cards, self.models))

    def add(self, arrival: Arrival, pod: Pod) -> None:
        row = self.rows[pod.spec.node_name]
        self.cpu[row] -= arrival.cpu
        cards = cards_of(pod)
        assert len(cards) == arrival.count, pod
        for card in cards:
            self.cards[row, card] -= arrival.milli
        assert self.cards[row].min() >= 0, f"{pod.spec.node_name} gave more than it has to {pod.name}"
        one = slice(row, row + 1)
        state = NodeStates(self.cpu[one], self.cards[one], self.models[one])
        self.fragmented[row] = self.fragmentation.of(state)[0]


def snake(args: dict[str, Any]) -> dict[str, Any]:
    names = {"gpuMilli": "gpu_milli", "gpuCount": "gpu_count", "gpuCardModel": "gpu_card_model"}
    return {names.get(name, name): value for name, value in args.items()}


def replay(trace: Trace, policy: str, seed: int) -> Iterator[tuple[Event, int]]:
    """Every event, and the capacity of the cluster."""
    typical = trace.typical_pods()
    ledger, arrived, used = Ledger(trace.nodes, typical), 0, 0
    with Cluster(config=configuration(policy, typical), plugins=[Random], seed=seed) as cluster:
        cluster.add(trace.nodes)
        cluster.settle()
        for number, arrival in enumerate(trace.arrivals):
            cluster.add(arrival.pod(f"pod-{number}"))
            cluster.settle(0.1)
            pod = cluster.pod(f"pod-{number}")
            assert pod is not None
            arrived += arrival.gpu
            if pod.is_assigned:
                used += arrival.gpu
                ledger.add(arrival, pod)
            else:
                cluster.delete(pod)  # it gets no second attempt
            event = Event(arrived, used, float(ledger.fragmented.sum()), pod.is_assigned)
            yield event, ledger.capacity


def configuration(policy: str, typical: Sequence[dict[str, Any]]) -> str:
    profile = {
        "plugins": {
            "multiPoint": {"enabled": [{"name": "GpuShare"}, {"name": policy}]},
            "score": {"disabled": [{"name": "*"}], "enabled": [{"name": policy}]},
        },
        "pluginConfig": [{"name": "FGD", "args": {"typicalPods": typical}}] if policy == "FGD" else [],
    }
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return json.dumps({**header, "profiles": [profile]})
