"""What the events of a scenario do to the cluster: nodes that fail, are drained, come, go and change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from random import Random
from typing import Any

from msgspec.structs import replace

from mooring.api.errors import AlreadyExists, MooringError
from mooring.api.node import Node
from mooring.api.resources import NODES, by_kind
from mooring.sim.objects import node, typed
from mooring.sim.scenario import Event, LabelNodes, NodeShape, NodesNamed, ObjectName, TaintNodes
from mooring.sim.workload import Action, Timed
from mooring.sim.world import LOST, World, key_of


def event_actions(event: Event, random: Random, scale: Callable[[str, int], None]) -> Iterator[Timed]:
    """What one event does, and when; `scale` is called with the workload and its new count."""
    happening = Happening(event, random, scale)
    yield event.at, happening
    if event.back_after is not None:
        yield event.at + event.back_after, happening.bring_back


class Happening:
    """One event when its time has come."""

    def __init__(self, event: Event, random: Random, scale: Callable[[str, int], None]) -> None:
        self._event = event
        self._random = random
        self._scale = scale
        self._failed: list[Node] = []
        """The nodes that it has taken away."""

    def __call__(self, world: World) -> None:
        event = self._event
        if event.fail_node is not None:
            self._failed = self._nodes(world, event.fail_node)
            self._each(self._failed, lambda found: fail_node(world, found.name))
        elif event.remove_nodes is not None:
            self._each(self._nodes(world, event.remove_nodes), lambda found: remove_node(world, found.name))
        elif event.drain is not None:
            self._each(self._nodes(world, event.drain), lambda found: drain(world, found.name))
        elif event.cordon is not None or event.uncordon is not None:
            named = event.cordon if event.cordon is not None else event.uncordon
            on = event.cordon is not None
            self._each(self._nodes(world, named or ()), lambda found: cordon(world, found.name, on))
        elif event.label is not None or event.taint is not None:
            edit = labelled(event.label) if event.label is not None else tainted(event.taint or TAINT_NOTHING)
            change = event.label or event.taint or TAINT_NOTHING
            nodes = self._nodes(world, change.nodes)
            self._each(nodes, lambda found: world.update(NODES, found.name, edit))
        elif event.add_nodes is not None:
            add_nodes(world, event.add_nodes)
        elif event.scale is not None:
            self._scale(event.scale.workload, event.scale.count)
        elif event.apply is not None:
            for manifest in event.apply:
                apply(world, manifest)
        elif event.delete is not None:
            delete(world, event.delete)

    def bring_back(self, world: World) -> None:
        """The nodes that had failed are there again, empty."""
        for found in self._failed:
            world.add(replace(found, metadata=replace(found.metadata, uid="", creation_timestamp=None)))

    def _each(self, nodes: Iterable[Node], do: Callable[[Node], None]) -> None:
        for found in nodes:
            do(found)

    def _nodes(self, world: World, named: NodesNamed) -> list[Node]:
        """Those that are meant; a name that no node has is a mistake."""
        if isinstance(named, str | tuple):
            names = (named,) if isinstance(named, str) else named
            if missing := [name for name in names if name not in world.nodes]:
                raise MooringError(f"there is no node {missing[0]!r} at {world.clock.now():g} s")
            return [world.nodes[name] for name in names]
        wanted = named.match_labels.items()
        found = [each for each in world.nodes.values() if wanted <= each.labels.items()]
        if named.random is None:
            return found
        return self._random.sample(found, min(named.random, len(found)))


TAINT_NOTHING = TaintNodes(nodes=())


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
    cordon(world, name, True)
    for pod in world.pods_on(name):
        world.delete_pod(pod)


def cordon(world: World, name: str, on: bool) -> None:
    world.update(NODES, name, lambda old: replace(old, spec=replace(old.spec, unschedulable=on)))


def labelled(change: LabelNodes) -> Callable[[Node], Node]:
    def edit(old: Node) -> Node:
        labels = {**old.labels, **change.labels}
        kept = {key: value for key, value in labels.items() if value is not None}
        return replace(old, metadata=replace(old.metadata, labels=kept))

    return edit


def tainted(change: TaintNodes) -> Callable[[Node], Node]:
    def edit(old: Node) -> Node:
        replaced = {(taint.key, taint.effect) for taint in change.add}
        kept = [
            taint
            for taint in old.spec.taints
            if taint.key not in change.remove and (taint.key, taint.effect) not in replaced
        ]
        return replace(old, spec=replace(old.spec, taints=(*kept, *change.add)))

    return edit


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
        raise MooringError(f"delete: no plugin reads the kind {name.kind!r}")
    world.remove(resource, key_of(name.name, (name.namespace or "default") if resource.namespaced else ""))


def in_order(events: Iterable[Event], random: Random, scale: Callable[[str, int], None]) -> list[Timed]:
    """All events of a scenario, by time."""
    found: list[tuple[float, Action]] = []
    for event in events:
        found += event_actions(event, random, scale)
    return sorted(found, key=lambda timed: timed[0])
