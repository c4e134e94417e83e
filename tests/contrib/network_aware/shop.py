"""An application of three workloads: cart and web depend on db, and a cluster of two regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.node import REGION, ZONE, Node
from moorage.api.pod import Pod
from moorage.contrib.network_aware.app_groups import APPGROUPS, GROUP, WORKLOAD
from moorage.contrib.network_aware.costs import NETWORKTOPOLOGIES
from moorage.testing import make_node, make_pod

Costs = Mapping[tuple[str, str], int]
"""Origin and destination → cost."""


def named(selector: str) -> dict[str, str]:
    return {"kind": "Deployment", "name": selector, "selector": selector}


def app_group(
    name: str = "shop",
    needs: Mapping[str, Sequence[tuple[str, int]]] | None = None,
    order: Sequence[str] = (),
    namespace: str = "default",
) -> dict[str, Any]:
    """`needs`: workload → those that it depends on, each with its maxNetworkCost."""
    workloads = [
        {
            "workload": named(workload),
            "dependencies": [{"workload": named(other), "maxNetworkCost": most} for other, most in others],
        }
        for workload, others in (needs or {}).items()
    ]
    turns = [{"workload": named(workload), "index": index} for index, workload in enumerate(order, 1)]
    return {
        "apiVersion": APPGROUPS.api_version,
        "kind": APPGROUPS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"numMembers": 3, "topologySortingAlgorithm": "KahnSort", "workloads": workloads},
        "status": {"topologyOrder": turns},
    }


def topology(
    zones: Costs,
    regions: Costs | None = None,
    name: str = "nt-default",
    namespace: str = "default",
    weights: str = "UserDefined",
) -> dict[str, Any]:
    def level(key: str, costs: Costs) -> dict[str, Any]:
        origins: dict[str, list[dict[str, Any]]] = {}
        for (origin, destination), cost in costs.items():
            origins.setdefault(origin, []).append({"destination": destination, "networkCost": cost})
        listed = [{"origin": origin, "costList": costs} for origin, costs in origins.items()]
        return {"topologyKey": key, "originList": listed}

    levels = [level(ZONE, zones), level(REGION, regions or {})]
    return {
        "apiVersion": NETWORKTOPOLOGIES.api_version,
        "kind": NETWORKTOPOLOGIES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"configmapName": "netperf", "weights": [{"name": weights, "topologyList": levels}]},
    }


def at(name: str, region: str = "", zone: str = "", **spec: Any) -> Node:
    labels = {key: value for key, value in ((REGION, region), (ZONE, zone)) if value}
    return make_node(name, labels=labels, **spec)


def member(name: str, workload: str, group: str = "shop", **spec: Any) -> Pod:
    return make_pod(name, labels={GROUP: group, WORKLOAD: workload}, **spec)
