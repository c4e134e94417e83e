"""The workloads of the engine benchmark. Each prepares the world and yields one pod after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from moorage.api.node import HOSTNAME, ZONE
from moorage.api.resources import POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, SERVICES
from moorage.bench import many_terms
from moorage.bench.world import BenchWorld, raw_meta, raw_pod

Pods = Iterator[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class EngineWorkload:
    """A workload. `pods(world)` may add objects to the world before it yields the first pod."""

    name: str
    description: str
    pods: Callable[[BenchWorld], Pods]
    per_node: int = 0
    """Running pods per node, for preemption; 0: spread at random."""
    attempts: int = 0
    """Number of pods to measure; 0: as the benchmark says."""
    schedulable: bool = True
    nodes: int = 0
    """Number of nodes, with as many running pods on each as in the benchmark; 0: as the benchmark says."""
    warm_up: int = 10
    """Number of pods before the first one that is measured."""
    config: str = ""
    """The configuration, unless another one is chosen."""
    finish_node: Callable[[dict[str, Any]], None] = lambda node: None
    """Adds fields to every node that the workload needs."""


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def plain(world: BenchWorld) -> Pods:
    """Yield pods with different requests, so that each has its own template."""
    for i in _numbers():
        yield raw_pod(f"plain-{i}", cpu=50 + i % 977, memory=64 + i % 991, labels={"app": f"plain-{i}"})


def replicasets(world: BenchWorld) -> Pods:
    """Yield plain pods, each owned by its own ReplicaSet, so that default spreading applies."""
    sets = ({"metadata": raw_meta(f"rs-{i}"), "spec": _selects(f"rs-{i}")} for i in range(500))
    world.put(REPLICA_SETS, sets)
    for i in _numbers():
        name = f"rs-{i % 500}"
        yield raw_pod(f"owned-{i}", cpu=50 + i % 977, memory=64 + i % 991, labels={"app": name}, owner=name)


def template(world: BenchWorld) -> Pods:
    for i in _numbers():
        yield raw_pod(f"same-{i}", labels={"app": "same"})


def template_replicaset(world: BenchWorld) -> Pods:
    world.put(REPLICA_SETS, [{"metadata": raw_meta("same"), "spec": _selects("same")}])
    for i in _numbers():
        yield raw_pod(f"same-{i}", labels={"app": "same"}, owner="same")


def interleaved(templates: int, *, owned: bool = False) -> Callable[[BenchWorld], Pods]:
    """Return a workload of several templates in turn, each with its own requests and labels."""

    def pods(world: BenchWorld) -> Pods:
        if owned:
            world.put(
                REPLICA_SETS,
                ({"metadata": raw_meta(f"turn-{i}"), "spec": _selects(f"turn-{i}")} for i in range(templates)),
            )
        for i in _numbers():
            turn = i % templates
            name = f"turn-{turn}"
            owner = {"owner": name} if owned else {}
            yield raw_pod(f"{name}-{i}", cpu=50 + turn, memory=64 + turn % 97, labels={"app": name}, **owner)

    return pods


def selector_and_taints(world: BenchWorld) -> Pods:
    toleration = {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
    for i in _numbers():
        yield raw_pod(
            f"sel-{i}", cpu=50 + i % 977, labels={"app": f"sel-{i}"},
            nodeSelector={"disk": ("ssd", "hdd")[i % 2]}, tolerations=[toleration],
        )  # fmt: skip


def spread(world: BenchWorld) -> Pods:
    for i in _numbers():
        app = f"app-{i % 50}"
        constraint = {
            "maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }  # fmt: skip
        yield raw_pod(f"spread-{i}", cpu=50 + i % 977, labels={"app": app}, topologySpreadConstraints=[constraint])


def spread_first_sight(world: BenchWorld) -> Pods:
    """Yield pods with a new selector each."""
    for i in _numbers():
        app = {"app": f"app-{i % 500}", "new": f"{i}"}
        constraint = {
            "maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": app},
        }  # fmt: skip
        yield raw_pod(f"first-{i}", cpu=50 + i % 977, labels=app, topologySpreadConstraints=[constraint])


def affinity(world: BenchWorld) -> Pods:
    for i in _numbers():
        term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"app-{i % 50}"}}}
        required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield raw_pod(f"near-{i}", cpu=50 + i % 977, labels={"app": f"near-{i % 50}"}, affinity=required)


def anti_affinity(world: BenchWorld) -> Pods:
    for i in _numbers():
        app = f"away-{i % 50}"
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
        required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield raw_pod(f"away-{i}", cpu=50 + i % 977, labels={"app": app}, affinity=required)


def preferred_affinity(world: BenchWorld) -> Pods:
    for i in _numbers():
        term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"app-{i % 50}"}}}
        soft = {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]
            }
        }
        yield raw_pod(f"soft-{i}", cpu=50 + i % 977, labels={"app": f"soft-{i % 50}"}, affinity=soft)


def services(world: BenchWorld) -> Pods:
    """Create 2,000 Services, and yield pods that each belong to one of them."""
    world.put(
        SERVICES, ({"metadata": raw_meta(f"svc-{i}"), "spec": {"selector": {"app": f"svc-{i}"}}} for i in range(2000))
    )
    for i in _numbers():
        yield raw_pod(f"svc-{i}", cpu=50 + i % 977, labels={"app": f"svc-{i % 2000}"})


def mixed(world: BenchWorld) -> Pods:
    kinds = [
        kind(world) for kind in (plain, replicasets, selector_and_taints, spread, affinity, anti_affinity, services)
    ]
    for i in _numbers():
        pod = next(kinds[i % len(kinds)])
        pod["metadata"]["name"] = pod["metadata"]["uid"] = f"mixed-{i}"
        yield pod


def unschedulable(world: BenchWorld) -> Pods:
    for i in _numbers():
        yield raw_pod(f"big-{i}", cpu=1_000_000 + i, memory=100 + i % 991, labels={"app": f"big-{i}"})


def fill(world: BenchWorld, specs: Sequence[dict[str, Any]] = ({},), namespace: str = "default") -> None:
    """Add one large pod of low priority to every node, with `specs` in turn, so that only preemption helps."""
    columns = world.engine.services.nodes()
    free = zip(columns.names, columns.free("cpu").tolist(), cycle(specs), strict=False)
    fillers = (
        running(f"filler-{name}", name, max(cpu - 1000, 0), namespace=namespace, **spec) for name, cpu, spec in free
    )
    world.put(PODS, fillers)


def running(name: str, node: str, cpu: int, app: str = "filler", **spec: Any) -> dict[str, Any]:
    pod = raw_pod(name, cpu=cpu, memory=64, labels={"app": app}, nodeName=node, **spec)
    pod["status"] = {"phase": "Running", "startTime": "2026-01-02T00:00:00Z"}
    return pod


def preemptors(world: BenchWorld, **spec: Any) -> Pods:
    """Yield pods that request more cpu than any node has free, but less than its victims hold."""
    for i in _numbers():
        yield raw_pod(
            f"urgent-{i}", cpu=6_000 + i % 97, memory=100, labels={"app": f"urgent-{i % 50}"}, priority=1000, **spec
        )


def preemption(world: BenchWorld) -> Pods:
    fill(world)
    yield from preemptors(world)


def preemption_pdb(world: BenchWorld) -> Pods:
    fill(world)
    budgets = (
        {
            "metadata": raw_meta(f"pdb-{i}"),
            "spec": {"selector": {"matchLabels": {"app": f"app-{i}"}}},
            "status": {"disruptionsAllowed": i % 3},
        }
        for i in range(100)
    )
    world.put(POD_DISRUPTION_BUDGETS, budgets)
    yield from preemptors(world)


def preemption_general(world: BenchWorld) -> Pods:
    """Yield preemptors with spreading and anti-affinity, which depend on pods anywhere."""
    fill(world)
    constraint = {
        "maxSkew": 100, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "app-1"}},
    }  # fmt: skip
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "urgent-none"}}}
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    yield from preemptors(world, topologySpreadConstraints=[constraint], affinity=required)


def _selects(app: str) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"app": app}}}


WORKLOADS: tuple[EngineWorkload, ...] = (
    EngineWorkload("plain", "a new template for each pod", plain),
    EngineWorkload("replicaset", "the same, owned by ReplicaSets", replicasets),
    EngineWorkload("template", "one template", template),
    EngineWorkload("template-replicaset", "one template, owned by a ReplicaSet", template_replicaset),
    *(
        EngineWorkload(f"interleaved-{n}", f"{n} templates in turn", interleaved(n), warm_up=3 * n)
        for n in (20, 100, 400, 2000)
    ),
    EngineWorkload(
        "interleaved-replicaset",
        "100 templates in turn, owned by ReplicaSets",
        interleaved(100, owned=True),
        warm_up=300,
    ),
    EngineWorkload("selector-taints", "node selector and tolerations", selector_and_taints),
    EngineWorkload("spread", "zone spread, known selectors", spread),
    EngineWorkload("spread-first", "zone spread, new selector each time", spread_first_sight),
    EngineWorkload("affinity", "required affinity on zone", affinity),
    EngineWorkload("anti-affinity", "required anti-affinity on hostname", anti_affinity),
    EngineWorkload("preferred-affinity", "preferred affinity on zone", preferred_affinity),
    EngineWorkload("services", "2,000 Services, system soft spread", services),
    *(
        EngineWorkload(f"terms-{name}", description, pods, attempts=150, nodes=50)
        for name, description, pods in (
            ("anti-affinity", "500 anti-affinity terms a pod", many_terms.anti_affinity),
            ("preferred", "500 preferred terms a pod", many_terms.preferred),
            ("spread", "200 spread constraints a pod", many_terms.spread),
            ("node-selector", "500 node selector terms a pod", many_terms.node_selector),
            ("tolerations", "500 tolerations a pod", many_terms.tolerations),
            ("namespaces", "a namespace selector over 1,000", many_terms.namespaces),
        )
    ),
    EngineWorkload("mixed", "seven of the above in turn", mixed),
    EngineWorkload("unschedulable", "fits nowhere", unschedulable, schedulable=False),
    EngineWorkload("preemption-4", "4 pods a node, resources only", preemption, 4, 40, schedulable=False),
    EngineWorkload(
        "preemption-4-general", "4 pods a node, spread and anti-affinity", preemption_general, 4, 40, schedulable=False
    ),
    EngineWorkload("preemption-4-pdb", "4 pods a node, 100 PDBs", preemption_pdb, 4, 40, schedulable=False),
    EngineWorkload("preemption-30", "30 pods a node, resources only", preemption, 30, 20, schedulable=False),
    EngineWorkload("preemption-30-pdb", "30 pods a node, 100 PDBs", preemption_pdb, 30, 20, schedulable=False),
)
