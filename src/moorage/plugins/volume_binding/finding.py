"""Judge nodes: does every claim of the pod have a volume there, or can one be provisioned? Follows FindPodVolumes in
pkg/scheduler/framework/plugins/volumebinding/binder.go.

All nodes are judged at once. The plan for the chosen node is read from the same result, so that a reservation never
differs from the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moorage.api import quantity
from moorage.api.errors import SelectorError
from moorage.api.resources import CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, PERSISTENT_VOLUMES, STORAGE_CLASSES
from moorage.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.framework.handle import Handle
from moorage.framework.nodes import BoolArray, Nodes, NodeView, Refusals
from moorage.framework.status import Code
from moorage.plugins import csi_translation as csi
from moorage.plugins.volume_binding import matching, reach
from moorage.plugins.volume_binding.claims import PodClaims
from moorage.plugins.volumes import SELECTED_NODE, class_of_claim

REASON_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
REASON_NO_SPACE = "node(s) did not have enough free storage"
REASON_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
REASONS = (REASON_AFFINITY, REASON_NO_VOLUME, REASON_NO_SPACE, REASON_GONE)
"""In the order in which a node shows them."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """The volumes of the pod on one node: existing volumes, and claims that must be provisioned."""

    static: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]
    dynamic: tuple[PersistentVolumeClaim, ...]


class Findings:
    """The masks and the chosen volumes for a set of nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._refused = {reason: np.zeros(len(nodes), dtype=np.bool_) for reason in REASONS}
        self.failing: list[tuple[PersistentVolumeClaim, str, BoolArray]] = []
        """Claim, reason, and the nodes that are refused because of them."""
        self._errors: list[tuple[BoolArray, str]] = []
        self.picks: list[tuple[PersistentVolumeClaim, Sequence[PersistentVolume], matching.PickArray]] = []
        """Claim, the volumes of its class, and the index of the chosen one per node."""
        self.to_provision: list[tuple[PersistentVolumeClaim, BoolArray]] = []
        """Claim, and the nodes on which it must be provisioned."""

    def refuse(self, mask: BoolArray, reason: str, claim: PersistentVolumeClaim) -> None:
        self._refused[reason] |= mask
        self.failing.append((claim, reason, mask))

    def fail(self, mask: BoolArray, error: str) -> None:
        """Fail the attempt if one of these nodes is still feasible."""
        self._errors.append((mask, error))

    def picked(
        self, claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume], picks: matching.PickArray
    ) -> None:
        self.picks.append((claim, volumes, picks))

    def made(self, claim: PersistentVolumeClaim, mask: BoolArray) -> None:
        self.to_provision.append((claim, mask))

    def picks_from(self, volumes: Sequence[PersistentVolume]) -> list[matching.PickArray]:
        """Return the volumes of the same list that earlier claims were given."""
        return [picks for _, source, picks in self.picks if source is volumes]

    @property
    def refused(self) -> BoolArray:
        """The nodes that are refused, or that fail the attempt."""
        found = np.zeros(len(self.nodes), dtype=np.bool_)
        for mask in (*self._refused.values(), *(mask for mask, _ in self._errors)):
            found |= mask
        return found

    def refusals(self) -> Refusals:
        refusals = self.nodes.refusals()
        for mask, error in self._errors:
            if mask.any():
                return refusals.add(mask, error, Code.ERROR)
        for reason, mask in self._refused.items():
            refusals.add(mask, reason, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        return refusals

    def objection(self, index: int) -> str:
        """Return why the node is rejected; empty if it is not."""
        errors = [error for mask, error in self._errors if mask[index]]
        return ", ".join(errors[:1] or [reason for reason, mask in self._refused.items() if mask[index]])

    def plan(self, index: int) -> VolumePlan:
        """Return the plan for a node that was not rejected."""
        static = tuple(
            (claim, volumes[picks[index]]) for claim, volumes, picks in self.picks if picks[index] != matching.NONE
        )
        return VolumePlan(static, tuple(claim for claim, mask in self.to_provision if mask[index]))


class Finder:
    """Judges nodes from the informers' stores and the assumed objects."""

    def __init__(self, handle: Handle) -> None:
        self._volumes = handle.assume_cache(PERSISTENT_VOLUMES)
        self._classes = handle.lister(STORAGE_CLASSES)
        self._csi_nodes = handle.lister(CSI_NODES)
        self._drivers = handle.lister(CSI_DRIVERS)
        self._topology = handle.topology
        self._capacities = handle.object_index(
            "VolumeBinding.capacities", CSI_STORAGE_CAPACITIES, lambda each: (each.storage_class_name,)
        )

    def find(self, claims: PodClaims, nodes: Nodes) -> Findings:
        """Judge bound and unbound claims independently: a node may fail on both."""
        found = Findings(nodes)
        self._judge_bound(claims.bound, found)
        if claims.delayed:
            self._judge_delayed(claims, found)
        return found

    def _judge_bound(self, claims: Sequence[PersistentVolumeClaim], found: Findings) -> None:
        """Judge bound claims; each node reports the first claim that fails on it."""
        fine = np.ones(len(found.nodes), dtype=np.bool_)
        for claim in claims:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                return found.refuse(fine, REASON_GONE, claim)
            reached = self._reached(volume, found, fine)
            found.refuse(fine & ~reached, REASON_AFFINITY, claim)
            fine &= reached
        return None

    def _reached(self, volume: PersistentVolume, found: Findings, asked: BoolArray) -> BoolArray:
        """Return the nodes that can access a bound volume; a migrated plugin uses the driver's topology."""
        plain = reach.reachable(found.nodes, reach.required_nodes(volume))
        plugin = csi.plugin_of(volume)
        if plugin is None or not plugin.migrated:
            return plain
        migrated = np.array(
            [csi.is_migrated_on(self._csi_nodes.get(name), plugin) for name in found.nodes.names], np.bool_
        )
        if not migrated.any():
            return plain
        try:
            translated = csi.translated_affinity(plugin, volume)
        except csi.TranslationError as error:
            found.fail(asked & migrated, f"could not translate pv: {error}")
            return plain
        return np.where(migrated, reach.reachable(found.nodes, translated), plain)

    def _judge_delayed(self, claims: PodClaims, found: Findings) -> None:
        """Judge unbound claims. A claim with a selected node is provisioned there and nowhere else. The others take an
        existing volume, the smallest claim first, and are provisioned if there is none."""
        nodes = found.nodes
        asked = np.ones(len(nodes), dtype=np.bool_)
        selected = [claim for claim in claims.delayed if SELECTED_NODE in claim.annotations]
        for claim in selected:
            there = nodes.named(claim.annotations[SELECTED_NODE])
            found.refuse(~there, REASON_NO_VOLUME, claim)
            asked &= there
        to_make = [(claim, asked) for claim in selected]
        others = [claim for claim in claims.delayed if SELECTED_NODE not in claim.annotations]
        for claim in sorted(others, key=matching.size_of_claim):
            volumes = (claims.volumes or {}).get(class_of_claim(claim), ())
            picks = self._match(claim, volumes, asked, found)
            to_make.append((claim, asked & (picks == matching.NONE)))
        self._judge_provisions(to_make, found)

    def _match(
        self, claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume], asked: BoolArray, found: Findings
    ) -> matching.PickArray:
        nodes = found.nodes
        places: dict[int, int] = {}
        """Row of the table → place among these nodes; made for the first volume that needs it."""

        def few(index: int) -> list[int] | None:
            rows = reach.few_rows(reach.required_nodes(volumes[index]), self._topology)
            if rows is None:
                return None
            if not places:
                places.update((row, place) for place, row in enumerate(nodes.table_rows.tolist()))
            return [places[row] for row in rows if row in places]

        def reached(index: int) -> BoolArray:
            return reach.reachable_once(nodes, reach.required_nodes(volumes[index]))

        try:
            candidates = matching.candidates(claim, volumes)
        except SelectorError as error:
            found.fail(asked, f"error creating internal label selector for claim: {claim.key}: {error}")
            return np.full(len(asked), matching.NONE, dtype=np.int32)
        picks = matching.pick(candidates, asked, few, reached, found.picks_from(volumes))
        found.picked(claim, volumes, picks)
        return picks

    def _judge_provisions(self, to_make: Sequence[tuple[PersistentVolumeClaim, BoolArray]], found: Findings) -> None:
        """Judge provisioning; each node reports the first claim that cannot be provisioned there."""
        fine = np.ones(len(found.nodes), dtype=np.bool_)
        for claim, where in to_make:
            asked = fine & where
            if asked.any():
                self._judge_provision(claim, asked, found, fine)
                found.made(claim, where)

    def _judge_provision(
        self, claim: PersistentVolumeClaim, asked: BoolArray, found: Findings, fine: BoolArray
    ) -> None:
        name = class_of_claim(claim)
        storage_class = self._classes.get(name) if name else None
        if storage_class is None:
            missing = f'failed to find storage class "{name}"' if name else f'no class for claim "{claim.key}"'
            return found.fail(asked, missing)
        makes = np.zeros(len(asked), dtype=np.bool_)
        if storage_class.provisioner not in ("", NO_PROVISIONER):
            makes = reach.allowed(found.nodes, storage_class.allowed_topologies)
        found.refuse(asked & ~makes, REASON_NO_VOLUME, claim)
        large_enough = self._has_capacity(claim, storage_class, found.nodes)
        found.refuse(asked & makes & ~large_enough, REASON_NO_SPACE, claim)
        fine &= ~asked | (makes & large_enough)
        return None

    def _has_capacity(self, claim: PersistentVolumeClaim, storage_class: StorageClass, nodes: Nodes) -> BoolArray:
        capacities = self.capacities(claim, storage_class)
        if capacities is None:
            return np.ones(len(nodes), dtype=np.bool_)
        found = np.zeros(len(nodes), dtype=np.bool_)
        for capacity in capacities:
            found |= reach.has_capacity(nodes, capacity)
        return found

    def largest(self, claim: PersistentVolumeClaim, node: NodeView) -> int:
        """Return the size in bytes of the largest volume that can be provisioned for the claim on the node; 0 for
        none."""
        nodes = node.alone()
        here = (each for each in self._capacities.at(class_of_claim(claim)) if reach.has_capacity(nodes, each)[0])
        return max((reach.volume_limit(each) or 0 for each in here), default=0)

    def capacities(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> list[CSIStorageCapacity] | None:
        """Return the CSIStorageCapacity objects that are large enough for the claim; None if no check is needed,
        because the claim requests no size or the driver does not publish capacities."""
        size = claim.spec.resources.requests.get("storage")
        driver = self._drivers.get(storage_class.provisioner)
        if size is None or driver is None or not driver.spec.storage_capacity:
            return None
        needed = quantity.value(size)
        return [
            capacity
            for capacity in self._capacities.at(storage_class.name)
            if (limit := reach.volume_limit(capacity)) is not None and limit >= needed
        ]
