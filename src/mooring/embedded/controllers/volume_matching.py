"""Which persistent volume fits a claim, and what a provisioned one looks like. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from mooring.api import quantity
from mooring.api.meta import LabelSelector
from mooring.api.resources import Unstructured
from mooring.api.selectors import compile_label_selector

Raw = dict[str, Any]

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
TOPOLOGY = "mooring.dev/topology"
"""Parameter of a StorageClass: where its volumes can be reached from once a node is chosen: `zone` (the
default), `node` or `any`."""
_TOPOLOGY_LABELS = {"zone": "topology.kubernetes.io/zone", "node": "kubernetes.io/hostname"}


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
    return not selector or compile_label_selector(msgspec.convert(selector, LabelSelector)).matches(
        volume.labels
    )


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
        "capacity": {
            "storage": ((wanted.get("resources") or {}).get("requests") or {}).get("storage", "1Gi")
        },
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
    wish = (storage_class.raw.get("parameters") or {}).get(TOPOLOGY, "zone")
    label = _TOPOLOGY_LABELS.get(wish)
    if node is None or label is None:
        return None
    value = node.labels.get(label) or (node.name if wish == "node" else "")
    return {"key": label, "operator": "In", "values": [value]} if value else None


def _size(amounts: Raw | None) -> int:
    return quantity.parse((amounts or {}).get("storage", 0))
