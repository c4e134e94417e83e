"""What is scheduled in a benchmark: each workload prepares the world and makes one pod after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from moorage.api.node import HOSTNAME, ZONE
from moorage.api.resources import (
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    SERVICES,
)
from moorage.bench import many_terms
from moorage.bench.world import World, make, meta

Pods = Iterator[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Workload:
    """`pods(world)` may put objects into the world before it makes the first pod."""

    name: str
    what: str
    pods: Callable[[World], Pods]
    per_node: int = 0
    """Running pods per node where that matters (preemption); 0: spread at random."""
    attempts: int = 0
    """Pods to measure; 0: the benchmark's number."""
    schedulable: bool = True
    nodes: int = 0
    """Nodes of the cluster, with as many running pods each as the benchmark's; 0: the benchmark's number."""
    warm_up: int = 10
    """Pods before the first that is measured."""
    config: str = ""
    """A configuration of its own, used unless another one is named."""
    finish_node: Callable[[dict[str, Any]], None] = lambda node: None
    """Adds to every node what the workload needs there."""


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def plain(world: World) -> Pods:
    """Every pod another template: other requests each time."""
    for i in _numbers():
        yield make(f"plain-{i}", cpu=50 + i % 977, memory=64 + i % 991, labels={"app": f"plain-{i}"})


def replicasets(world: World) -> Pods:
    """Plain pods, each owned by a ReplicaSet of its own, so that the system's soft spread applies."""
    sets = ({"metadata": meta(f"rs-{i}"), "spec": _selects(f"rs-{i}")} for i in range(500))
    world.put(REPLICA_SETS, sets)
    for i in _numbers():
        name = f"rs-{i % 500}"
        yield make(f"owned-{i}", cpu=50 + i % 977, memory=64 + i % 991, labels={"app": name}, owner=name)


def template(world: World) -> Pods:
    for i in _numbers():
        yield make(f"same-{i}", labels={"app": "same"})


def template_replicaset(world: World) -> Pods:
    world.put(REPLICA_SETS, [{"metadata": meta("same"), "spec": _selects("same")}])
    for i in _numbers():
        yield make(f"same-{i}", labels={"app": "same"}, owner="same")


def interleaved(templates: int, *, owned: bool = False) -> Callable[[World], Pods]:
    """So many templates in turn, each with requests and labels of its own; `owned` by ReplicaSets if
    wanted."""

    def pods(world: World) -> Pods:
        if owned:
            world.put(
                REPLICA_SETS,
                ({"metadata": meta(f"turn-{i}"), "spec": _selects(f"turn-{i}")} for i in range(templates)),
            )
        for i in _numbers():
            turn = i % templates
            name = f"turn-{turn}"
            owner = {"owner": name} if owned else {}
            yield make(f"{name}-{i}", cpu=50 + turn, memory=64 + turn % 97, labels={"app": name}, **owner)

    return pods


def selector_and_taints(world: World) -> Pods:
    toleration = {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
    for i in _numbers():
        yield make(
            f"sel-{i}", cpu=50 + i % 977, labels={"app": f"sel-{i}"},
            nodeSelector={"disk": ("ssd", "hdd")[i % 2]}, tolerations=[toleration],
        )  # fmt: skip


def spread(world: World) -> Pods:
    for i in _numbers():
        app = f"app-{i % 50}"
        constraint = {
            "maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }  # fmt: skip
        yield make(
            f"spread-{i}", cpu=50 + i % 977, labels={"app": app}, topologySpreadConstraints=[constraint]
        )


def spread_first_sight(world: World) -> Pods:
    """Every pod brings a selector that is new."""
    for i in _numbers():
        app = {"app": f"app-{i % 500}", "new": f"{i}"}
        constraint = {
            "maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": app},
        }  # fmt: skip
        yield make(f"first-{i}", cpu=50 + i % 977, labels=app, topologySpreadConstraints=[constraint])


def affinity(world: World) -> Pods:
    for i in _numbers():
        term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"app-{i % 50}"}}}
        required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield make(f"near-{i}", cpu=50 + i % 977, labels={"app": f"near-{i % 50}"}, affinity=required)


def anti_affinity(world: World) -> Pods:
    for i in _numbers():
        app = f"away-{i % 50}"
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
        required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield make(f"away-{i}", cpu=50 + i % 977, labels={"app": app}, affinity=required)


def preferred_affinity(world: World) -> Pods:
    for i in _numbers():
        term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"app-{i % 50}"}}}
        soft = {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]
            }
        }
        yield make(f"soft-{i}", cpu=50 + i % 977, labels={"app": f"soft-{i % 50}"}, affinity=soft)


def services(world: World) -> Pods:
    """2,000 Services with a selector each; every pod belongs to one of them."""
    world.put(
        SERVICES,
        ({"metadata": meta(f"svc-{i}"), "spec": {"selector": {"app": f"svc-{i}"}}} for i in range(2000)),
    )
    for i in _numbers():
        yield make(f"svc-{i}", cpu=50 + i % 977, labels={"app": f"svc-{i % 2000}"})


def mixed(world: World) -> Pods:
    kinds = [
        kind(world)
        for kind in (plain, replicasets, selector_and_taints, spread, affinity, anti_affinity, services)
    ]
    for i in _numbers():
        pod = next(kinds[i % len(kinds)])
        pod["metadata"]["name"] = pod["metadata"]["uid"] = f"mixed-{i}"
        yield pod


def unschedulable(world: World) -> Pods:
    for i in _numbers():
        yield make(f"big-{i}", cpu=1_000_000 + i, memory=100 + i % 991, labels={"app": f"big-{i}"})


def fill(world: World, specs: Sequence[dict[str, Any]] = ({},), namespace: str = "default") -> None:
    """One large low pod on every node, so that only preemption makes a place for a preemptor. Nodes take
    turns with `specs`."""
    columns = world.engine.services.nodes()
    free = zip(columns.names, columns.free("cpu").tolist(), cycle(specs), strict=False)
    fillers = (
        running(f"filler-{name}", name, max(cpu - 1000, 0), namespace=namespace, **spec)
        for name, cpu, spec in free
    )
    world.put(PODS, fillers)


def running(name: str, node: str, cpu: int, app: str = "filler", **spec: Any) -> dict[str, Any]:
    pod = make(name, cpu=cpu, memory=64, labels={"app": app}, nodeName=node, **spec)
    pod["status"] = {"phase": "Running", "startTime": "2026-01-02T00:00:00Z"}
    return pod


def preemptors(world: World, **spec: Any) -> Pods:
    """More cpu than any node has free, less than its lower pods hold."""
    for i in _numbers():
        yield make(
            f"urgent-{i}",
            cpu=6_000 + i % 97,
            memory=100,
            labels={"app": f"urgent-{i % 50}"},
            priority=1000,
            **spec,
        )


def preemption(world: World) -> Pods:
    fill(world)
    yield from preemptors(world)


def preemption_pdb(world: World) -> Pods:
    fill(world)
    budgets = (
        {
            "metadata": meta(f"pdb-{i}"),
            "spec": {"selector": {"matchLabels": {"app": f"app-{i}"}}},
            "status": {"disruptionsAllowed": i % 3},
        }
        for i in range(100)
    )
    world.put(POD_DISRUPTION_BUDGETS, budgets)
    yield from preemptors(world)


def preemption_general(world: World) -> Pods:
    """With spread and anti-affinity, which depend on pods anywhere."""
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


WORKLOADS: tuple[Workload, ...] = (
    Workload("plain", "every pod another template", plain),
    Workload("replicaset", "the same, owned by ReplicaSets", replicasets),
    Workload("template", "one template", template),
    Workload("template-replicaset", "one template, owned by a ReplicaSet", template_replicaset),
    *(
        Workload(f"interleaved-{n}", f"{n} templates in turn", interleaved(n), warm_up=3 * n)
        for n in (20, 100, 400, 2000)
    ),
    Workload(
        "interleaved-replicaset",
        "100 templates in turn, owned by ReplicaSets",
        interleaved(100, owned=True),
        warm_up=300,
    ),
    Workload("selector-taints", "node selector and tolerations", selector_and_taints),
    Workload("spread", "zone spread, known selectors", spread),
    Workload("spread-first", "zone spread, new selector each time", spread_first_sight),
    Workload("affinity", "required affinity on zone", affinity),
    Workload("anti-affinity", "required anti-affinity on hostname", anti_affinity),
    Workload("preferred-affinity", "preferred affinity on zone", preferred_affinity),
    Workload("services", "2,000 Services, system soft spread", services),
    *(
        Workload(f"terms-{name}", what, pods, attempts=150, nodes=50)
        for name, what, pods in (
            ("anti-affinity", "500 anti-affinity terms a pod", many_terms.anti_affinity),
            ("preferred", "500 preferred terms a pod", many_terms.preferred),
            ("spread", "200 spread constraints a pod", many_terms.spread),
            ("node-selector", "500 node selector terms a pod", many_terms.node_selector),
            ("tolerations", "500 tolerations a pod", many_terms.tolerations),
            ("namespaces", "a namespace selector over 1,000", many_terms.namespaces),
        )
    ),
    Workload("mixed", "seven of the above in turn", mixed),
    Workload("unschedulable", "fits nowhere", unschedulable, schedulable=False),
    Workload("preemption-4", "4 pods a node, resources only", preemption, 4, 40, schedulable=False),
    Workload(
        "preemption-4-general",
        "4 pods a node, spread and anti-affinity",
        preemption_general,
        4,
        40,
        schedulable=False,
    ),
    Workload("preemption-4-pdb", "4 pods a node, 100 PDBs", preemption_pdb, 4, 40, schedulable=False),
    Workload("preemption-30", "30 pods a node, resources only", preemption, 30, 20, schedulable=False),
    Workload("preemption-30-pdb", "30 pods a node, 100 PDBs", preemption_pdb, 30, 20, schedulable=False),
)
