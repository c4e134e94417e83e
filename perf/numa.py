"""The workload on NUMA zones: nodes with four of them, partly in use, and Guaranteed pods for single ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from moorage.bench.world import World, make
from moorage.contrib.topology_match.topology import NODE_RESOURCE_TOPOLOGIES, POLICY, SINGLE_NUMA_NODE

ZONES = 4
CPUS, MEMORY = 64, 256
"""Of a node; memory in Gi."""


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


def aligned(world: World) -> Iterator[dict[str, Any]]:
    """Every pod another template: other requests of memory each time."""
    world.put(NODE_RESOURCE_TOPOLOGIES, (_topology(world, row) for row in range(world.nodes)))
    for i in count():
        pod = make(f"numa-{i}", cpu=1000 * (1 + i % 4), memory=256 + i % 991, labels={"app": f"numa-{i}"})
        resources = pod["spec"]["containers"][0]["resources"]
        resources["limits"] = resources["requests"]
        yield pod


def _topology(world: World, row: int) -> dict[str, Any]:
    def amount(name: str, most: int, unit: str = "") -> dict[str, str]:
        whole, free = f"{most}{unit}", f"{world.random.randrange(most // 4, most)}{unit}"
        return {"name": name, "capacity": whole, "allocatable": whole, "available": free}

    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [amount("cpu", CPUS // ZONES), amount("memory", MEMORY // ZONES, "Gi")],
            "costs": [
                {"name": f"node-{other}", "value": 10 if other == number else 21} for other in range(ZONES)
            ],
        }
        for number in range(ZONES)
    ]
    attributes = [{"name": POLICY, "value": SINGLE_NUMA_NODE}]
    return {"metadata": {"name": f"node-{row}"}, "attributes": attributes, "zones": zones}
