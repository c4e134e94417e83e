"""Workloads of plugins for clusters that teams share: namespaces, pools, quotas, applications and system
calls.

Every pod has its own template.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from moorage.api.node import ZONE
from moorage.api.resources import NAMESPACES
from moorage.bench.world import BenchWorld, raw_pod
from moorage.contrib.capacity_scheduling.quotas import ELASTICQUOTAS
from moorage.contrib.sysched import SECCOMP_PROFILES

TEAMS, APPLICATIONS, PROFILES, CALLS = 20, 50, 20, 300
TENANT, APP_ID = "tenant", "AppID"

Pods = Iterator[dict[str, Any]]


def config(plugin: str, args: Mapping[str, Any], *, instead_of: str = "") -> str:
    """Return the default profile with one more plugin, or with one replaced."""
    disabled = [{"name": instead_of}] if instead_of else []
    plugins = {"multiPoint": {"enabled": [{"name": plugin}], "disabled": disabled}}
    profile = {"plugins": plugins, "pluginConfig": [{"name": plugin, "args": args}] if args else []}
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return json.dumps({**header, "profiles": [profile]})


ISOLATION = config("TenantIsolation", {"namespaceLabel": TENANT, "exclusiveNodes": True})
AFFINITY = config(
    "AppAffinity",
    {
        "label": APP_ID,
        "limits": [{"maxPods": 5}, {"topologyKey": ZONE, "maxPods": 1000}],
        "preferences": [
            {"application": f"app-{i}", "other": f"app-{(i + 1) % APPLICATIONS}", "topologyKey": ZONE, "weight": 10}
            for i in range(APPLICATIONS)
        ],
    },
)
SYSTEM_CALLS = config("SySched", {})
QUOTAS = config("CapacityScheduling", {}, instead_of="DefaultPreemption")
TOLERATION = config("PreemptionToleration", {}, instead_of="DefaultPreemption")


def _pod(number: int, labels: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    name = f"tenant-{number}"
    labels = {"app": name, **(labels or {})}
    return raw_pod(name, cpu=50 + number % 977, memory=64 + number % 991, labels=labels, **more)


def _team(number: int) -> str:
    return f"team-{number % TEAMS}"


def add_pool(node: dict[str, Any]) -> None:
    """Assign every second node to the pool of a tenant. The others are shared."""
    number = int(node["metadata"]["name"].rpartition("-")[2])
    if number % 2:
        node["metadata"]["labels"][TENANT] = _team(number // 2)


def isolated(world: BenchWorld) -> Pods:
    teams = [_team(i) for i in range(TEAMS)]
    world.put(NAMESPACES, ({"metadata": {"name": team, "labels": {TENANT: team}}} for team in teams))
    for i in count():
        yield _pod(i, namespace=_team(i))


def applications(world: BenchWorld) -> Pods:
    for i in count():
        yield _pod(i, {APP_ID: f"app-{i % APPLICATIONS}"})


def system_calls(world: BenchWorld) -> Pods:
    """Yield pods with one of twenty profiles. Running pods have the default profile."""
    known = [f"call-{i}" for i in range(CALLS)]
    profiles = {f"profile-{i}": world.random.sample(known, 60) for i in range(PROFILES)}
    world.put(SECCOMP_PROFILES, (_profile(*each) for each in {"all-syscalls": known, **profiles}.items()))
    for i in count():
        path = f"operator/default/profile-{i % PROFILES}.json"
        context = {"seccompProfile": {"type": "Localhost", "localhostProfile": path}}
        yield _pod(i, securityContext=context)


def _profile(name: str, calls: list[str]) -> dict[str, Any]:
    allowed = {"action": "SCMP_ACT_ALLOW", "names": calls}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"syscalls": [allowed]}}


def quotas(world: BenchWorld) -> Pods:
    world.put(ELASTICQUOTAS, (quota(_team(i), 10_000) for i in range(TEAMS)))
    for i in count():
        yield _pod(i, namespace=_team(i))


def quota(namespace: str, cores: int) -> dict[str, Any]:
    return {
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": {"min": {"cpu": str(cores), "memory": f"{4 * cores}Gi"}},
    }
