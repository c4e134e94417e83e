"""Executes the events of a scenario: nodes that fail, are drained, added, removed or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from operator import itemgetter
from random import Random
from typing import Any

from msgspec.structs import replace

from moorage.api.errors import AlreadyExists, MoorageError
from moorage.api.node import Node
from moorage.api.resources import NODES, by_kind
from moorage.sim.cluster import LOST, SimulatedCluster, key_of
from moorage.sim.objects import node, typed
from moorage.sim.scenario import (
    LabelNodes,
    NodeShape,
    NodesNamed,
    ObjectName,
    ScaleWorkload,
    ScenarioEvent,
    Selected,
    TaintNodes,
)
from moorage.sim.workload import Timed


class ScheduledEvent:
    """An event of a scenario, executed at its time."""

    def __init__(self, event: ScenarioEvent, random: Random, scale: Callable[[str, int], None]) -> None:
        self._event = event
        self._random = random
        self._scale = scale
        self._failed: list[Node] = []
        """The nodes that this event has removed."""

    def actions(self) -> Iterator[Timed]:
        """Yield the timed actions of the event."""
        yield self._event.at, self
        if self._event.back_after is not None:
            yield self._event.at + self._event.back_after, self.bring_back

    def __call__(self, cluster: SimulatedCluster) -> None:
        match self._event.action:
            case str(name), (str() | tuple() | Selected()) as named if name in ON_NODES:
                found = self._nodes(cluster, named)
                self._failed = found if name == "failNode" else []
                for node_name in [each.name for each in found]:
                    ON_NODES[name](cluster, node_name)
            case _, (LabelNodes() | TaintNodes()) as change:
                for each in self._nodes(cluster, change.nodes):
                    cluster.update(NODES, each.name, partial(edited, change))
            case _, NodeShape() as shape:
                add_nodes(cluster, shape)
            case _, ScaleWorkload(workload=workload, count=number):
                self._scale(workload, number)
            case _, ObjectName() as name:
                delete(cluster, name)
            case _, manifests:
                for manifest in manifests:
                    apply(cluster, manifest)

    def bring_back(self, cluster: SimulatedCluster) -> None:
        """Add the failed nodes again, without their pods."""
        for found in self._failed:
            cluster.add(replace(found, metadata=replace(found.metadata, uid="", creation_timestamp=None)))

    def _nodes(self, cluster: SimulatedCluster, named: NodesNamed) -> list[Node]:
        """Return the selected nodes. Raise if a name belongs to no node."""
        if isinstance(named, str | tuple):
            names = (named,) if isinstance(named, str) else named
            if missing := [name for name in names if name not in cluster.nodes]:
                raise MoorageError(f"there is no node {missing[0]!r}")
            return [cluster.nodes[name] for name in names]
        wanted = named.match_labels.items()
        found = [each for each in cluster.nodes.values() if wanted <= each.labels.items()]
        if named.random is None:
            return found
        return self._random.sample(found, min(named.random, len(found)))


def fail_node(cluster: SimulatedCluster, name: str) -> None:
    """Remove a node and its pods at once."""
    pods = cluster.pods_on(name)
    cluster.remove(NODES, name)
    for pod in pods:
        cluster.remove_pod(pod, LOST)


def remove_node(cluster: SimulatedCluster, name: str) -> None:
    """Delete the pods of a node, then the node."""
    for pod in cluster.pods_on(name):
        cluster.delete_pod(pod)
    cluster.remove(NODES, name)


def drain(cluster: SimulatedCluster, name: str) -> None:
    """Cordon a node and delete its pods."""
    cordon(cluster, name)
    for pod in cluster.pods_on(name):
        cluster.delete_pod(pod)


def cordon(cluster: SimulatedCluster, name: str, on: bool = True) -> None:
    """Cordon or uncordon a node."""
    cluster.update(NODES, name, lambda old: replace(old, spec=replace(old.spec, unschedulable=on)))


ON_NODES: dict[str, Callable[[SimulatedCluster, str], None]] = {
    "failNode": fail_node,
    "removeNodes": remove_node,
    "drain": drain,
    "cordon": cordon,
    "uncordon": partial(cordon, on=False),
}


def edited(change: LabelNodes | TaintNodes, old: Node) -> Node:
    """Return the node with changed labels or taints."""
    if isinstance(change, LabelNodes):
        labels = {key: value for key, value in {**old.labels, **change.labels}.items() if value is not None}
        return replace(old, metadata=replace(old.metadata, labels=labels))
    replaced = {(taint.key, taint.effect) for taint in change.add}
    kept = [
        taint
        for taint in old.spec.taints
        if taint.key not in change.remove and (taint.key, taint.effect) not in replaced
    ]
    return replace(old, spec=replace(old.spec, taints=(*kept, *change.add)))


def add_nodes(cluster: SimulatedCluster, shape: NodeShape) -> None:
    """Add nodes of a shape, skipping numbers that are in use."""
    if shape.count is None:
        cluster.add(node(shape, shape.name))
        return
    free = (number for number in count() if f"{shape.name}-{number}" not in cluster.nodes)
    for _, number in zip(range(shape.count), free, strict=False):
        cluster.add(node(shape, f"{shape.name}-{number}", number))


def apply(cluster: SimulatedCluster, manifest: Any) -> None:
    """Add an object, or replace the existing one."""
    obj = typed(manifest)
    try:
        cluster.add(obj)
    except AlreadyExists:
        cluster.put(obj)


def delete(cluster: SimulatedCluster, name: ObjectName) -> None:
    """Delete an object."""
    resource = by_kind(name.kind, name.api_version or None) or next(
        (found for (kind, _), found in cluster.custom.items() if kind == name.kind), None
    )
    if resource is None:
        raise MoorageError(f"delete: no plugin reads the kind {name.kind!r}")
    cluster.remove(resource, key_of(name.name, (name.namespace or "default") if resource.namespaced else ""))


def in_order(events: Iterable[ScenarioEvent], random: Random, scale: Callable[[str, int], None]) -> list[Timed]:
    """Return the actions of all events by time. `scale` is called with a workload and its new count."""
    found = [timed for event in events for timed in ScheduledEvent(event, random, scale).actions()]
    return sorted(found, key=itemgetter(0))
