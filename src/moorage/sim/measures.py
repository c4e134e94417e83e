"""What is measured of a simulated cluster, and the series that the samples make.

A sample is taken now and then, in columns over the nodes; nothing here runs for every attempt. Names have
parts: `utilisation.cpu.stddev`. Own measures are functions of a `ClusterView`.
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
"""In a series without a set interval; then every second one is dropped and the interval doubles."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster at one moment, for own measures. Read it, and keep nothing of it."""

    time: float
    """Virtual seconds since the start."""
    nodes: Nodes
    """All nodes in columns."""
    pods: Collection[Pod]
    """All pods, pending ones included."""
    tally: RunTally
    """What was counted so far."""
    arrived: Sequence[Pod]
    """Pods that have come since the last sample."""
    bound: Sequence[Pod]
    """Pods that were bound since the last sample."""
    gone: Sequence[Pod]
    """Pods that have gone since the last sample, pending ones included."""


Measure = Callable[[ClusterView], float]
OwnMeasure = Measure | type[Any]
"""A class is instantiated for every run, and its instance called: so it may keep sums."""
Sample = dict[str, float]


class PodChanges:
    """Implements `PodWatcher`: what has happened to pods between two samples."""

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
    """Takes samples of one run."""

    def __init__(
        self,
        engine: Engine,
        cluster: SimulatedCluster,
        tally: RunTally,
        own: Mapping[str, OwnMeasure] | None = None,
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
        self._node_generation = -1
        self._waits_seen = 0

    def sample(self) -> Sample:
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
        view = ClusterView(
            time, nodes, pods, self._tally, tuple(news.came), tuple(news.ran), tuple(news.went)
        )
        for changed in (news.came, news.ran, news.went):
            changed.clear()
        for name, measure in self._own.items():
            yield name, float(measure(view))

    def waits(self) -> Sample:
        """How long pods waited to be bound, all so far."""
        return waiting(np.array(self._tally.waits))

    def recent_waits(self) -> Sample:
        """Those that were bound since this was asked last."""
        fresh = np.array(self._tally.waits[self._waits_seen :])
        self._waits_seen = len(self._tally.waits)
        return waiting(fresh)

    def _known(self, nodes: Nodes) -> list[str]:
        """The resources that nodes have."""
        generation = self._engine.cache.table.node_generation
        if generation != self._node_generation:
            self._node_generation = generation
            self._resources = sorted({name for view in nodes for name in view.allocatable} - {PODS})
        return self._resources


def waiting(seconds: FloatArray) -> Sample:
    """In the middle, and of the slowest in a hundred; nothing when there are none."""
    if not len(seconds):
        return {}
    median, late = np.percentile(seconds, [50, 99])
    return {"wait.p50": float(median), "wait.p99": float(late)}


def utilisation(nodes: Nodes, resource: str) -> Sample:
    """What is requested of a resource, as a share: of all, and over the nodes that have some."""
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
    """The largest pod that fits on some node that is not cordoned, as a share of the cpu and memory of the
    largest one. A cluster that has much free and little of it in one place is fragmented."""
    uncordoned = nodes.by_taints(lambda found: not found.unschedulable)
    fits = uncordoned & (nodes.allocatable(PODS) > nodes.requested(PODS))
    share = np.where(fits, 1.0, 0.0)
    for resource in (CPU, MEMORY):
        largest = int(nodes.allocatable(resource).max())
        if largest:
            share = np.minimum(share, nodes.free(resource) / largest)
    return max(0.0, float(share.max()))


def zone_skew(nodes: Nodes) -> float:
    """Pods in the fullest zone less those in the emptiest; 0 without zones."""
    zones = nodes.label_codes(ZONE)
    labelled = zones >= 0
    if not labelled.any():
        return 0.0
    _, places = np.unique(zones[labelled], return_inverse=True)
    pods = np.bincount(places, weights=nodes.requested(PODS)[labelled])
    return float(pods.max() - pods.min())


class SampleSeries:
    """Samples by name, all of one length. With a set interval all are kept; without, at most so many that a
    plot needs."""

    def __init__(self, interval: float | None = None) -> None:
        self.interval = interval or 1.0
        """Virtual seconds to the next sample."""
        self._thins = interval is None
        self.columns: dict[str, array[float]] = {"time": array("d")}

    def __len__(self) -> int:
        return len(self.columns["time"])

    def add(self, time: float, sample: Sample) -> None:
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
