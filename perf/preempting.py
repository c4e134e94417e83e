"""Workloads of plugins that preempt for groups and across nodes, and of hierarchical quotas."""

from __future__ import annotations

from itertools import count
from typing import Any

from moorage.api.node import ZONE
from moorage.api.resources import PODS, PRIORITY_CLASSES
from moorage.bench.workloads import Pods, fill, preemptors, running
from moorage.bench.world import ZONES, BenchWorld, raw_meta, raw_pod
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS, PARENT
from moorage.contrib.coscheduling.groups import LABEL, PODGROUPS
from moorage.contrib.preemption_toleration import MINIMUM, SECONDS
from perf import tenants

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


def gangs(members: int) -> Any:
    """Return a workload of groups in which each member needs a node to be cleared.

    The first member is scheduled, the others are known. Then the group is deleted, so that every attempt sees
    the same cluster.
    """

    def pods(world: BenchWorld) -> Pods:
        fill(world)
        for i in count():
            name = f"urgent-{i:05}"
            world.put(PODGROUPS, [{"metadata": raw_meta(name), "spec": {"minMember": members}}])
            group = [
                raw_pod(f"{name}-{n}", cpu=6_000 + i % 97, memory=100, labels={LABEL: name}, priority=1000)
                for n in range(members)
            ]
            for member in group[1:]:
                world.enqueue(member)
                world.engine.queue.pop()
                world.engine.queue.done(member["metadata"]["uid"])
            yield group[0]
            world.remove(PODS, group)

    return pods


def across(world: BenchWorld) -> Pods:
    """Yield pods that are blocked in every zone by a pod of their kind, on a node full of more important
    pods."""
    columns = world.engine.services.nodes()
    free = columns.free("cpu").tolist()
    for row, name in enumerate(columns.names[:ZONES]):
        busy = running(f"busy-{name}", name, free[row] - 100, priority=2000)
        world.put(PODS, [busy, running(f"db-{name}", name, 100, "db")])
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for i in count():
        pod = raw_pod(f"db-{i}", cpu=4000 + i % 97, labels={"app": "db"}, priority=1000, affinity=required)
        yield pod
        world.remove(PODS, [pod])


def quotas(world: BenchWorld) -> Pods:
    """Yield plain pods of teams, with quotas below those of departments, which are below the company's."""
    share = {"min": {"cpu": "1000", "memory": "1Ti"}}
    world.put(ELASTICQUOTAS, [quota("company", "", {"max": {"cpu": "1000000"}})])
    for d in range(DEPARTMENTS):
        teams = [quota(f"team-{d}-{t}", f"department-{d}", share) for t in range(TEAMS)]
        world.put(ELASTICQUOTAS, [quota(f"department-{d}", "company", {}), *teams])
    for i in count():
        team = f"team-{i % DEPARTMENTS}-{i // DEPARTMENTS % TEAMS}"
        yield raw_pod(f"{team}-{i}", namespace=team, cpu=50 + i % 977, memory=64 + i % 991, labels={"app": f"q-{i}"})


def quota(namespace: str, parent: str, spec: dict[str, Any]) -> dict[str, Any]:
    above = {PARENT: f"{parent}/quota"} if parent else {}
    found = {"name": "quota", "namespace": namespace, "uid": namespace, "annotations": above}
    return {"metadata": found, "spec": spec}


def toleration(world: BenchWorld) -> Pods:
    """Yield preemptors; the large pod of every second node is protected."""
    protecting = {MINIMUM: "10000", SECONDS: "-1"}
    world.put(PRIORITY_CLASSES, [{"metadata": {**raw_meta("guarded"), "annotations": protecting}, "value": 0}])
    fill(world, ({"priorityClassName": "guarded"}, {}))
    yield from preemptors(world)


def borrowed(world: BenchWorld) -> Pods:
    """Yield preemptors of a namespace that reclaims its share from the large pods, which borrowed it."""
    world.put(ELASTICQUOTAS, [tenants.quota("borrower", 0), tenants.quota("default", 1_000_000)])
    fill(world, namespace="borrower")
    yield from preemptors(world)
