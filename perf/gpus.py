"""The GPU workload: nodes with eight cards, running pods that share them, and pods to schedule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from moorage.api.resources import PODS
from moorage.bench.world import BenchWorld, raw_pod
from moorage.contrib.gpu.requests import GPU_COUNT, GPU_INDEX, GPU_MILLI, MAX_CARDS

PARTS = (50, 100, 250, 330, 470, 500, 650, 810, 900)
"""Thousandths of a card that typical pods request, beside whole cards."""
TYPICAL = ", ".join(
    f"{{cpu: {cores}, gpuMilli: {milli}, weight: {weight}}}"
    for milli in (*PARTS, 1000)
    for cores, weight in ((2, 1), (4, 2), (8, 1))
)
POLICIES = ("FGD", "BestFit", "DotProduct", "GpuPacking", "GpuClustering", "GpuLeastFree")


def config(policy: str) -> str:
    """Return a configuration of GpuShare with one policy."""
    args = f"{{typicalPods: [{TYPICAL}, {{cpu: 1, weight: 5}}]}}" if policy == "FGD" else "{}"
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {{multiPoint: {{enabled: [{{name: GpuShare}}, {{name: {policy}, weight: 100}}]}}}}
    pluginConfig: [{{name: {policy}, args: {args}}}]
"""


def add_cards(node: dict[str, Any]) -> None:
    for amounts in (node["status"]["allocatable"], node["status"]["capacity"]):
        amounts.update({"cpu": "96", GPU_COUNT: str(MAX_CARDS), GPU_MILLI: str(1000 * MAX_CARDS)})


def parts(world: BenchWorld) -> Iterator[dict[str, Any]]:
    """Yield pods with their own template each: different cpu requests, parts of a card and whole cards in
    turn."""
    world.put(PODS, _running(world))
    for i in count():
        milli = (*PARTS, 1000)[i % (len(PARTS) + 1)]
        yield _gpu_pod(f"gpu-{i}", 1000 + i % 9767, milli)


def _running(world: BenchWorld) -> Iterator[dict[str, Any]]:
    """Yield pods that use a part of some cards of every node."""
    for row in range(world.nodes):
        for card in range(world.random.randrange(MAX_CARDS)):
            pod = _gpu_pod(f"on-{row}-{card}", 2000, world.random.choice(PARTS))
            pod["metadata"]["annotations"][GPU_INDEX] = str(card)
            pod["spec"]["nodeName"] = f"node-{row}"
            pod["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
            yield pod


def _gpu_pod(name: str, cpu: int, milli: int) -> dict[str, Any]:
    pod = raw_pod(name, cpu=cpu, labels={"app": name})
    pod["metadata"]["annotations"] = {GPU_MILLI: str(milli), GPU_COUNT: "1"}
    return pod
