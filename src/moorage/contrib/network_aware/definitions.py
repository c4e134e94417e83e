"""The CustomResourceDefinitions of AppGroup and NetworkTopology. They are equivalent to those of scheduler-plugins, so
either set works; as there, the status is written together with the spec."""

from __future__ import annotations

from typing import Any

from moorage.contrib.definitions import AMOUNT, definition
from moorage.contrib.network_aware.app_groups import APPGROUPS
from moorage.contrib.network_aware.costs import NETWORKTOPOLOGIES

_TEXT = {"type": "string"}
_TIME = {"type": "string", "format": "date-time"}
_AGE = ("Age", ".metadata.creationTimestamp", "date")


def _count(width: int, **limits: int) -> dict[str, Any]:
    return {"type": "integer", "format": f"int{width}", **limits}


def _list(*required: str, **properties: Any) -> dict[str, Any]:
    items: dict[str, Any] = {"type": "object", "properties": properties}
    return {"type": "array", "items": {**items, "required": list(required)} if required else items}


_WORKLOAD = {
    "type": "object",
    "required": ["kind", "name", "selector"],
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "namespace"), _TEXT),
        "selector": {**_TEXT, "description": "The value of the pods' label for their workload."},
    },
}

APPGROUP = definition(
    APPGROUPS,
    "The workloads of an application, and whom each depends on.",
    short_names=("ag",),
    columns=(("NumMembers", ".spec.numMembers", "integer"), _AGE),
    spec={
        "numMembers": _count(32, minimum=1),
        "topologySortingAlgorithm": {
            **_TEXT,
            "description": "How a controller orders the workloads: KahnSort, TarjanSort, ReverseKahn …",
        },
        "workloads": _list(
            "workload",
            workload=_WORKLOAD,
            dependencies=_list(
                "workload", workload=_WORKLOAD, minBandwidth=AMOUNT, maxNetworkCost=_count(64, minimum=0, maximum=10000)
            ),
        ),
    },
    status={
        "runningWorkloads": _count(32, minimum=0),
        "scheduleStartTime": _TIME,
        "topologyCalculationTime": _TIME,
        "topologyOrder": _list(workload=_WORKLOAD, index=_count(32)),
    },
    status_apart=False,
)

_COSTS = _list(
    "destination",
    "networkCost",
    destination=_TEXT,
    bandwidthCapacity=AMOUNT,
    bandwidthAllocated=AMOUNT,
    networkCost=_count(64, minimum=0),
)

NETWORKTOPOLOGY = definition(
    NETWORKTOPOLOGIES,
    "What talking costs between regions and between zones.",
    short_names=("nt",),
    columns=(_AGE,),
    spec={
        "configmapName": {**_TEXT, "description": "Of the measurements that a controller reads."},
        "weights": _list(
            "name",
            "topologyList",
            name=_TEXT,
            topologyList=_list(
                "topologyKey",
                "originList",
                topologyKey=_TEXT,
                originList=_list("origin", origin=_TEXT, costList=_COSTS),
            ),
        ),
    },
    status={"nodeCount": _count(64, minimum=0), "weightCalculationTime": _TIME},
    status_apart=False,
)
