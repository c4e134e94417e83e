"""Replays the trace openb through the scheduler: pods arrive one after the other, none leaves, and each gets
one attempt. Prints how much GPU is in use when a load has arrived, both as per cent of all GPU.

python replay.py FOLDER [--trace default] [--policies FGD BestFit] [--seeds 42 43] [--record results.csv]
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from openb import Arrival, Trace

from mooring.api.node import Node
from mooring.api.pod import Pod
from mooring.api.requests import CPU, node_allocatable
from mooring.contrib.gpu.fgd import TypicalPodArgs
from mooring.contrib.gpu.fragmentation import Fragmentation, NodeStates
from mooring.contrib.gpu.gpu_share import CHOICE
from mooring.contrib.gpu.requests import GPU_COUNT, GPU_MODEL, MOST_CARDS, WHOLE, cards_of
from mooring.framework import PreFilterPlugin, PreScorePlugin, VectorScorePlugin
from mooring.testing import Cluster

POLICIES = ("Random", "DotProduct", "GpuClustering", "GpuPacking", "BestFit", "FGD")
RECORDED = (50, 60, 70, *range(80, 131))
"""Loads, in per cent of all GPU."""
PRINTED = (50, 80, 90, 100, 110, 120, 130)


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


class Measures(NamedTuple):
    """Per cent."""

    in_use: float
    """Of all GPU."""
    fragmented: float
    """Of all GPU."""
    fragmented_of_idle: float


class Curve:
    """What is measured, by whole per cent of load."""

    def __init__(self) -> None:
        self._events: dict[int, list[Measures]] = {}
        self.pods = self.failed = 0

    def add(self, event: Event, capacity: int) -> None:
        in_use = round(100 * event.used / capacity, 2)
        ratio = round(100 * event.fragmented / (capacity - event.used), 2)
        found = Measures(in_use, 100 * event.fragmented / capacity, ratio)
        self._events.setdefault(round(100 * event.arrived / capacity), []).append(found)
        self.pods += 1
        self.failed += not event.placed

    def at(self, load: int) -> Measures:
        """The mean of all events at that load."""
        events = self._events.get(load) or self._events[load - 1] + self._events[load + 1]
        return Measures(*(round(float(np.mean(values)), 2) for values in zip(*events, strict=True)))


def measured(trace: Trace, policy: str, seed: int) -> Curve:
    curve = Curve()
    for event, capacity in replay(trace, policy, seed):
        curve.add(event, capacity)
    return curve


def main() -> None:
    parser = argparse.ArgumentParser(description="Replay the trace openb.")
    parser.add_argument("folder", type=Path, help="where the files of the trace are")
    parser.add_argument("--trace", default="default")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=POLICIES)
    parser.add_argument("--seeds", nargs="+", type=int, default=range(42, 52))
    parser.add_argument("--record", type=Path, help="append every run to this file")
    options = parser.parse_args()
    print("policy         seed  pods failed", *(f"{load:6}" for load in PRINTED))
    for seed in options.seeds:
        trace = Trace(options.folder, options.trace, seed)
        for policy in options.policies:
            curve = measured(trace, policy, seed)
            figures = (f"{curve.at(load).in_use:6.2f}" for load in PRINTED)
            print(f"{policy:14} {seed:4} {curve.pods:5} {curve.failed:6}", *figures, flush=True)
            if options.record:
                record(options.record, [options.trace, policy, seed, curve.pods, curve.failed], curve)


def record(path: Path, run: list[Any], curve: Curve) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if is_new:
            rows.writerow(["trace", "policy", "seed", "pods", "failed", *RECORDED])
        rows.writerow([*run, *(f"{curve.at(load).in_use:.2f}" for load in RECORDED)])


if __name__ == "__main__":
    main()
