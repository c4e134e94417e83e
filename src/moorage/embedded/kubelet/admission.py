"""The last line against overcommit: what a node has given away, and whether another pod may come.

As the kubelet does it: the pods that it has admitted count, whatever a scheduler believes. A pod that does
not fit fails at once, with the reason and sentence of upstream.
"""

from __future__ import annotations

from dataclasses import dataclass

from moorage.api.node import Node
from moorage.api.node_selectors import required_node_affinity
from moorage.api.pod import Pod
from moorage.api.requests import (
    PODS,
    container_host_ports,
    is_extended_resource,
    node_allocatable,
    pod_requests,
)
from moorage.api.taints import NO_EXECUTE, find_untolerated

_ANY = "0.0.0.0"
_ORDER = {PODS: 0, "cpu": 1, "memory": 2, "ephemeral-storage": 3}
_TAINTED = "node(s) had taints that the pod didn't tolerate"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a pod is refused, as its status says it."""

    reason: str
    message: str


class NodeLoad:
    """The pods that a node has admitted, by UID."""

    def __init__(self) -> None:
        self._requests: dict[str, dict[str, int]] = {}
        self._ports: dict[str, tuple[tuple[str, str, int], ...]] = {}
        self._used: dict[str, int] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._requests

    def used(self, name: str) -> int:
        return len(self._requests) if name == PODS else self._used.get(name, 0)

    def add(self, pod: Pod) -> None:
        """Counts a pod; again, with what it asks for now."""
        self.remove(pod.uid)
        requests = pod_requests(pod)
        self._requests[pod.uid] = requests
        ports = container_host_ports(pod)
        if ports:
            self._ports[pod.uid] = ports
        for name, amount in requests.items():
            self._used[name] = self._used.get(name, 0) + amount

    def remove(self, uid: str) -> None:
        for name, amount in self._requests.pop(uid, {}).items():
            self._used[name] -= amount
        self._ports.pop(uid, None)

    def judge(self, pod: Pod, node: Node) -> Rejection | None:
        """None when the pod may run here."""
        return (
            self._lack(pod, node)
            or _misplaced(pod, node)
            or self._port_conflict(pod)
            or _untolerated(pod, node)
        )

    def _lack(self, pod: Pod, node: Node) -> Rejection | None:
        capacity = node_allocatable(node)
        wanted = {PODS: 1, **pod_requests(pod)}
        for name, amount in sorted(wanted.items(), key=lambda item: (_ORDER.get(item[0], 9), item[0])):
            if not amount or (is_extended_resource(name) and name not in capacity):
                continue  # as upstream: a device that the node does not know is the device manager's matter
            used, limit = self.used(name), capacity.get(name, 0)
            if name == PODS and name not in capacity:
                continue
            if used + amount > limit:
                text = f"Node didn't have enough resource: {name}, "
                text += f"requested: {amount}, used: {used}, capacity: {limit}"
                return Rejection(f"OutOf{name}", text)
        return None

    def _port_conflict(self, pod: Pod) -> Rejection | None:
        taken = [port for ports in self._ports.values() for port in ports]
        for port in container_host_ports(pod):
            if any(_collide(port, other) for other in taken):
                return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
        return None


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    if (one[0], one[2]) != (other[0], other[2]):
        return False
    return one[1] == other[1] or _ANY in (one[1], other[1])


def _misplaced(pod: Pod, node: Node) -> Rejection | None:
    if not required_node_affinity(pod).matches(node.labels, node.name):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    return None


def _untolerated(pod: Pod, node: Node) -> Rejection | None:
    if find_untolerated(node.taints, pod.spec.tolerations, (NO_EXECUTE,)) is not None:
        return _predicate("TaintToleration", _TAINTED)
    return None


def _predicate(name: str, why: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {why}")
