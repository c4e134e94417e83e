"""VolumeZone: a node with a zone or region label accepts a pod only if its bound volumes are there too.

Follows pkg/scheduler/framework/plugins/volumezone/volume_zone.go."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from moorage.api.node import REGION, ZONE
from moorage.api.pod import Pod
from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.framework.access import LISTED, Access, Dependency, Kind, Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.events import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
    ClusterEvent,
    QueueingHint,
    Registration,
)
from moorage.framework.handle import Handle
from moorage.framework.hot import WholeTableFilterPlugin
from moorage.framework.nodes import BoolArray, Nodes, NodeView, Refusals
from moorage.framework.optional import NO_LABEL, Detail, ExplainingPlugin, ReusablePlugin
from moorage.framework.points import PreFilterPlugin
from moorage.framework.status import Code, Status
from moorage.plugins.csi_translation import BETA_REGION, BETA_ZONE, ZONE_DELIMITER
from moorage.plugins.label_facts import values_here
from moorage.plugins.volumes import (
    SKIP,
    WAIT_FOR_FIRST_CONSUMER,
    claim_not_found,
    class_of_claim,
    missing_claims,
    named_claims,
    not_found,
    own_named_claim,
    signature,
)

REASON = "node(s) had no available volume zone"
KEYS = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}
"""The labels of a volume that bind it to a place, each with the label of a node that may stand in for it."""
STATE = "VolumeZone"

Topology = tuple[str, frozenset[str]]
"""A label and the values of which the node must have one."""


class VolumeZone(PreFilterPlugin, WholeTableFilterPlugin, ReusablePlugin, ExplainingPlugin):
    name = "VolumeZone"
    few_signs = True
    needs = (
        Access(PERSISTENT_VOLUME_CLAIMS, LISTED),
        Access(PERSISTENT_VOLUMES, LISTED),
        Access(STORAGE_CLASSES, LISTED),
    )

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._claims = handle.lister(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = handle.lister(PERSISTENT_VOLUMES)
        self._classes = handle.lister(STORAGE_CLASSES)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Collect the zones and regions of all bound volumes; Skip if there are none."""
        found: list[Topology] = []
        for name in named_claims(pod):
            claim = self._claims.get(name, pod.namespace) if name else None
            if claim is None:
                reason = claim_not_found(name) if name else "PersistentVolumeClaim had no name"
                return Status.unresolvable(reason)
            places = self._places(claim)
            if isinstance(places, str):
                return Status.unresolvable(places)
            found.extend(places)
        if not found:
            return SKIP
        state.write(STATE, tuple(dict.fromkeys(found)))
        return None

    def _places(self, claim: PersistentVolumeClaim) -> tuple[Topology, ...] | str:
        """Return the zones and regions of the claim's volume, or why the pod cannot be scheduled now."""
        if not claim.spec.volume_name:
            return self._why_unbound(claim)
        volume = self._volumes.get(claim.spec.volume_name)
        return not_found("persistentvolume", claim.spec.volume_name) if volume is None else places_of(volume)

    def _why_unbound(self, claim: PersistentVolumeClaim) -> tuple[Topology, ...] | str:
        """Return why an unbound claim is a problem; it is none if the class has the mode WaitForFirstConsumer."""
        name = class_of_claim(claim)
        if not name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        found = self._classes.get(name)
        if found is None:
            return not_found("storageclass.storage.k8s.io", name)
        if found.volume_binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{name}"'
        return () if found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Nodes) -> Refusals | None:
        places: tuple[Topology, ...] = state.read(STATE)
        away = nodes.node_column((STATE, places), lambda some: out_of_place(some, places))
        return nodes.refuse(away, REASON, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def explain(self, state: CycleState, pod: Pod, node: NodeView) -> Iterator[Detail]:
        yield from missing_claims(pod, self._claims)
        if KEYS.keys().isdisjoint(node.labels):
            return
        for name in dict.fromkeys(named_claims(pod)):
            claim = self._claims.get(name, pod.namespace)
            places = self._places(claim) if claim is not None else ()
            for key, values in () if isinstance(places, str) else places:
                here = node.labels.get(key, node.labels.get(KEYS[key], NO_LABEL))
                if here not in values:
                    where = f"{key} {', '.join(sorted(values))}"
                    yield Detail(f"claim {pod.namespace}/{name}: volume in {where}", there=here)

    def facts(self, state: CycleState, pod: Pod, nodes: Nodes) -> Iterator[str]:
        """Name the zones of volumes that no node is in, and the zones that exist."""
        for name in dict.fromkeys(named_claims(pod)):
            claim = self._claims.get(name, pod.namespace)
            places = self._places(claim) if claim is not None else ()
            for key, values in () if isinstance(places, str) else places:
                if not (nodes.label_equals(key, *values) | nodes.label_equals(KEYS[key], *values)).any():
                    where = ", ".join(sorted(values))
                    here = values_here(KEYS[key], nodes)
                    yield f"The volume of claim {pod.namespace}/{name} is in {where}, where no node is. {here}"

    def events_to_register(self) -> Sequence[Registration]:
        changed = ActionType.ADD | ActionType.UPDATE
        node = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [
            Registration(ClusterEvent(STORAGE_CLASS, ActionType.ADD), new_waiting_class),
            Registration(node),
            Registration(ClusterEvent(PERSISTENT_VOLUME_CLAIM, changed), own_named_claim),
            Registration(ClusterEvent(PERSISTENT_VOLUME, changed), volume_moved),
        ]

    def sign(self, pod: Pod) -> Hashable:
        return signature(pod)

    def reads(self, pod: Pod) -> Collection[Dependency]:
        if not named_claims(pod):
            return ()
        kinds = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES)
        return (Reads.NODE, *map(Kind, kinds))


def places_of(volume: PersistentVolume) -> tuple[Topology, ...]:
    """Return the zones and regions in the volume's labels; an empty label is ignored."""
    found = []
    for key in KEYS:
        if key in volume.labels:
            values = frozenset(part.strip() for part in volume.labels[key].split(ZONE_DELIMITER))
            if "" not in values:
                found.append((key, values))
    return tuple(found)


def out_of_place(nodes: Nodes, places: Sequence[Topology]) -> BoolArray:
    """Return True for nodes that have a zone or region, but not one of those of the volumes."""
    somewhere = np.zeros(len(nodes), dtype=np.bool_)
    for key in KEYS:
        somewhere |= nodes.has_label(key)
    wrong = np.zeros(len(nodes), dtype=np.bool_)
    for key, values in places:
        stand_in = nodes.label_equals(KEYS[key], *values)
        wrong |= ~np.where(nodes.has_label(key), nodes.label_equals(key, *values), stand_in)
    return somewhere & wrong


def new_waiting_class(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if the new class has the mode WaitForFirstConsumer; no other class helps an unbound claim."""
    waits = isinstance(new, StorageClass) and new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return QueueingHint.QUEUE if waits else QueueingHint.SKIP


def volume_moved(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """Queue if a volume is new or its zone or region labels have changed."""
    same = isinstance(old, PersistentVolume) and isinstance(new, PersistentVolume) and places_of(old) == places_of(new)
    return QueueingHint.SKIP if same else QueueingHint.QUEUE
