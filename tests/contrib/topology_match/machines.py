"""Nodes with NUMA zones and what publishes them, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import PODS
from moorage.contrib.topology_match.placement import ATTRIBUTE, fingerprint
from moorage.contrib.topology_match.topology import NODE_RESOURCE_TOPOLOGIES
from moorage.testing import Cluster, make_node, make_pod
from moorage.testing.builders import make_container
from tests.contrib.configs import enabling

Json = dict[str, Any]
NIC = "vendor.io/nic"


def machine(name: str = "n0", **options: Any) -> Node:
    """Enough of everything for two zones of `zones`."""
    return make_node(name, **{"cpu": "16", "memory": "64Gi", "extended": {NIC: 8}, **options})


def topology(
    name: str = "n0",
    zones: Sequence[Mapping[str, Any]] = ({"cpu": "4", "memory": "8Gi"}, {"cpu": "4", "memory": "8Gi"}),
    *,
    pods: Iterable[Pod] | None = None,
    policy: str = "single-numa-node",
    scope: str = "container",
    **attributes: str,
) -> Json:
    """Zones with what is available there; `pods` are those that the fingerprint is of."""
    listed = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [
                {"name": resource, "capacity": "64Gi", "allocatable": "64Gi", "available": amount}
                for resource, amount in zone.items()
            ],
        }
        for number, zone in enumerate(zones)
    ]
    settings = {"topologyManagerPolicy": policy, "topologyManagerScope": scope, **attributes}
    if pods is not None:
        settings[ATTRIBUTE] = fingerprint(pods)
    return {
        "apiVersion": NODE_RESOURCE_TOPOLOGIES.api_version,
        "kind": NODE_RESOURCE_TOPOLOGIES.kind,
        "metadata": {"name": name},
        "attributes": [{"name": key, "value": value} for key, value in settings.items()],
        "zones": listed,
    }


def guaranteed(name: str, *cpus: str, memory: str = "1Gi", **options: Any) -> Pod:
    """A container per number of cpus, with limits as requests."""
    containers = tuple(own(f"c{number}", cpu=cpu, memory=memory) for number, cpu in enumerate(cpus))
    return make_pod(name, containers=containers, **options)


def own(name: str, sidecar: bool = False, **amounts: str) -> Any:
    return make_container(name, requests=amounts, limits=amounts, sidecar=sidecar)


def numa_cluster(args: Mapping[str, Any] | None = None, without: tuple[str, ...] = (), **options: Any) -> Cluster:
    config = enabling("NodeResourceTopologyMatch", args, without=without)
    return Cluster(config=config, verify_reuse=True, **options)


def put(cluster: Cluster, *objects: Any) -> None:
    """Pods that wait come last: what they are judged by is known then."""
    pods = [obj for obj in objects if isinstance(obj, Pod) and not obj.spec.node_name]
    cluster.add([obj for obj in objects if not any(obj is pod for pod in pods)])
    cluster.settle()
    cluster.add(pods)
    cluster.settle()


def publish(cluster: Cluster, changed: Json) -> None:
    fields = {key: changed[key] for key in ("zones", "attributes")}
    cluster.patch(NODE_RESOURCE_TOPOLOGIES, changed["metadata"]["name"], fields)


def run(cluster: Cluster, *names: str) -> list[Pod]:
    """The kubelet has started these pods."""
    for name in names:
        cluster.patch(PODS, name, {"status": {"phase": "Running"}}, "default", subresource="status")
    return [pod for name in names if (pod := cluster.pod(name)) is not None]


def refusal(cluster: Cluster, name: str, node: str = "n0") -> str:
    found = cluster.record(name).refusal_of(node)
    return ", ".join(found.reasons) if found else ""
