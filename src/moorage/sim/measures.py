"""Measures of a simulated cluster, and the series of their samples.

Samples are taken at intervals and computed in columns over the nodes; nothing here runs for every attempt.
Names have parts, as in `utilisation.cpu.stddev`. Custom measures are functions of a `ClusterView`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from moorage.api.node import ZONE
from moorage.api.pod import Pod
from moorage.api.requests import CPU, MEMORY
from moorage.framework.nodes import FloatArray, Nodes
from moorage.scheduler.engine import Engine
from moorage.sim.cluster import SimulatedCluster
from moorage.sim.tally import RunTally

PODS = "pods"
MAX_SAMPLES = 1000
"""Maximum samples in a series without a fixed interval. Beyond it, every second sample is dropped and the
interval doubles."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster at one moment, for custom measures. Read it, and keep no part of it."""

    time: float
    """Virtual seconds since the start."""
    nodes: Nodes
    """All nodes in columns."""
    pods: Collection[Pod]
    """All pods, including pending ones."""
    tally: RunTally
    """The counts so far."""
    arrived: Sequence[Pod]
    """Pods that arrived since the last sample."""
    bound: Sequence[Pod]
    """Pods that were bound since the last sample."""
    gone: Sequence[Pod]
    """Pods that disappeared since the last sample, including pending ones."""


Measure = Callable[[ClusterView], float]
OwnMeasure = Measure | type[Any]
"""A function, or a class that is instantiated for every run and whose instance is called, so that it can keep state."""
Sample = dict[str, float]


class PodChanges:
    """Implements `PodWatcher`: the changes of pods between two samples."""

    def __init__(self) -> None:
        self.came: list[Pod] = []
        self.ran: list[Pod] = []
        self.went: list[Pod] = []

    def added(self, pod: Pod) -> None:
        self.came.append(pod)

    def bound(self, pod: Pod) -> None:
        self.ran.append(pod)

    def gone(self, pod: Pod, why: str) -> None:
        self.went.append(pod)


class Sampler:
    """Takes the samples of one run."""

    def __init__(
        self, engine: Engine, cluster: SimulatedCluster, tally: RunTally, own: Mapping[str, OwnMeasure] | None = None
    ) -> None:
        self._engine = engine
        self._cluster = cluster
        self._tally = tally
        self._own: dict[str, Measure] = {
            name: made() if isinstance(made, type) else made for name, made in (own or {}).items()
        }
        self._news = PodChanges()
        if self._own:
            cluster.watchers.append(self._news)
        self._resources: list[str] = []
        self._node_version = -1
        self._waits_seen = 0

    def sample(self) -> Sample:
        """Return the current value of every measure."""
        tally, nodes = self._tally, self._engine.services.nodes()
        found: Sample = {
            "arrived": tally.arrived,
            "scheduled": tally.scheduled,
            "running": tally.running,
            "pending": tally.pending,
            "attempts": tally.attempts,
            "refused": tally.refused,
            "preempted": tally.events["Preempted"],
            **tally.departed,
            "nodes": len(nodes),
        }
        if len(nodes):
            for resource in self._known(nodes):
                found.update(utilisation(nodes, resource))
            found["largestPod"] = largest_pod(nodes)
            found["zoneSkew"] = zone_skew(nodes)
        found.update({f"pending.{plugins}": n for plugins, n in tally.pending_by.items() if plugins})
        found.update(self._own_measures(nodes))
        return found

    def _own_measures(self, nodes: Nodes) -> Iterator[tuple[str, float]]:
        news = self._news
        time, pods = self._cluster.clock.now(), self._cluster.pods.values()
        view = ClusterView(time, nodes, pods, self._tally, tuple(news.came), tuple(news.ran), tuple(news.went))
        for changed in (news.came, news.ran, news.went):
            changed.clear()
        for name, measure in self._own.items():
            yield name, float(measure(view))

    def waits(self) -> Sample:
        """Return how long pods waited to be bound, over the whole run."""
        return waiting(np.array(self._tally.waits))

    def recent_waits(self) -> Sample:
        """Return the same for pods that were bound since the last call."""
        fresh = np.array(self._tally.waits[self._waits_seen :])
        self._waits_seen = len(self._tally.waits)
        return waiting(fresh)

    def _known(self, nodes: Nodes) -> list[str]:
        """Return the resources that nodes have."""
        version = self._engine.cache.table.node_version
        if version != self._node_version:
            self._node_version = version
            self._resources = sorted({name for view in nodes for name in view.allocatable} - {PODS})
        return self._resources


def waiting(seconds: FloatArray) -> Sample:
    """Return the median and the 99th percentile, or nothing if there are no values."""
    if not len(seconds):
        return {}
    median, late = np.percentile(seconds, [50, 99])
    return {"wait.p50": float(median), "wait.p99": float(late)}


def utilisation(nodes: Nodes, resource: str) -> Sample:
    """Return the requested share of a resource: of the whole cluster, and over the nodes that have the resource."""
    there, asked = nodes.floats("allocatable", resource), nodes.floats("requested", resource)
    has = there > 0
    total = float(there.sum())
    if not total:
        return {}
    shares = asked[has] / there[has]
    name = f"utilisation.{resource}"
    return {
        name: float(asked[has].sum()) / total,
        f"{name}.min": float(shares.min()),
        f"{name}.max": float(shares.max()),
        f"{name}.stddev": float(shares.std()),
    }


def largest_pod(nodes: Nodes) -> float:
    """Return the size of the largest pod that fits on a node that is not cordoned, as a share of the largest node.

    If much is free but little of it on one node, the cluster is fragmented. Size means cpu and memory.
    """
    uncordoned = nodes.by_taints(lambda found: not found.unschedulable)
    fits = uncordoned & (nodes.allocatable(PODS) > nodes.requested(PODS))
    share = np.where(fits, 1.0, 0.0)
    for resource in (CPU, MEMORY):
        largest = int(nodes.allocatable(resource).max())
        if largest:
            share = np.minimum(share, nodes.free(resource) / largest)
    return max(0.0, float(share.max()))


def zone_skew(nodes: Nodes) -> float:
    """Return the number of pods in the fullest zone minus those in the emptiest, or 0 without zones."""
    zones = nodes.label_codes(ZONE)
    labelled = zones >= 0
    if not labelled.any():
        return 0.0
    _, places = np.unique(zones[labelled], return_inverse=True)
    pods = np.bincount(places, weights=nodes.requested(PODS)[labelled])
    return float(pods.max() - pods.min())


class SampleSeries:
    """Samples by name, all of the same length. Without a fixed interval, only as many are kept as a plot needs."""

    def __init__(self, interval: float | None = None) -> None:
        self.interval = interval or 1.0
        """Virtual seconds to the next sample."""
        self._thins = interval is None
        self.columns: dict[str, array[float]] = {"time": array("d")}

    def __len__(self) -> int:
        return len(self.columns["time"])

    def add(self, time: float, sample: Sample) -> None:
        """Add a sample."""
        length = len(self)
        self.columns["time"].append(time)
        for name, value in sample.items():
            if name not in self.columns:
                self.columns[name] = array("d", [nan]) * length
            self.columns[name].append(value)
        for column in self.columns.values():
            if len(column) == length:
                column.append(nan)
        if self._thins and length >= MAX_SAMPLES:
            self.interval *= 2
            self.columns = {name: column[::2] for name, column in self.columns.items()}
