"""Claims: which persistent volume fits one, what a provisioned volume looks like, and claims in use.

Claims of generic ephemeral volumes are made, and none goes while a pod or a binding needs it. Binding itself
is in `volume_binder`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from moorage.api import quantity
from moorage.api.errors import AlreadyExists
from moorage.api.meta import LabelSelector
from moorage.api.node import HOSTNAME, ZONE
from moorage.api.resources import Resource, Unstructured
from moorage.api.selectors import compile_label_selector
from moorage.embedded.controllers import kinds
from moorage.embedded.controllers.caches import Cache
from moorage.embedded.controllers.controller import Controller, ControllerContext, own_key
from moorage.embedded.controllers.kinds import is_finished, is_terminating
from moorage.embedded.controllers.ownership import owner_reference

Raw = dict[str, Any]

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
TOPOLOGY = "moorage.dev/topology"
"""Parameter of a StorageClass: where its volumes can be reached from once a node is chosen: `zone` (the
default), `node` or `any`."""
_TOPOLOGY_LABELS = {"zone": ZONE, "node": HOSTNAME}
CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
USED = "claims"
"""The index of pods by the claims that they use."""


def spec_of(obj: Unstructured) -> Raw:
    return obj.raw.get("spec") or {}


def phase_of(obj: Unstructured) -> str:
    return str((obj.raw.get("status") or {}).get("phase") or "Pending")


def claim_of(volume: Unstructured) -> Raw | None:
    """The reference to the claim that a volume is for."""
    ref: Raw | None = spec_of(volume).get("claimRef")
    return ref or None


def is_for(volume: Unstructured, claim: Unstructured) -> bool:
    """Whether a volume's claimRef names this claim; without a UID the name is enough."""
    ref = claim_of(volume)
    if ref is None or (ref.get("namespace"), ref.get("name")) != (claim.namespace, claim.name):
        return False
    return ref.get("uid") in (None, "", claim.uid)


def best_match(claim: Unstructured, volumes: Iterable[Unstructured]) -> Unstructured | None:
    """The smallest free volume that fits; one that names the claim goes before all others."""
    fitting = []
    for volume in volumes:
        if volume.metadata.deletion_timestamp:
            continue
        if is_for(volume, claim):
            return volume
        if claim_of(volume) is None and phase_of(volume) != "Released" and fits(claim, volume):
            fitting.append(volume)
    return min(fitting, key=lambda v: (_size(spec_of(v).get("capacity")), v.name), default=None)


def fits(claim: Unstructured, volume: Unstructured) -> bool:
    wanted, offered = spec_of(claim), spec_of(volume)
    if (wanted.get("storageClassName") or "") != (offered.get("storageClassName") or ""):
        return False
    if (wanted.get("volumeMode") or "Filesystem") != (offered.get("volumeMode") or "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(offered.get("accessModes") or ()):
        return False
    if _size((wanted.get("resources") or {}).get("requests")) > _size(offered.get("capacity")):
        return False
    selector = wanted.get("selector")
    return not selector or compile_label_selector(msgspec.convert(selector, LabelSelector)).matches(volume.labels)


def reference_to(claim: Unstructured) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.resource_version,
    }


def provisioned(claim: Unstructured, storage_class: Unstructured, node: Unstructured | None) -> Raw:
    """The volume that a provisioner would make for the claim."""
    raw, wanted = storage_class.raw, spec_of(claim)
    name = f"pvc-{claim.uid}"
    spec: Raw = {
        "capacity": {"storage": ((wanted.get("resources") or {}).get("requests") or {}).get("storage", "1Gi")},
        "accessModes": wanted.get("accessModes") or ["ReadWriteOnce"],
        "claimRef": reference_to(claim),
        "persistentVolumeReclaimPolicy": raw.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class.name,
        "volumeMode": wanted.get("volumeMode") or "Filesystem",
        "csi": {"driver": str(raw.get("provisioner") or ""), "volumeHandle": name},
    }
    if raw.get("mountOptions"):
        spec["mountOptions"] = raw["mountOptions"]
    reach = _reach(storage_class, node)
    if reach is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [reach]}]}}
    notes = {PROVISIONED_BY: str(raw.get("provisioner") or "")}
    return {"metadata": {"name": name, "annotations": notes}, "spec": spec}


def _reach(storage_class: Unstructured, node: Unstructured | None) -> Raw | None:
    """From which nodes the volume can be used: those of the topology domain of the chosen one."""
    topology = (storage_class.raw.get("parameters") or {}).get(TOPOLOGY, "zone")
    label = _TOPOLOGY_LABELS.get(topology)
    if node is None or label is None:
        return None
    value = node.labels.get(label) or (node.name if topology == "node" else "")
    return {"key": label, "operator": "In", "values": [value]} if value else None


def _size(amounts: Raw | None) -> int:
    return quantity.parse((amounts or {}).get("storage", 0))


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

    def __init__(self, world: ControllerContext) -> None:
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

    def __init__(self, world: ControllerContext) -> None:
        super().__init__(world)
        self.volumes = self.watch(kinds.VOLUMES, own_key)

    async def reconcile(self, key: str) -> float | None:
        volume = self.volumes.get(key)
        if volume is not None:
            await protect(self, kinds.VOLUMES, volume, VOLUME_FINALIZER, phase_of(volume) == "Bound")
        return None


async def protect(controller: Controller, resource: Resource, obj: Unstructured, finalizer: str, used: bool) -> None:
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

    def __init__(self, world: ControllerContext) -> None:
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
