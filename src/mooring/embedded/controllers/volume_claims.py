"""Claims in use: those of generic ephemeral volumes are made, and none goes while a pod or a binding needs
it.
"""

from __future__ import annotations

from typing import Any

from mooring.api.errors import AlreadyExists
from mooring.api.resources import Resource, Unstructured
from mooring.embedded.controllers import kinds
from mooring.embedded.controllers.cache import Cache
from mooring.embedded.controllers.controller import Controller, World, own_key
from mooring.embedded.controllers.pod_states import is_finished, is_terminating
from mooring.embedded.controllers.templates import owner_reference
from mooring.embedded.controllers.volume_matching import phase_of

Raw = dict[str, Any]

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
USED = "claims"
"""The index of pods by the claims that they use."""


def claims_used(pod: Unstructured) -> list[str]:
    """Keys of the claims that a pod names, those of its ephemeral volumes included."""
    names = []
    for volume in (pod.raw.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            names.append(str(volume["persistentVolumeClaim"].get("claimName") or ""))
        elif volume.get("ephemeral"):
            names.append(f"{pod.name}-{volume.get('name')}")
    return [f"{pod.namespace}/{name}" for name in names]


class ClaimProtection(Controller):
    """Keeps claims while pods use them."""

    name = "pvc-protection-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.claims = self.watch(kinds.CLAIMS, own_key)
        self.pods = self.watch(kinds.PODS, claims_used)
        self.pods.add_index(USED, claims_used)

    async def reconcile(self, key: str) -> float | None:
        claim = self.claims.get(key)
        if claim is None:
            return None
        used = any(not is_finished(pod) for pod in self.pods.find(USED, key))
        await protect(self, kinds.CLAIMS, claim, CLAIM_FINALIZER, used)
        return None


class VolumeProtection(Controller):
    """Keeps volumes while they are bound."""

    name = "pv-protection-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.volumes = self.watch(kinds.VOLUMES, own_key)

    async def reconcile(self, key: str) -> float | None:
        volume = self.volumes.get(key)
        if volume is not None:
            await protect(self, kinds.VOLUMES, volume, VOLUME_FINALIZER, phase_of(volume) == "Bound")
        return None


async def protect(
    controller: Controller, resource: Resource, obj: Unstructured, finalizer: str, used: bool
) -> None:
    """Puts the finalizer on what lives, takes it off what is deleted and unused."""
    there = obj.metadata.finalizers
    if is_terminating(obj):
        wanted = list(there) if used else [name for name in there if name != finalizer]
    else:
        wanted = list(there) if finalizer in there else [*there, finalizer]
    if wanted != list(there):
        await controller.writer.patch(resource, obj, {"metadata": {"finalizers": wanted or None}})


class EphemeralClaims(Controller):
    """Makes the claims of generic ephemeral volumes; they go with their pod."""

    name = "ephemeral-volume-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.pods = self.watch(kinds.PODS, lambda pod: own_key(pod) if _templates(pod) else ())
        self.claims: Cache = self.caches.of(kinds.CLAIMS)

    async def reconcile(self, key: str) -> float | None:
        pod = self.pods.get(key)
        if pod is None or is_terminating(pod) or is_finished(pod):
            return None
        for name, template in _templates(pod).items():
            claim = self.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                await self._create(pod, name, template)
            elif not any(owner.uid == pod.uid for owner in claim.metadata.owner_references):
                note = f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
                self.warn(pod, "EphemeralVolumeConflict", note)
        return None

    async def _create(self, pod: Unstructured, name: str, template: Raw) -> None:
        given = template.get("metadata") or {}
        meta = {field: given[field] for field in ("labels", "annotations") if given.get(field)}
        owners = [owner_reference(kinds.PODS, pod)]
        meta.update(name=name, namespace=pod.namespace, ownerReferences=owners)
        try:
            await self.writer.create(kinds.CLAIMS, {"metadata": meta, "spec": template.get("spec") or {}})
        except AlreadyExists:
            await self.writer.refresh(kinds.CLAIMS, name, pod.namespace)
            raise


def _templates(pod: Unstructured) -> dict[str, Raw]:
    """Name of the claim → template, for each generic ephemeral volume."""
    volumes = (pod.raw.get("spec") or {}).get("volumes") or ()
    return {
        f"{pod.name}-{v.get('name')}": v["ephemeral"].get("volumeClaimTemplate") or {}
        for v in volumes
        if v.get("ephemeral")
    }
