"""What kubelets do for their nodes: status, addresses, CSINode, and whether the node lives at all.

Addresses of nodes and pods come from a range each; nothing is ever sent to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network
from typing import Any

from moorage.api.errors import AlreadyExists, MoorageError
from moorage.api.resources import Unstructured
from moorage.api.selectors import parse_selector
from moorage.api.times import format_time
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Caches
from moorage.embedded.controllers.writes import Writer
from moorage.embedded.kubelet import decisions
from moorage.embedded.kubelet.decisions import KubeletSettings
from moorage.embedded.kubelet.lives import KubeletEvents
from moorage.telemetry import logs

NODE_NETWORK = "10.0.0.0/13"
POD_NETWORK = "10.64.0.0/10"
Raw = dict[str, Any]
_HEALTHY = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    "NetworkUnavailable": ("False", "RouteCreated", "RouteController created a route"),
}
_BY_ANNOTATION = ("ToldByAnnotation", "the node's moorage.dev/conditions annotation says so")
_SICK = {
    "MemoryPressure": ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    "DiskPressure": ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    "PIDPressure": ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    "Ready": ("KubeletNotReady", _BY_ANNOTATION[1]),
}
DEFAULT_CAPACITY = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
"""Of a node that was created without any."""
log = logs.get(__name__)
REPORT_SECONDS = 300.0
"""Between two full reports when nothing changes, as upstream's nodeStatusReportFrequency."""


class Addresses:
    """Hands out addresses of one range; those given back are used again last."""

    def __init__(self, network: str) -> None:
        self._first = int(IPv4Network(network).network_address)
        self._size = IPv4Network(network).num_addresses
        self._holders: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1

    def of(self, holder: str) -> str:
        """The holder's address; a new one the first time."""
        found = self._holders.get(holder)
        if found is None:
            found = self._holders[holder] = self._find()
            self._taken.add(found)
        return found

    def keep(self, holder: str, address: str) -> None:
        """The holder has this address already."""
        if address not in self._taken:
            self._holders[holder] = address
            self._taken.add(address)

    def give_back(self, holder: str) -> None:
        self._taken.discard(self._holders.pop(holder, ""))

    def _find(self) -> str:
        for _ in range(self._size):
            number = self._next
            self._next = 1 + number % (self._size - 2)
            address = _dotted(self._first + number)
            if number % 256 and address not in self._taken:
                return address
        raise RuntimeError(f"all {self._size} addresses are taken")


def _dotted(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def status_of(
    node: Unstructured, address: str, annotated: Mapping[str, str], version: str, wall: float, beat: bool
) -> Raw:
    """The node's status. `annotated`: the conditions of its annotation; `beat` renews heartbeat times."""
    status: Raw = dict(node.raw.get("status") or {})
    capacity = status.get("capacity") or status.get("allocatable") or DEFAULT_CAPACITY
    status["capacity"] = capacity
    status["allocatable"] = status.get("allocatable") or capacity
    status["addresses"] = status.get("addresses") or [
        {"type": "InternalIP", "address": address},
        {"type": "Hostname", "address": node.name},
    ]
    given = {field: value for field, value in (status.get("nodeInfo") or {}).items() if value}
    status["nodeInfo"] = {**(status.get("nodeInfo") or {}), **_node_info(node, version), **given}
    if not ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port"):
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250}}
    status["conditions"] = _conditions(status.get("conditions") or [], annotated, format_time(wall), beat)
    return status


def address_of(node: Unstructured) -> str:
    """The node's own address, if it has reported one."""
    for found in (node.raw.get("status") or {}).get("addresses") or ():
        if found.get("type") == "InternalIP":
            return str(found.get("address") or "")
    return ""


def _conditions(before: list[Raw], annotated: Mapping[str, str], now: str, beat: bool) -> list[Raw]:
    known = {c.get("type"): c for c in before}
    made = []
    for kind in {**_HEALTHY, **annotated}:
        status, reason, message = _wanted(kind, annotated.get(kind))
        old = known.get(kind) or {}
        same = (old.get("status"), old.get("reason")) == (status, reason)
        # Both times are optional: a node that a user applies may have conditions without them.
        heartbeat = old.get("lastHeartbeatTime") if same and not beat else None
        transition = old.get("lastTransitionTime") if old.get("status") == status else None
        made.append(
            {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": heartbeat or now,
                "lastTransitionTime": transition or now,
                "reason": reason,
                "message": message,
            }
        )
    # Conditions of other reporters stay; those that the annotation named before and does not any more, go.
    kept = [c for c in before if c.get("type") not in known_types(annotated) and c.get("reason") != _BY_ANNOTATION[0]]
    return [*kept, *made]


def known_types(annotated: Mapping[str, str]) -> set[str]:
    return {*_HEALTHY, *annotated}


def _wanted(kind: str, annotated: str | None) -> tuple[str, str, str]:
    healthy = _HEALTHY.get(kind)
    if healthy is not None and annotated in (None, healthy[0]):
        return healthy
    reason, message = _SICK.get(kind, _BY_ANNOTATION)
    return annotated or "Unknown", reason, message


def _node_info(node: Unstructured, version: str) -> Raw:
    digest = hashlib.sha256(node.name.encode()).hexdigest()
    uuid = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    return {
        "machineID": digest[:32],
        "systemUUID": uuid,
        "bootID": uuid,
        "kernelVersion": "6.12.0",
        "osImage": "Moorage simulated node",
        "containerRuntimeVersion": "moorage://1.0",
        "kubeletVersion": version,
        "kubeProxyVersion": "",
        "operatingSystem": node.labels.get("kubernetes.io/os", "linux"),
        "architecture": node.labels.get("kubernetes.io/arch", "amd64"),
    }


class NodeKeeper:
    """The nodes of one `Kubelets`."""

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        events: KubeletEvents,
        wall: Callable[[], float],
        settings: KubeletSettings,
    ) -> None:
        self.nodes = caches.of(kinds.NODES)
        self._csi_nodes = caches.of(kinds.CSI_NODES)
        self._writer = writer
        self._events = events
        self._wall = wall
        self._version = settings.version
        self._selector = parse_selector(settings.node_selector)
        self._addresses = Addresses(NODE_NETWORK)
        self._failed: set[str] = set()

    def living(self, name: str) -> Unstructured | None:
        """The node, if it is simulated here and alive."""
        found = self.nodes.get(name)
        if found is None or name in self._failed or decisions.is_dead(found):
            return None
        return found if self._selector.matches(found.labels) else None

    def living_uid(self, name: str) -> str | None:
        found = self.living(name)
        return None if found is None else found.uid

    def fail(self, name: str) -> None:
        self._failed.add(name)

    def recover(self, name: str) -> None:
        self._failed.discard(name)

    def forget(self, name: str) -> None:
        """The node is gone. One that comes under its name has power."""
        self._failed.discard(name)
        self._addresses.give_back(name)

    def address(self, node: Unstructured) -> str:
        return address_of(node) or self._addresses.of(node.name)

    async def sync(self, key: str) -> float | None:
        """Brings the status of a living node in line."""
        await self._sync(key, beat=False)
        return None

    async def report_all(self) -> None:
        """Full reports of all nodes, so that the heartbeat times in their conditions go on."""
        for node in self.nodes:
            try:
                await self._sync(node.key, beat=True)
            except MoorageError as error:
                log.info(3, "Node status was not written; trying again with the next report", node=node, err=error)

    async def _sync(self, key: str, beat: bool) -> None:
        node = self.living(key)
        if node is None:
            return
        annotated, problems = decisions.node_conditions(node.annotations)
        for problem in problems:
            self._events.problem(node, problem)
        status = status_of(node, self.address(node), annotated, self._version, self._wall(), beat)
        await self._writer.update_status(kinds.NODES, node, status)
        if self._csi_nodes.get(node.name) is None:
            await self._create_csi_node(node)

    async def _create_csi_node(self, node: Unstructured) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        raw = {"metadata": {"name": node.name, "ownerReferences": [owner]}, "spec": {"drivers": []}}
        try:
            await self._writer.create(kinds.CSI_NODES, raw)
        except AlreadyExists:
            await self._writer.refresh(kinds.CSI_NODES, node.name, "")
