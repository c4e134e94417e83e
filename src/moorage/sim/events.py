"""What the events of a scenario do to the cluster: nodes that fail, are drained, come, go and change."""

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
from moorage.sim.objects import node, typed
from moorage.sim.scenario import (
    Event,
    LabelNodes,
    NodeShape,
    NodesNamed,
    ObjectName,
    Scale,
    Selected,
    TaintNodes,
)
from moorage.sim.workload import Timed
from moorage.sim.world import LOST, World, key_of


class Happening:
    """One event when its time has come."""

    def __init__(self, event: Event, random: Random, scale: Callable[[str, int], None]) -> None:
        self._event = event
        self._random = random
        self._scale = scale
        self._failed: list[Node] = []
        """The nodes that it has taken away."""

    def actions(self) -> Iterator[Timed]:
        yield self._event.at, self
        if self._event.back_after is not None:
            yield self._event.at + self._event.back_after, self.bring_back

    def __call__(self, world: World) -> None:
        match self._event.action:
            case str(name), (str() | tuple() | Selected()) as named if name in ON_NODES:
                found = self._nodes(world, named)
                self._failed = found if name == "failNode" else []
                for node_name in [each.name for each in found]:
                    ON_NODES[name](world, node_name)
            case _, (LabelNodes() | TaintNodes()) as change:
                for each in self._nodes(world, change.nodes):
                    world.update(NODES, each.name, partial(edited, change))
            case _, NodeShape() as shape:
                add_nodes(world, shape)
            case _, Scale(workload=workload, count=number):
                self._scale(workload, number)
            case _, ObjectName() as name:
                delete(world, name)
            case _, manifests:
                for manifest in manifests:
                    apply(world, manifest)

    def bring_back(self, world: World) -> None:
        """The nodes that had failed are there again, empty."""
        for found in self._failed:
            world.add(replace(found, metadata=replace(found.metadata, uid="", creation_timestamp=None)))

    def _nodes(self, world: World, named: NodesNamed) -> list[Node]:
        """Those that are meant; a name that no node has is a mistake."""
        if isinstance(named, str | tuple):
            names = (named,) if isinstance(named, str) else named
            if missing := [name for name in names if name not in world.nodes]:
                raise MoorageError(f"there is no node {missing[0]!r}")
            return [world.nodes[name] for name in names]
        wanted = named.match_labels.items()
        found = [each for each in world.nodes.values() if wanted <= each.labels.items()]
        if named.random is None:
            return found
        return self._random.sample(found, min(named.random, len(found)))


def fail_node(world: World, name: str) -> None:
    """The node and its pods are gone at once."""
    pods = world.pods_on(name)
    world.remove(NODES, name)
    for pod in pods:
        world.remove_pod(pod, LOST)


def remove_node(world: World, name: str) -> None:
    """The pods are deleted first."""
    for pod in world.pods_on(name):
        world.delete_pod(pod)
    world.remove(NODES, name)


def drain(world: World, name: str) -> None:
    """Cordon, and delete the pods."""
    cordon(world, name)
    for pod in world.pods_on(name):
        world.delete_pod(pod)


def cordon(world: World, name: str, on: bool = True) -> None:
    world.update(NODES, name, lambda old: replace(old, spec=replace(old.spec, unschedulable=on)))


ON_NODES: dict[str, Callable[[World, str], None]] = {
    "failNode": fail_node,
    "removeNodes": remove_node,
    "drain": drain,
    "cordon": cordon,
    "uncordon": partial(cordon, on=False),
}


def edited(change: LabelNodes | TaintNodes, old: Node) -> Node:
    """The node with other labels or taints."""
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


def add_nodes(world: World, shape: NodeShape) -> None:
    """More nodes of a shape; numbers that are taken are left out."""
    if shape.count is None:
        world.add(node(shape, shape.name))
        return
    free = (number for number in count() if f"{shape.name}-{number}" not in world.nodes)
    for _, number in zip(range(shape.count), free, strict=False):
        world.add(node(shape, f"{shape.name}-{number}", number))


def apply(world: World, manifest: Any) -> None:
    """Add the object, or put it in the place of the one that is there."""
    obj = typed(manifest)
    try:
        world.add(obj)
    except AlreadyExists:
        world.put(obj)


def delete(world: World, name: ObjectName) -> None:
    resource = by_kind(name.kind, name.api_version or None) or next(
        (found for (kind, _), found in world.custom.items() if kind == name.kind), None
    )
    if resource is None:
        raise MoorageError(f"delete: no plugin reads the kind {name.kind!r}")
    world.remove(resource, key_of(name.name, (name.namespace or "default") if resource.namespaced else ""))


def in_order(events: Iterable[Event], random: Random, scale: Callable[[str, int], None]) -> list[Timed]:
    """What all events of a scenario do, by time; `scale` is called with a workload and its new count."""
    found = [timed for event in events for timed in Happening(event, random, scale).actions()]
    return sorted(found, key=itemgetter(0))
