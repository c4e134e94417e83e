"""The NUMA workload: nodes with four zones, partly in use, and Guaranteed pods that fit into one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from moorage.bench.world import BenchWorld, raw_pod
from moorage.contrib.topology_match.topology import NODE_RESOURCE_TOPOLOGIES, POLICY, SINGLE_NUMA_NODE

ZONES = 4
CPUS, MEMORY = 64, 256
"""The size of a node; memory in Gi."""


def config(strategy: str) -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {{multiPoint: {{enabled: [{{name: NodeResourceTopologyMatch}}]}}}}
    pluginConfig:
      - name: NodeResourceTopologyMatch
        args: {{scoringStrategy: {{type: {strategy}}}, cacheResyncPeriodSeconds: 5}}
"""


def enlarge(node: dict[str, Any]) -> None:
    for amounts in (node["status"]["allocatable"], node["status"]["capacity"]):
        amounts.update({"cpu": str(CPUS), "memory": f"{MEMORY}Gi"})


def aligned(world: BenchWorld) -> Iterator[dict[str, Any]]:
    """Yield pods with different memory requests, so that each has its own template."""
    world.put(NODE_RESOURCE_TOPOLOGIES, (_topology(world, row) for row in range(world.nodes)))
    for i in count():
        pod = raw_pod(f"numa-{i}", cpu=1000 * (1 + i % 4), memory=256 + i % 991, labels={"app": f"numa-{i}"})
        resources = pod["spec"]["containers"][0]["resources"]
        resources["limits"] = resources["requests"]
        yield pod


def _topology(world: BenchWorld, row: int) -> dict[str, Any]:
    def amount(name: str, most: int, unit: str = "") -> dict[str, str]:
        whole, free = f"{most}{unit}", f"{world.random.randrange(most // 4, most)}{unit}"
        return {"name": name, "capacity": whole, "allocatable": whole, "available": free}

    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [amount("cpu", CPUS // ZONES), amount("memory", MEMORY // ZONES, "Gi")],
            "costs": [{"name": f"node-{other}", "value": 10 if other == number else 21} for other in range(ZONES)],
        }
        for number in range(ZONES)
    ]
    attributes = [{"name": POLICY, "value": SINGLE_NUMA_NODE}]
    return {"metadata": {"name": f"node-{row}"}, "attributes": attributes, "zones": zones}
