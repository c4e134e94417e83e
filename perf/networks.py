"""The workload of NetworkOverhead: applications of three workloads, and costs between all zones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from moorage.api.node import REGION, ZONE
from moorage.api.resources import PODS
from moorage.bench.world import ZONES, BenchWorld, raw_pod
from moorage.contrib.network_aware.app_groups import APPGROUPS, GROUP, WORKLOAD
from moorage.contrib.network_aware.costs import NETWORKTOPOLOGIES

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: NetworkOverhead}]}}}]
"""
GROUPS, MEMBERS = 200, 10
WORKLOADS = ("db", "cache", "web")
"""Each workload depends on the two others."""
REGIONS = ZONES // 2


def add_region(node: dict[str, Any]) -> None:
    labels = node["metadata"]["labels"]
    labels[REGION] = _region(int(labels[ZONE].rpartition("-")[2]))


def _region(zone: int) -> str:
    return f"region-{zone % REGIONS}"


def members(world: BenchWorld) -> Iterator[dict[str, Any]]:
    """Yield pods with their own template each. Some nodes are too far from the pods they depend on."""
    world.put(NETWORKTOPOLOGIES, [_topology()])
    world.put(APPGROUPS, (_group(f"group-{i}") for i in range(GROUPS)))
    world.put(PODS, _running(world))
    for i in count():
        yield _member(f"member-{i}", i)


def _running(world: BenchWorld) -> Iterator[dict[str, Any]]:
    for i in range(GROUPS * MEMBERS):
        pod = _member(f"placed-{i}", i)
        pod["spec"]["nodeName"] = f"node-{world.random.randrange(world.nodes)}"
        pod["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        yield pod


def _member(name: str, number: int) -> dict[str, Any]:
    labels = {GROUP: f"group-{number % GROUPS}", WORKLOAD: WORKLOADS[number % len(WORKLOADS)]}
    return raw_pod(name, cpu=50 + number % 977, memory=64 + number % 991, labels={"app": name, **labels})


def _group(name: str) -> dict[str, Any]:
    def named(workload: str) -> dict[str, Any]:
        return {"kind": "Deployment", "name": workload, "selector": workload}

    def needs(workload: str) -> list[dict[str, Any]]:
        others = (other for other in WORKLOADS if other != workload)
        return [{"workload": named(other), "maxNetworkCost": 15} for other in others]

    workloads = [{"workload": named(each), "dependencies": needs(each)} for each in WORKLOADS]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"workloads": workloads}}


def _topology() -> dict[str, Any]:
    def level(key: str, names: list[str], first: int) -> dict[str, Any]:
        def costs(origin: int) -> list[dict[str, Any]]:
            others = (other for other in range(len(names)) if other != origin)
            return [{"destination": names[other], "networkCost": first + abs(origin - other)} for other in others]

        origins = [{"origin": name, "costList": costs(number)} for number, name in enumerate(names)]
        return {"topologyKey": key, "originList": origins}

    zones = [f"zone-{i}" for i in range(ZONES)]
    levels = [level(ZONE, zones, 1), level(REGION, [_region(i) for i in range(REGIONS)], 12)]
    weights = [{"name": "UserDefined", "topologyList": levels}]
    return {"metadata": {"name": "nt-default", "namespace": "default"}, "spec": {"weights": weights}}
