"""One scenario per plugin of contrib, as data: nodes, what runs and is measured there, and where a pod goes.

The scenarios run on the embedded cluster (tests/kubectl) and on the real API server (tests/cluster), all in
one process with a profile per plugin. Each has nodes of its own, which its pods select. Without the plugin a
pod goes elsewhere: the expected node has more requests than the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.cluster import objects
from tests.cluster.objects import Json

POOL, HOST = "scenario", "kubernetes.io/hostname"
PLAIN = "plain"
"""The profile with the default plugins alone."""
LOAD = "load-"
"""Pods that run on a node from the beginning are called this and its name."""
CPUS = 8


class Cluster(Protocol):
    """Where the scenarios run."""

    def create(self, *items: Json) -> None: ...

    def wait_bound(self, name: str) -> str:
        """The node that a pod is bound to."""
        ...

    def wait_refused(self, name: str) -> str:
        """Why a pod waits."""
        ...

    def calm(self, machine: Machine) -> None:
        """From now on the node is idle and cold."""
        ...


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A node, and the pod on it."""

    name: str
    cpus: int = CPUS
    requests: str = ""
    """Cpu of the pod."""
    limits: str = ""
    used: int = 0
    """Percent of the cpus, measured."""
    deviation: int = 0
    """Of `used`."""
    temperature: int | None = None
    power: int = 0
    """Watts, measured."""
    leaving: bool = False
    """The pod is terminating."""
    labels: Mapping[str, str] = field(default_factory=dict)

    def node(self, pool: str) -> Json:
        return objects.node(self.name, cpu=str(self.cpus), labels={POOL: pool, **self.labels})

    def load(self) -> Json | None:
        if not (self.requests or self.used):
            return None
        pod = objects.pod(LOAD + self.name, requests=amounts(self.requests), nodeName=self.name)
        pod["spec"]["containers"][0]["resources"]["limits"] = amounts(self.limits)
        pod["spec"]["terminationGracePeriodSeconds"] = 300 if self.leaving else 0
        return pod


@dataclass(frozen=True, kw_only=True)
class Scenario:
    plugin: str
    machines: tuple[Machine, ...]
    expected: str
    args: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""
    """Why the first node is refused, until it is calm."""

    @property
    def pool(self) -> str:
        return self.plugin.lower()

    def profile(self, source: Mapping[str, Any]) -> Json:
        """`source` are the arguments that say where values come from."""
        enabled = {"enabled": [{"name": self.plugin, "weight": 100}]}
        config = {"name": self.plugin, "args": {**self.args, **source}}
        return {"schedulerName": self.pool, "plugins": {"multiPoint": enabled, **QUEUE}, "pluginConfig": [config]}

    def check(self, cluster: Cluster) -> None:
        """The plugin decides, and without it another node is chosen."""
        own, plain, waits = (f"{prefix}-{self.pool}" for prefix in ("own", "plain", "waits"))
        cluster.create(probe(own, self.pool, {POOL: self.pool}))
        assert cluster.wait_bound(own) == self.expected
        cluster.create(probe(plain, PLAIN, {POOL: self.pool}))
        assert cluster.wait_bound(plain) != self.expected
        if self.refusal:
            first = self.machines[0]
            cluster.create(probe(waits, self.pool, {HOST: first.name}))
            assert self.refusal in cluster.wait_refused(waits)
            cluster.calm(first)
            assert cluster.wait_bound(waits) == first.name


def probe(name: str, scheduler: str, selector: Mapping[str, str]) -> Json:
    """Small enough to change nothing for the next one."""
    return objects.pod(name, scheduler=scheduler, requests=amounts("100m"), nodeSelector=dict(selector))


def amounts(cpu: str) -> dict[str, str]:
    return {"cpu": cpu} if cpu else {}


QUEUE = {"queueSort": {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "QOSSort"}]}}
"""Of all profiles: there is one queue in a process."""
CURVE = {"k0": 471.7, "k1": -91.5, "k2": -0.07}
"""A node that is in use already needs less for a pod more."""


def watts(idle: int, most: int) -> dict[str, str]:
    return {"moorage.dev/idle-watts": str(idle), "moorage.dev/max-watts": str(most)}


SCENARIOS = (
    Scenario(
        plugin="NodeResourcesAllocatable",
        machines=(Machine(name="large", cpus=16), Machine(name="small", cpus=4, requests="2")),
        expected="small",
    ),
    Scenario(
        plugin="PodState",
        machines=(Machine(name="staying"), Machine(name="leaving", requests="4", leaving=True)),
        expected="leaving",
    ),
    Scenario(
        plugin="NodeMetadata",
        args={
            "metadataKey": "example.com/generation",
            "metadataSource": "Label",
            "metadataType": "Number",
            "scoringStrategy": "Highest",
        },
        machines=(
            Machine(name="ninth", labels={"example.com/generation": "9"}),
            Machine(name="tenth", requests="4", labels={"example.com/generation": "10"}),
        ),
        expected="tenth",
    ),
    Scenario(
        plugin="LowCpuScheduler",
        machines=(
            Machine(name="overloaded", used=88),
            Machine(name="loaded", used=60),
            Machine(name="reserved", requests="4", used=10),
        ),
        expected="reserved",
        refusal="1 cpu usage too high: above 85%",
    ),
    Scenario(
        plugin="TargetLoadPacking",
        args={"targetUtilization": 40},
        machines=(
            Machine(name="empty"),
            Machine(name="filling", requests="1", limits="1", used=12),
            Machine(name="above-target", used=80),
        ),
        expected="filling",
    ),
    Scenario(
        plugin="LoadVariationRiskBalancing",
        args={"safeVarianceMargin": 3},
        machines=(Machine(name="varying", used=30, deviation=30), Machine(name="steady", requests="4", used=40)),
        expected="steady",
    ),
    Scenario(
        plugin="LowRiskOverCommitment",
        machines=(
            Machine(name="overcommitted", requests="1", limits="16", used=50),
            Machine(name="limited", requests="4", limits="4", used=25),
        ),
        expected="limited",
    ),
    Scenario(
        plugin="Peaks",
        args={"nodePowerModel": {"idle": CURVE, "in-use": CURVE}},
        machines=(Machine(name="idle"), Machine(name="in-use", requests="4", used=50)),
        expected="in-use",
    ),
    Scenario(
        plugin="EnergyAware",
        machines=(
            Machine(name="hot", temperature=80, power=50, labels=watts(50, 60)),
            Machine(name="asleep", temperature=20, power=5, labels=watts(100, 150)),
            Machine(name="awake", requests="4", temperature=60, power=200, labels=watts(100, 400)),
        ),
        expected="awake",
        refusal="1 temperature too high: above 75 °C",
    ),
)
IDS = [scenario.plugin for scenario in SCENARIOS]
MACHINES = tuple(machine for scenario in SCENARIOS for machine in scenario.machines)
NODES = tuple(machine.node(scenario.pool) for scenario in SCENARIOS for machine in scenario.machines)

QUEUE_NODE = objects.node("two-places", pods="2", labels={POOL: "queue"})


def queued() -> list[Json]:
    """For QOSSort: pods that come before the scheduler does, in the opposite of its order."""
    found = [probe(name, PLAIN, {POOL: "queue"}) for name in ("best-effort", "burstable", "guaranteed")]
    nothing, _, everything = (pod["spec"]["containers"][0]["resources"] for pod in found)
    nothing.clear()
    everything["requests"] = everything["limits"] = {"cpu": "100m", "memory": "64Mi"}
    return found


def check_queue(cluster: Cluster) -> None:
    """Two of three pods find a place: those whose turn comes first."""
    assert "1 Too many pods" in cluster.wait_refused("best-effort")
    assert cluster.wait_bound("guaranteed") == cluster.wait_bound("burstable") == "two-places"


def profiles(sources: Mapping[str, Mapping[str, Any]]) -> list[Json]:
    """Of all scenarios, and the one with the default plugins."""
    own = [scenario.profile(sources.get(scenario.plugin, {})) for scenario in SCENARIOS]
    return [*own, {"schedulerName": PLAIN, "plugins": QUEUE}]
