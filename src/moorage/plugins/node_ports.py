"""NodePorts: two pods on one node cannot use the same host port.

Follows pkg/scheduler/framework/plugins/nodeports/node_ports.go. A port consists of protocol, address and number. The
address 0.0.0.0 stands for all addresses of the node, so it conflicts with every other."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from moorage.api.meta import key_of
from moorage.api.pod import Container, Pod
from moorage.api.requests import container_host_ports
from moorage.framework.access import Dependency, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import NODE, POD, ActionType, ClusterEvent, QueueingHint, Registration
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import BoolArray, Nodes, NodeView, Refusals
from moorage.framework.optional import Detail, ExplainingPlugin, Proposal, ReusablePlugin, a_few, deletion
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import Status

REASON = "node(s) didn't have free ports for the requested pod ports"
EVERY_ADDRESS = "0.0.0.0"
WANTED = "NodePorts"

HostPort = tuple[str, str, int]
"""Protocol, address, number."""

_REFUSED = Status.unschedulable(REASON)


class NodePorts(PreFilterPlugin, WholeTableFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "NodePorts"
    few_signs = True

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._taken = handle.pod_index("NodePorts", port_keys)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        ports = container_host_ports(pod)
        if not ports:
            return Status.skip()
        state.write(WANTED, ports)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        wanted: tuple[HostPort, ...] = state.read(WANTED)
        return _REFUSED if any(clash(wanted, ports) for ports in _ports_on(node)) else None

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        wanted: tuple[HostPort, ...] = state.read(WANTED)
        rows = {row for port in wanted for key in clashing_keys(port) for row in self._taken.rows(key)}
        return nodes.refuse(_among(nodes, rows), REASON) if rows else None

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        taken: dict[Hashable, set[int]] = {}
        for index, other in enumerate(node.pods):
            for key in port_keys(other):
                taken.setdefault(key, set()).add(index)
        for port in state.read(WANTED):
            found = {index for key in clashing_keys(port) for index in taken.get(key, ())}
            if found:
                yield Detail(f"port {_text(port)}", pods=a_few(node.pods[index] for index in sorted(found)))

    def remedies(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Proposal]:
        if not pod.spec.host_network:
            yield Proposal("host ports", "do without host ports", 4, _without_host_ports)
        wanted: tuple[HostPort, ...] = state.read(WANTED)
        holders = [other for other in node.pods if clash(wanted, container_host_ports(other))]
        if len(holders) == 1:
            yield deletion(holders[0], node)

    def events_to_register(self) -> Sequence[Registration]:
        gone = ClusterEvent(POD, ActionType.DELETE)
        return [Registration(gone, port_was_freed), Registration(ClusterEvent(NODE, ActionType.ADD))]

    def sign(self, pod: Pod) -> Hashable:
        ports = container_host_ports(pod)
        return key_of(ports) if ports else ()

    def reads(self, pod: Pod) -> Collection[Dependency]:
        return (Reads.ROW,) if container_host_ports(pod) else ()


def port_keys(pod: Pod) -> tuple[Hashable, ...]:
    """Return the index keys of a pod: each port with its address, and without."""
    spec = pod.spec
    for container in spec.containers:
        if container.ports:
            break
    else:
        if not spec.init_containers:
            return ()  # most pods; asked for every one that comes or goes
    return tuple(key for port in container_host_ports(pod) for key in index_keys(port))


def index_keys(port: HostPort) -> tuple[Hashable, ...]:
    """Return the port without its address, and with it."""
    protocol, address, number = port
    return (protocol, number), (protocol, number, address)


def clashing_keys(port: HostPort) -> tuple[Hashable, ...]:
    """Return the index keys of ports that conflict with this one."""
    protocol, address, number = port
    if address == EVERY_ADDRESS:
        return ((protocol, number),)
    return (protocol, number, address), (protocol, number, EVERY_ADDRESS)


def clash(some: Sequence[HostPort], others: Sequence[HostPort]) -> bool:
    """Return whether pods with these ports cannot share a node."""
    taken = {key for other in others for key in index_keys(other)}
    return not taken.isdisjoint(key for mine in some for key in clashing_keys(mine))


def _without_host_ports(pod: Pod) -> Pod:
    def closed(container: Container) -> Container:
        return replace(container, ports=tuple(replace(port, host_port=0) for port in container.ports))

    spec = pod.spec
    containers, init = tuple(map(closed, spec.containers)), tuple(map(closed, spec.init_containers))
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init))


def _text(port: HostPort) -> str:
    """Return `TCP/80`, or `TCP/10.0.0.1:80` for a specific address."""
    protocol, address, number = port
    return f"{protocol}/{number}" if address == EVERY_ADDRESS else f"{protocol}/{address}:{number}"


def _ports_on(node: NodeView) -> Iterator[tuple[HostPort, ...]]:
    """Return the host ports of the pods on a node. Most pods have none and are skipped quickly."""
    for pod in node.pods:
        spec = pod.spec
        for container in spec.init_containers + spec.containers:
            if container.ports:
                yield container_host_ports(pod)
                break


def _among(nodes: Nodes, rows: Collection[int]) -> BoolArray:
    """Return True for the nodes in these rows of the node table."""
    mine = nodes.table_rows
    marked: BoolArray = np.zeros(max(max(rows), int(mine.max(initial=0))) + 1, dtype=np.bool_)
    marked[list(rows)] = True
    found: BoolArray = marked[mine]
    return found


def port_was_freed(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if an assigned or nominated pod was deleted and freed a port that this pod needs."""
    if not isinstance(old, Pod):
        return QueueingHint.QUEUE
    placed = bool(old.spec.node_name or old.nominated_node_name)
    freed = placed and clash(container_host_ports(pod), container_host_ports(old))
    return QueueingHint.QUEUE if freed else QueueingHint.SKIP
