"""Workloads of plugins that preempt for groups and across nodes, and of quotas in a hierarchy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import Any

from moorage.api.node import ZONE
from moorage.api.resources import PODS
from moorage.bench.world import ZONES, World, make, meta
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS, PARENT
from moorage.contrib.coscheduling.groups import LABEL, PODGROUPS

Pods = Iterator[dict[str, Any]]
HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GANG_CONFIG = f"""{HEADER}
profiles:
  - plugins:
      multiPoint:
        enabled: [{{name: GangPreemption}}, {{name: Coscheduling}}]
        disabled: [{{name: PrioritySort}}, {{name: DefaultPreemption}}]
"""
ACROSS_CONFIG = f"""{HEADER}
profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: CrossNodePreemption}}]}}}}}}]
"""
QUOTA_CONFIG = f"""{HEADER}
profiles:
  - plugins:
      multiPoint: {{enabled: [{{name: CapacityScheduling}}], disabled: [{{name: DefaultPreemption}}]}}
"""
DEPARTMENTS, TEAMS = 20, 10


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


def gangs(members: int) -> Any:
    """Groups of so many members, each of which needs a node to be cleared. The first member of a group is
    scheduled, the others are known; then the group goes, so that every attempt meets the same cluster."""

    def pods(world: World) -> Pods:
        fill(world)
        for i in count():
            name = f"urgent-{i:05}"
            world.put(PODGROUPS, [{"metadata": meta(name), "spec": {"minMember": members}}])
            group = [
                make(f"{name}-{n}", cpu=6_000 + i % 97, memory=100, labels={LABEL: name}, priority=1000)
                for n in range(members)
            ]
            for member in group[1:]:
                world.enqueue(member)
                world.engine.queue.pop()
                world.engine.queue.done(member["metadata"]["uid"])
            yield group[0]
            world.remove(PODS, group)

    return pods


def across(world: World) -> Pods:
    """In every zone a pod keeps others of its kind off, on a node that is full of more important ones."""
    columns = world.engine.services.nodes()
    free = columns.free("cpu").tolist()
    for row, name in enumerate(columns.names[:ZONES]):
        busy = running(f"busy-{name}", name, free[row] - 100, priority=2000)
        world.put(PODS, [busy, running(f"db-{name}", name, 100, "db")])
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for i in count():
        pod = make(f"db-{i}", cpu=4000 + i % 97, labels={"app": "db"}, priority=1000, affinity=required)
        yield pod
        world.remove(PODS, [pod])


def quotas(world: World) -> Pods:
    """Plain pods of teams, whose quotas are below those of departments, which are below one."""
    share = {"min": {"cpu": "1000", "memory": "1Ti"}}
    world.put(ELASTICQUOTAS, [quota("company", "", {"max": {"cpu": "1000000"}})])
    for d in range(DEPARTMENTS):
        teams = [quota(f"team-{d}-{t}", f"department-{d}", share) for t in range(TEAMS)]
        world.put(ELASTICQUOTAS, [quota(f"department-{d}", "company", {}), *teams])
    for i in count():
        team = f"team-{i % DEPARTMENTS}-{i // DEPARTMENTS % TEAMS}"
        yield make(
            f"{team}-{i}", namespace=team, cpu=50 + i % 977, memory=64 + i % 991, labels={"app": f"q-{i}"}
        )


def quota(namespace: str, parent: str, spec: dict[str, Any]) -> dict[str, Any]:
    above = {PARENT: f"{parent}/quota"} if parent else {}
    found = {"name": "quota", "namespace": namespace, "uid": namespace, "annotations": above}
    return {"metadata": found, "spec": spec}
