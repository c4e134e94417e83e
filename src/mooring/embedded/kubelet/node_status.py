"""The status that a node's kubelet reports. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from mooring.api.resources import Unstructured
from mooring.api.times import format_time

Raw = dict[str, Any]

_HEALTHY = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    "NetworkUnavailable": ("False", "RouteCreated", "RouteController created a route"),
}
_TOLD = ("ToldByAnnotation", "the node's mooring.dev/conditions annotation says so")
_SICK = {
    "MemoryPressure": ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    "DiskPressure": ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    "PIDPressure": ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    "Ready": ("KubeletNotReady", _TOLD[1]),
}
DEFAULT_CAPACITY = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
"""Of a node that was created without any."""


def status_of(
    node: Unstructured, address: str, told: Mapping[str, str], version: str, wall: float, beat: bool
) -> Raw:
    """The node's status. `told` are conditions that it was told to report; `beat` renews heartbeat times."""
    status: Raw = dict(node.raw.get("status") or {})
    capacity = status.get("capacity") or status.get("allocatable") or DEFAULT_CAPACITY
    status["capacity"] = capacity
    status["allocatable"] = status.get("allocatable") or capacity
    status["addresses"] = status.get("addresses") or [
        {"type": "InternalIP", "address": address},
        {"type": "Hostname", "address": node.name},
    ]
    status["nodeInfo"] = {**_node_info(node, version), **(status.get("nodeInfo") or {})}
    status["daemonEndpoints"] = status.get("daemonEndpoints") or {"kubeletEndpoint": {"Port": 10250}}
    status["conditions"] = _conditions(status.get("conditions") or [], told, format_time(wall), beat)
    return status


def address_of(node: Unstructured) -> str:
    """The node's own address, if it has told one."""
    for found in (node.raw.get("status") or {}).get("addresses") or ():
        if found.get("type") == "InternalIP":
            return str(found.get("address") or "")
    return ""


def _conditions(before: list[Raw], told: Mapping[str, str], now: str, beat: bool) -> list[Raw]:
    known = {c.get("type"): c for c in before}
    made = []
    for kind in {**_HEALTHY, **told}:
        status, reason, message = _wanted(kind, told.get(kind))
        old = known.get(kind) or {}
        same = (old.get("status"), old.get("reason")) == (status, reason)
        made.append(
            {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": old["lastHeartbeatTime"] if same and not beat else now,
                "lastTransitionTime": old["lastTransitionTime"] if old.get("status") == status else now,
                "reason": reason,
                "message": message,
            }
        )
    # Conditions of other reporters stay; those that were told before and are not any more, go.
    kept = [c for c in before if c.get("type") not in known_types(told) and c.get("reason") != _TOLD[0]]
    return [*kept, *made]


def known_types(told: Mapping[str, str]) -> set[str]:
    return {*_HEALTHY, *told}


def _wanted(kind: str, told: str | None) -> tuple[str, str, str]:
    healthy = _HEALTHY.get(kind)
    if healthy is not None and told in (None, healthy[0]):
        return healthy
    reason, message = _SICK.get(kind, _TOLD)
    return told or "Unknown", reason, message


def _node_info(node: Unstructured, version: str) -> Raw:
    digest = hashlib.sha256(node.name.encode()).hexdigest()
    uuid = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    return {
        "machineID": digest[:32],
        "systemUUID": uuid,
        "bootID": uuid,
        "kernelVersion": "6.12.0",
        "osImage": "Mooring simulated node",
        "containerRuntimeVersion": "mooring://1.0",
        "kubeletVersion": version,
        "kubeProxyVersion": "",
        "operatingSystem": node.labels.get("kubernetes.io/os", "linux"),
        "architecture": node.labels.get("kubernetes.io/arch", "amd64"),
    }
