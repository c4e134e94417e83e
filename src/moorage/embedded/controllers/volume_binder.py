"""Claims and volumes: bound to each other, provisioned where a class says so, released and reclaimed.

    claim:   Pending ──match or provision──▶ Bound ──volume gone──▶ Lost
    volume:  Available ──▶ Bound ──claim gone──▶ Released ──Delete──▶ gone
                                                     └────Retain──▶ stays

A class with WaitForFirstConsumer waits until the scheduler names a node in the claim's annotation, or the
claim in a volume's claimRef.
"""

from __future__ import annotations

from typing import Any

from moorage.api.errors import AlreadyExists, NotFound
from moorage.api.resources import Unstructured
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.controller import Controller, ControllerContext
from moorage.embedded.controllers.kinds import is_terminating
from moorage.embedded.controllers.volume_claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    DEFAULT_CLASS,
    NO_PROVISIONER,
    SELECTED_NODE,
    best_match,
    claim_of,
    is_for,
    phase_of,
    provisioned,
    reference_to,
    spec_of,
)

Raw = dict[str, Any]

_CLAIM, _VOLUME = "claim|", "volume|"
RETRY = 15.0
"""Seconds between two looks at a claim that cannot be bound."""


class VolumeBinder(Controller):
    """Keys are `claim|namespace/name` and `volume|name`."""

    name = "persistentvolume-controller"
    workers = 1  # two at once could give one volume to two claims

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.claims = self.watch(kinds.CLAIMS, lambda claim: self._of_claim(claim))
        self.volumes = self.watch(kinds.VOLUMES, lambda volume: self._of_volume(volume))
        self.classes = self.caches.of(kinds.STORAGE_CLASSES)
        self.classes.handlers.append(self._class_changed)
        self.nodes = self.caches.of(kinds.NODES)

    def _of_claim(self, claim: Unstructured) -> list[str]:
        volume = spec_of(claim).get("volumeName")
        return [_CLAIM + claim.key, *([_VOLUME + volume] if volume else [])]

    def _of_volume(self, volume: Unstructured) -> list[str]:
        ref = claim_of(volume)
        claims = [f"{_CLAIM}{ref.get('namespace')}/{ref.get('name')}"] if ref else self._waiting()
        return [_VOLUME + volume.name, *claims]

    def _waiting(self) -> list[str]:
        """A free volume may be what any of these waits for."""
        return [_CLAIM + claim.key for claim in self.claims if phase_of(claim) == "Pending"]

    def _class_changed(self, old: Unstructured | None, new: Unstructured | None) -> None:
        for key in self._waiting():
            self.queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        kind, _, name = key.partition("|")
        if kind == "claim":
            claim = self.claims.get(name)
            if claim is not None and not is_terminating(claim):
                return await self._sync_claim(claim)
            return None
        volume = self.volumes.get(name)
        return await self._sync_volume(volume) if volume is not None else None

    # Claims

    async def _sync_claim(self, claim: Unstructured) -> float | None:
        name = spec_of(claim).get("volumeName")
        if name:
            return await self._sync_named(claim, str(name))
        claim = await self._with_class(claim)
        match = best_match(claim, self.volumes)
        storage_class = self._class_of(claim)
        if match is not None and (is_for(match, claim) or not self._waits(claim, storage_class)):
            await self._bind(claim, match)
            return None
        if self._waits(claim, storage_class):
            note = "waiting for first consumer to be created before binding"
            self.event(claim, "WaitForFirstConsumer", note)
            return None
        return await self._provision(claim, storage_class)

    async def _sync_named(self, claim: Unstructured, name: str) -> float | None:
        volume = self.volumes.get(name)
        if volume is None:
            if BIND_COMPLETED not in claim.annotations:
                return RETRY
            if phase_of(claim) != "Lost":
                status = {**(claim.raw.get("status") or {}), "phase": "Lost"}
                await self.writer.update_status(kinds.CLAIMS, claim, status)
                self.warn(claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
            return None
        if claim_of(volume) is None or is_for(volume, claim):
            await self._bind(claim, volume)
            return None
        note = f'volume "{name}" already bound to a different claim.'
        self.warn(claim, "FailedBinding", note)
        return RETRY

    async def _with_class(self, claim: Unstructured) -> Unstructured:
        """A claim that names no class gets the default one, if there is one."""
        if spec_of(claim).get("storageClassName") is not None:
            return claim
        defaults = [c for c in self.classes if c.annotations.get(DEFAULT_CLASS) == "true"]
        if not defaults:
            return claim
        newest = max(defaults, key=lambda c: (c.metadata.creation_timestamp or "", c.name))
        return await self.writer.patch(kinds.CLAIMS, claim, {"spec": {"storageClassName": newest.name}})

    def _class_of(self, claim: Unstructured) -> Unstructured | None:
        return self.classes.get(str(spec_of(claim).get("storageClassName") or ""))

    def _waits(self, claim: Unstructured, storage_class: Unstructured | None) -> bool:
        delayed = storage_class is not None and (storage_class.raw.get("volumeBindingMode") == "WaitForFirstConsumer")
        return delayed and SELECTED_NODE not in claim.annotations

    async def _provision(self, claim: Unstructured, storage_class: Unstructured | None) -> float | None:
        wanted = spec_of(claim).get("storageClassName")
        if storage_class is None:
            if wanted:
                self.warn(claim, "ProvisioningFailed", f'storageclass.storage.k8s.io "{wanted}" not found')
            else:
                note = "no persistent volumes available for this claim and no storage class is set"
                self.event(claim, "FailedBinding", note)
            return RETRY
        provisioner = str(storage_class.raw.get("provisioner") or "")
        if provisioner == NO_PROVISIONER:
            return RETRY
        node = self.nodes.get(claim.annotations.get(SELECTED_NODE, ""))
        raw = provisioned(claim, storage_class, node)
        try:
            volume = await self.writer.create(kinds.VOLUMES, raw)
        except AlreadyExists:
            await self.writer.refresh(kinds.VOLUMES, raw["metadata"]["name"], "")
            raise
        self.event(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {volume.name}")
        await self._bind(claim, volume)
        return None

    async def _bind(self, claim: Unstructured, volume: Unstructured) -> None:
        """Both sides, volume first; each step may have been taken before."""
        ref = claim_of(volume)
        if ref is None or not ref.get("uid"):
            patch: Raw = {"spec": {"claimRef": reference_to(claim)}}
            if ref is None:
                patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
            volume = await self.writer.patch(kinds.VOLUMES, volume, patch)
        await self._set_phase(volume, "Bound")
        if spec_of(claim).get("volumeName") != volume.name or BIND_COMPLETED not in claim.annotations:
            notes = {BIND_COMPLETED: "yes"}
            if not spec_of(claim).get("volumeName"):
                notes[BOUND_BY_CONTROLLER] = "yes"
            patch = {"metadata": {"annotations": notes}, "spec": {"volumeName": volume.name}}
            claim = await self.writer.patch(kinds.CLAIMS, claim, patch)
        offered = spec_of(volume)
        status = {
            **(claim.raw.get("status") or {}),
            "phase": "Bound",
            "accessModes": offered.get("accessModes") or [],
            "capacity": offered.get("capacity") or {},
        }
        await self.writer.update_status(kinds.CLAIMS, claim, status)

    # Volumes

    async def _sync_volume(self, volume: Unstructured) -> float | None:
        ref = claim_of(volume)
        if ref is None:
            await self._set_phase(volume, "Available")
            return None
        claim = self.claims.get(f"{ref.get('namespace')}/{ref.get('name')}")
        if not ref.get("uid"):
            await self._set_phase(volume, "Available")  # kept for a claim that is yet to come
            return None
        if claim is not None and claim.uid == ref["uid"]:
            return None  # the claim's own look does the rest
        if await self._claim_exists(ref):
            return 1.0
        await self._release(volume)
        return None

    async def _claim_exists(self, ref: Raw) -> bool:
        """Asked of the server itself: the cache of claims may be behind that of volumes."""
        try:
            found = await self.world.client.get(kinds.CLAIMS, str(ref["name"]), str(ref["namespace"]))
        except NotFound:
            return False
        return bool(found.uid == ref["uid"])

    async def _release(self, volume: Unstructured) -> None:
        volume = await self._set_phase(volume, "Released")
        if spec_of(volume).get("persistentVolumeReclaimPolicy") == "Delete" and not is_terminating(volume):
            await self.writer.delete(kinds.VOLUMES, volume)

    async def _set_phase(self, volume: Unstructured, phase: str) -> Unstructured:
        if phase_of(volume) == phase and volume.raw.get("status"):
            return volume
        status = {**(volume.raw.get("status") or {}), "phase": phase}
        return await self.writer.update_status(kinds.VOLUMES, volume, status)
