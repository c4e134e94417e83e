"""Workloads of Coscheduling and LowCpuScheduler: groups of pods, and nodes with measured load."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from moorage.bench.workloads import Pods, plain
from moorage.bench.world import BenchWorld, raw_meta, raw_pod
from moorage.contrib.coscheduling.groups import LABEL, PODGROUPS
from moorage.contrib.metrics import CPU, MEMORY, Sample

LOW_CPU = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: LowCpuScheduler}]}}}]
"""


def low_cpu(world: BenchWorld) -> Pods:
    """Yield plain pods on nodes with measured usage; a few use too much."""
    plugin: Any = world.profile.plugins["LowCpuScheduler"]
    names = plugin.handle.nodes.names
    values = {measure: np.array([world.random.uniform(0, 75) for _ in names]) for measure in (CPU, MEMORY)}
    plugin.usage.accept(Sample(names, values, np.full(len(names), plugin.handle.clock.wall())), plugin.handle)
    yield from plain(world)


COSCHEDULING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: PrioritySort}], enabled: [{name: Coscheduling}]}}}]
"""
GANGS, MEMBERS = 1000, 3
"""Number of PodGroups that are created together, and of their members."""
INDEX = "batch.kubernetes.io/job-completion-index"


def gangs(world: BenchWorld) -> Pods:
    """Yield the pods of indexed jobs of three, each with its own template because of a label.

    All members of a group are known when the first one is scheduled: the world is always two pods ahead.
    """
    pods = _members(world)
    for _ in range(MEMBERS - 1):
        world.enqueue(next(pods))
    yield from pods


def _members(world: BenchWorld) -> Pods:
    for i in count():
        if i % GANGS == 0:
            names = (f"gang-{group:05}" for group in range(i, i + GANGS))
            world.put(PODGROUPS, ({"metadata": raw_meta(name), "spec": {"minMember": MEMBERS}} for name in names))
        for member in range(MEMBERS):
            yield raw_pod(
                f"gang-{i:05}-{member}",
                cpu=50 + i % 977,
                memory=64 + i % 991,
                labels={"app": f"gang-{i}", LABEL: f"gang-{i:05}", INDEX: f"{member}"},
            )
