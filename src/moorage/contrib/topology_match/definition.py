"""The CustomResourceDefinition of NodeResourceTopology. It is that of the project in other words, so either
serves; who publishes the objects usually brings it."""

from __future__ import annotations

from typing import Any

from moorage.contrib.definitions import AMOUNT, cluster_definition
from moorage.contrib.topology_match.topology import NODE_RESOURCE_TOPOLOGIES

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
_COSTS = _list(
    ("name", "value"), "Distances to zones.", name=_TEXT, value={"type": "integer", "format": "int64"}
)
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
