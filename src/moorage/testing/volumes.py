"""Volumes, claims, storage classes and CSI nodes for tests, one line each: `make_pvc("data", volume="disk")`.

Pods and nodes are built in `builders`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.core import ObjectReference
from moorage.api.quantity import Quantity
from moorage.api.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
    VolumeNodeResources,
    VolumeResourceRequirements,
)
from moorage.testing.builders import make_metadata, nodes_with


def make_pvc(
    name: str = "claim",
    *,
    namespace: str = "default",
    size: Quantity = "1Gi",
    storage_class: str | None = "",
    volume: str = "",
    access_modes: Sequence[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
) -> PersistentVolumeClaim:
    """Build a volume claim, bound if it names a volume. A storage class of None stands for the default class."""
    if volume:
        # Volume controllers mark a complete binding so; schedulers take a claim without it as half bound.
        annotations = {"pv.kubernetes.io/bind-completed": "yes", **(annotations or {})}
    return PersistentVolumeClaim(
        api_version="v1",
        kind="PersistentVolumeClaim",
        metadata=make_metadata("PersistentVolumeClaim", name, namespace, annotations=annotations),
        spec=PersistentVolumeClaimSpec(
            access_modes=tuple(access_modes),
            resources=VolumeResourceRequirements(requests={"storage": size}),
            volume_name=volume,
            storage_class_name=storage_class,
        ),
        status=PersistentVolumeClaimStatus(phase="Bound" if volume else "Pending"),
    )


def make_pv(
    name: str = "volume",
    *,
    size: Quantity = "1Gi",
    storage_class: str = "",
    claim: PersistentVolumeClaim | None = None,
    nodes: Mapping[str, Sequence[str]] | None = None,
    driver: str = "",
    access_modes: Sequence[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    **spec_extra: Any,
) -> PersistentVolume:
    """Build a volume, bound if a claim is given. `nodes` are the labels of the nodes that can reach it,
    `driver` is its CSI driver, and `spec_extra` are other attributes of PersistentVolumeSpec."""
    reference = None
    if claim is not None:
        reference = ObjectReference(kind=claim.kind, namespace=claim.namespace, name=claim.name, uid=claim.uid)
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=make_metadata("PersistentVolume", name, "", labels),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=tuple(access_modes),
            claim_ref=reference,
            storage_class_name=storage_class,
            node_affinity=VolumeNodeAffinity(required=nodes_with(nodes)) if nodes is not None else None,
            csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name) if driver else None,
            **spec_extra,
        ),
        status=PersistentVolumeStatus(phase="Bound" if claim is not None else "Available"),
    )


def make_storage_class(
    name: str = "standard", *, provisioner: str = "example.com/disk", wait: bool = False, **extra: Any
) -> StorageClass:
    """Build a storage class. `wait` binds volumes when a pod is placed; `extra` are other attributes."""
    return StorageClass(
        api_version="storage.k8s.io/v1",
        kind="StorageClass",
        metadata=make_metadata("StorageClass", name, ""),
        provisioner=provisioner,
        volume_binding_mode="WaitForFirstConsumer" if wait else "Immediate",
        **extra,
    )


def make_csi_node(name: str = "node", limits: Mapping[str, int | None] | None = None) -> CSINode:
    """Build the CSINode of a node: the number of volumes that each driver can attach; None for no limit."""
    drivers = tuple(
        CSINodeDriver(
            name=driver, node_id=name, allocatable=VolumeNodeResources(count=count) if count is not None else None
        )
        for driver, count in (limits or {}).items()
    )
    return CSINode(
        api_version="storage.k8s.io/v1",
        kind="CSINode",
        metadata=make_metadata("CSINode", name, ""),
        spec=CSINodeSpec(drivers=drivers),
    )
