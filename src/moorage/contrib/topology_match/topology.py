"""One NodeResourceTopology object: the zones of a node with their available resources, and how its kubelet aligns
containers. As in scheduler-plugins, an invalid field counts as absent. The definition of the kind is equivalent to the
upstream one, so either works. Settings follow pkg/noderesourcetopology/nodeconfig/topologymanager.go."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from moorage.api.errors import QuantityError
from moorage.api.requests import resource_value
from moorage.api.resources import Unstructured, custom
from moorage.contrib.definitions import AMOUNT, cluster_definition

NODE_RESOURCE_TOPOLOGIES = custom(
    "topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", "NodeResourceTopology", namespaced=False
)
SINGLE_NUMA_NODE = "single-numa-node"
POLICIES = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
CONTAINER, POD = "container", "pod"
SCOPES = (CONTAINER, POD)
POLICY, SCOPE, MAX_ZONES = "topologyManagerPolicy", "topologyManagerScope", "topologyManagerMaxNUMANodes"
"""Attributes of an object."""
_LIMIT = 1024
"""Of `topologyManagerMaxNUMANodes`."""
UNKNOWN_DISTANCE = 255
_ZONE = re.compile(r"node-(\d+)", re.ASCII)
_OLD_POLICY = re.compile(r"(SingleNUMANode|BestEffort|Restricted)(Pod|Container)Level")
_OLD_NAMES = {"SingleNUMANode": SINGLE_NUMA_NODE, "BestEffort": "best-effort", "Restricted": "restricted"}

Amounts = Mapping[str, int]
"""Resource → amount, in the units of `resource_value`."""


class TopologyManager(NamedTuple):
    """Settings of the kubelet's topology manager."""

    policy: str = "none"
    scope: str = CONTAINER
    max_numa_nodes: int = 8


class Zone(NamedTuple):
    id: int
    """A name, not a position."""
    available: Amounts
    allocatable: Amounts
    distances: tuple[int, ...]
    """To the zones of the node in their order, itself included."""
    attributes: Mapping[str, str]


class ZoneTopology(NamedTuple):
    manager: TopologyManager
    zones: tuple[Zone, ...]
    """In the order of their ids."""
    attributes: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def resources(self) -> set[str]:
        """Return the resources that a zone reports."""
        return {name for zone in self.zones for name in zone.available}


def read_topology(obj: Unstructured) -> ZoneTopology:
    found: dict[int, Mapping[str, Any]] = {}
    for zone in obj.get("zones") or ():
        if zone.get("type") == "Node" and (number := zone_id(zone.get("name", ""))) is not None:
            found[number] = zone
    zones = tuple(_zone(number, found[number], sorted(found)) for number in sorted(found))
    return ZoneTopology(_manager(obj), zones, _attributes(obj.raw), obj.annotations)


def zone_id(name: str) -> int | None:
    match = _ZONE.fullmatch(name)
    return int(match[1]) if match else None


def _zone(number: int, zone: Mapping[str, Any], ids: Iterable[int]) -> Zone:
    listed = zone.get("resources") or ()
    costs = {zone_id(cost["name"]): int(cost["value"]) for cost in zone.get("costs") or ()}
    distances = tuple(min(costs.get(other, UNKNOWN_DISTANCE), UNKNOWN_DISTANCE) for other in ids)
    available, allocatable = _amounts(listed, "available"), _amounts(listed, "allocatable")
    return Zone(number, available, allocatable, distances, _attributes(zone))


def _amounts(listed: Iterable[Mapping[str, Any]], field: str) -> Amounts:
    found = {}
    for each in listed:
        try:
            found[each["name"]] = max(resource_value(each["name"], each[field]), 0)
        except (KeyError, QuantityError):
            continue
    return found


def _manager(obj: Unstructured) -> TopologyManager:
    """Read the deprecated field first; attributes override it."""
    manager = TopologyManager()
    old = _OLD_POLICY.fullmatch((obj.get("topologyPolicies") or ("",))[0])
    if old:
        manager = manager._replace(policy=_OLD_NAMES[old[1]], scope=old[2].lower())
    for name, value in _pairs(obj.raw):
        if name == POLICY and value in POLICIES:
            manager = manager._replace(policy=value)
        elif name == SCOPE and value in SCOPES:
            manager = manager._replace(scope=value)
        elif name == MAX_ZONES and value.isascii() and value.isdigit() and int(value) > 1:
            manager = manager._replace(max_numa_nodes=min(int(value), _LIMIT))
    return manager


def _attributes(holder: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes of an object or a zone; the first one of a name counts."""
    return dict(reversed([*_pairs(holder)]))


def _pairs(holder: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for attribute in holder.get("attributes") or ():
        yield attribute.get("name", ""), attribute.get("value", "")


_TEXT = {"type": "string"}


def _list(required: tuple[str, ...], description: str, **properties: Any) -> dict[str, Any]:
    item = {"type": "object", "required": list(required), "properties": properties}
    return {"type": "array", "description": description, "items": item}


_ATTRIBUTES = _list(("name", "value"), "Settings and properties.", name=_TEXT, value=_TEXT)
_RESOURCES = _list(
    ("name", "capacity", "allocatable", "available"),
    "What a zone has, what pods may use of it, and what is free.",
    name=_TEXT,
    capacity=AMOUNT,
    allocatable=AMOUNT,
    available=AMOUNT,
)
_COSTS = _list(("name", "value"), "Distances to zones.", name=_TEXT, value={"type": "integer", "format": "int64"})
_ZONES = _list(
    ("name", "type"),
    "Parts of a node, such as NUMA nodes.",
    name=_TEXT,
    type=_TEXT,
    parent=_TEXT,
    costs=_COSTS,
    attributes=_ATTRIBUTES,
    resources=_RESOURCES,
)

DEFINITION = cluster_definition(
    NODE_RESOURCE_TOPOLOGIES,
    "The resources of a node by zones, and how its kubelet aligns them.",
    short_names=("node-res-topo",),
    approval="https://github.com/kubernetes/enhancements/pull/1870",
    required=("zones",),
    properties={
        "attributes": _ATTRIBUTES,
        "topologyPolicies": {"type": "array", "items": _TEXT, "description": "Deprecated: use attributes."},
        "zones": _ZONES,
    },
)
