"""The speed of simulations: many pods at once, and a day of short ones."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from moorage.api import decoding
from moorage.api.errors import MoorageError
from moorage.api.resources import PODS, AnyObject
from moorage.app.configuration import configure
from moorage.bench.world import raw_pod
from moorage.sim.loading import read_scenario
from moorage.sim.objects import node
from moorage.sim.scenario import NodeShape
from moorage.sim.simulation import Simulation
from moorage.sim.tally import RunTally
from moorage.sim.workload import AddObject, Settings, Timed, Workload

DAY = 86_400
ZONES = 10
CPUS, MEMORY = "16", "64Gi"

DESCRIPTIONS = {"plain": "all at once, one template each", "day": "short pods over a day"}


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """The figures of one simulation."""

    workload: str
    nodes: int
    pods: int
    """Number of scheduled pods."""
    virtual_seconds: float
    seconds: float
    cpu_seconds: float
    """Less than `seconds` on a machine that does other work as well."""
    pods_per_second: float
    peak_rss_mb: float
    """Peak memory of the process so far."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class PlainPods:
    """Pods that arrive at once, each with its own template. Implements `Workload`."""

    settings = Settings()

    def __init__(self, nodes: int, pods: int) -> None:
        self._nodes = nodes
        self._pods = pods

    def start(self, seed: int) -> Iterable[AnyObject]:
        shape = NodeShape(allocatable={"cpu": CPUS, "memory": MEMORY}, zones=ZONES)
        return (node(shape, f"node-{number}", number) for number in range(self._nodes))

    def actions(self, seed: int) -> Iterator[Timed]:
        random = Random(seed)
        for number in range(self._pods):
            cpu, memory = random.randrange(50, 400), random.randrange(50, 1000)
            raw = raw_pod(f"plain-{number}", cpu=cpu, memory=memory, labels={"app": f"app-{number}"})
            yield 0.0, AddObject(decoding.convert(PODS, raw))


def day(nodes: int, pods: int) -> Workload:
    """Return a workload of services that stay and three kinds of short pods over a day."""
    rate = pods / DAY
    text = f"""
    duration: 24h
    nodes: [{{name: node, count: {nodes}, zones: {ZONES}, allocatable: {{cpu: {CPUS}, memory: {MEMORY}}}}}]
    workloads:
      - {{name: service, count: {nodes // 10}, as: deployment, shape: {{cpu: 1, memory: 4Gi}}}}
      - {{name: short, rate: {0.6 * rate}, arrival: poisson, shape: {{cpu: 500m, memory: 1Gi}},
         lifetime: {{exponential: 10m}}}}
      - {{name: batch, rate: {0.3 * rate}, arrival: burst, burst: 100, shape: {{cpu: 250m, memory: 512Mi}},
         lifetime: {{uniform: {{min: 1m, max: 5m}}}}}}
      - {{name: long, rate: {0.1 * rate}, arrival: poisson, shape: {{cpu: 1, memory: 4Gi}},
         lifetime: {{lognormal: {{median: 10m, sigma: 1}}}}}}
    """
    return read_scenario(text, "<day>", Path())


def measure(name: str, workload: Workload, nodes: int, seed: int, progress: Callable[[int], None]) -> SimulationResult:
    """Run the workload once with the default profile. Its results go to a temporary folder."""
    shown = 0

    def on_progress(_: float, tally: RunTally) -> None:
        nonlocal shown
        progress(tally.scheduled - shown)
        shown = tally.scheduled

    began = time.process_time()
    simulation = Simulation(workload, config=configure(discover=False), seed=seed)
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as folder:
        result = simulation.run(Path(folder), on_progress=on_progress)
    if result["pending"]:
        raise MoorageError(f"{result['pending']:g} pods found no node; use more --nodes or fewer pods")
    scheduled = int(result["scheduled"])
    return SimulationResult(
        name,
        nodes,
        scheduled,
        result.virtual_seconds,
        result.real_seconds,
        time.process_time() - began,
        scheduled / result.real_seconds,
        peak_rss_mb(),
    )


def peak_rss_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3
