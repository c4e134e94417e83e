"""Turns a scenario into a workload: creates its pods one by one, and recreates them where the scenario says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from random import Random

from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.api.resources import AnyObject
from moorage.sim import events
from moorage.sim.arrivals import arrival_times
from moorage.sim.cluster import ENDED, PodLife, SimulatedCluster
from moorage.sim.objects import node, pod_template, replica_set, typed
from moorage.sim.scenario import PodWorkload, Scenario
from moorage.sim.workload import Assertion, Settings, Timed, merge


class ScenarioWorkload:
    """Implements `Workload`. Objects and pod templates are built once, which also finds errors in them."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._objects = [typed(manifest) for manifest in scenario.objects if isinstance(manifest, dict)]
        self._templates = [(workload, pod_template(workload)) for workload in scenario.workloads]
        self.settings = Settings(
            duration=scenario.duration,
            seed=scenario.seed,
            grace=scenario.grace,
            sample_interval=scenario.sample_interval,
            measures=scenario.measures,
            assertions=tuple(Assertion(each.measure, each.op, each.value, each.at) for each in scenario.assertions),
        )

    def start(self, seed: int) -> Iterable[AnyObject]:
        for shape in self._scenario.nodes:
            if shape.count is None:
                yield node(shape, shape.name)
            else:
                yield from (node(shape, f"{shape.name}-{i}", i) for i in range(shape.count))
        yield from self._objects
        for workload, template in self._templates:
            if workload.kind == "deployment":
                yield replica_set(workload, template)

    def actions(self, seed: int) -> Iterator[Timed]:
        scenario = self._scenario
        sources = {
            workload.name: PodSource(workload, template, f"{seed}/{workload.name}")
            for workload, template in self._templates
        }

        def scale(name: str, number: int) -> None:
            sources[name].scale(number)

        happenings = events.in_order(scenario.events, Random(f"{seed}/events"), scale)
        arrivals = (source.arrivals(scenario.duration) for source in sources.values())
        return merge(happenings, *arrivals)


class PodSource:
    """Creates the pods of one workload, and receives their end.

    Arrivals and lifetimes do not depend on what the scheduler does, so all configurations of a comparison see
    the same workload.
    """

    def __init__(self, workload: PodWorkload, template: Pod, seed: str) -> None:
        self._workload = workload
        self._template = template
        self._arrivals = Random(seed)
        self._lifetimes = Random(f"{seed}/lifetimes")
        self._later_lifetimes = Random(f"{seed}/later")
        """Draws the lifetimes of recreated pods."""
        self._numbers, self._later_numbers = count(), count()
        self._cluster: SimulatedCluster | None = None
        self._wanted = workload.count or 0
        self._live: dict[str, None] = {}
        """Keys of the pods of a deployment, newest last."""

    def arrivals(self, duration: float | None) -> Iterator[Timed]:
        """Yield the arrivals of pods."""
        workload = self._workload
        times = arrival_times(
            workload.arrival,
            self._arrivals,
            total=workload.count,
            rate=workload.rate,
            start=workload.start,
            end=workload.end if workload.end is not None else duration,
            burst=workload.burst,
            at=workload.at,
        )
        return ((time, self._arrive) for time in times)

    def scale(self, number: int) -> None:
        """Set the number of pods of a deployment."""
        self._wanted = number
        while self._cluster is not None and len(self._live) > number:
            key, _ = self._live.popitem()
            self._cluster.delete_pod(self._cluster.pods[key])
        self._refill()

    def gone(self, pod: Pod, why: str, life: PodLife) -> None:
        """Recreate a pod that is gone, if the workload requires it."""
        if self._workload.kind == "deployment":
            self._live.pop(pod.key, None)
            self._refill()
        elif self._workload.kind == "job" and why != ENDED and self._cluster is not None:
            self._add_later(self._cluster, life.seconds)

    def _arrive(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        if self._workload.kind != "deployment" or len(self._live) < self._wanted:
            self._add(cluster, str(next(self._numbers)), self._lifetime(self._lifetimes))

    def _refill(self) -> None:
        while self._cluster is not None and len(self._live) < self._wanted:
            self._add_later(self._cluster, self._lifetime(self._later_lifetimes))

    def _lifetime(self, random: Random) -> float | None:
        lifetime = self._workload.lifetime
        return None if lifetime is None else lifetime.draw(random)

    def _add_later(self, cluster: SimulatedCluster, seconds: float | None) -> None:
        self._add(cluster, f"again-{next(self._later_numbers)}", seconds)

    def _add(self, cluster: SimulatedCluster, ending: str, seconds: float | None) -> None:
        template = self._template
        name = f"{template.metadata.name}-{ending}"
        key = f"{template.metadata.namespace}/{name}"
        metadata = replace(template.metadata, name=name, uid=key, creation_timestamp=cluster.time_text())
        if self._workload.kind == "deployment":
            self._live[key] = None
        cluster.add(replace(template, metadata=metadata), PodLife(seconds, self))
