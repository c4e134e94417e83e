"""Rows of volumes, claims, storage classes and the kinds of CSI and of dynamic resource allocation."""

from __future__ import annotations

from typing import Any

from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Printer,
    age,
    boolean,
    dig,
    flag,
    integer,
    maps,
    name_of,
    plain,
    terminating,
    text,
    wide,
    words,
)
from moorage.store.objects import Raw

_MODES = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _volume(raw: Raw, now: float) -> Cells:
    claim = dig(raw, "spec", "claimRef")
    return [
        name_of(raw),
        _quantity(dig(raw, "spec", "capacity", "storage")),
        _access_modes(words(raw, "spec", "accessModes")),
        text(raw, "spec", "persistentVolumeReclaimPolicy"),
        _phase(raw),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else "",
        _class(raw),
        text(raw, "spec", "volumeAttributesClassName", default=UNSET),
        text(raw, "status", "reason"),
        age(raw, now),
        text(raw, "spec", "volumeMode", default=UNSET),
    ]


def _claim(raw: Raw, now: float) -> Cells:
    volume = text(raw, "spec", "volumeName")
    return [
        name_of(raw),
        _phase(raw),
        volume,
        _quantity(dig(raw, "status", "capacity", "storage")) if volume else "",
        _access_modes(words(raw, "status", "accessModes")) if volume else "",
        _class(raw),
        text(raw, "spec", "volumeAttributesClassName", default=UNSET),
        age(raw, now),
        text(raw, "spec", "volumeMode", default=UNSET),
    ]


def _phase(raw: Raw) -> str:
    return "Terminating" if terminating(raw) else text(raw, "status", "phase")


def _class(raw: Raw) -> str:
    """The old annotation goes before the field."""
    return text(raw, "metadata", "annotations", _CLASS_ANNOTATION) or text(raw, "spec", "storageClassName")


def _quantity(value: Any) -> str:
    return "0" if value is None else str(value)


def _access_modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _MODES if mode in modes)


def _storage_class(raw: Raw, now: float) -> Cells:
    annotations = dig(raw, "metadata", "annotations")
    default = any(text(annotations, key) == "true" for key in _DEFAULT_ANNOTATIONS)
    return [
        f"{name_of(raw)} (default)" if default else name_of(raw),
        text(raw, "provisioner"),
        text(raw, "reclaimPolicy", default="Delete"),
        text(raw, "volumeBindingMode", default="Immediate"),
        flag(raw, "allowVolumeExpansion"),
        age(raw, now),
    ]


def _csi_node(raw: Raw, now: float) -> Cells:
    return [name_of(raw), len(maps(raw, "spec", "drivers")), age(raw, now)]


def _csi_driver(raw: Raw, now: float) -> Cells:
    spec, audiences = dig(raw, "spec"), dig(raw, "spec", "tokenRequests")
    return [
        name_of(raw),
        flag(spec, "attachRequired", default=True),
        flag(spec, "podInfoOnMount"),
        flag(spec, "storageCapacity"),
        UNSET if audiences is None else ",".join(text(t, "audience") for t in maps(spec, "tokenRequests")),
        flag(spec, "requiresRepublish"),
        ",".join(words(spec, "volumeLifecycleModes")) or NONE,
        age(raw, now),
    ]


def _attachment(raw: Raw, now: float) -> Cells:
    volume = text(raw, "spec", "source", "persistentVolumeName")
    driver, node = text(raw, "spec", "attacher"), text(raw, "spec", "nodeName")
    return [name_of(raw), driver, volume, node, flag(raw, "status", "attached"), age(raw, now)]


def _resource_claim(raw: Raw, now: float) -> Cells:
    states = ["deleted"] if terminating(raw) else []
    if dig(raw, "status", "allocation") is not None:
        states.append("allocated")
        states += ["reserved"] if maps(raw, "status", "reservedFor") else []
    elif not states:
        states.append("pending")
    return [name_of(raw), ",".join(states), age(raw, now)]


def _resource_slice(raw: Raw, now: float) -> Cells:
    spec = dig(raw, "spec")
    node, driver = text(spec, "nodeName"), text(spec, "driver")
    return [name_of(raw), node, driver, text(spec, "pool", "name"), age(raw, now)]


def _name_and_age(raw: Raw, now: float) -> Cells:
    return [name_of(raw), age(raw, now)]


VOLUMES = Printer(
    (
        NAME,
        *plain("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass"),
        *plain("VolumeAttributesClass", "Reason"),
        AGE,
        *wide("VolumeMode"),
    ),
    _volume,
)
CLAIMS = Printer(
    (
        NAME,
        *plain("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass"),
        AGE,
        *wide("VolumeMode"),
    ),
    _claim,
)
STORAGE_CLASSES = Printer(
    (
        NAME,
        *plain("Provisioner", "ReclaimPolicy", "VolumeBindingMode"),
        boolean("AllowVolumeExpansion"),
        AGE,
    ),
    _storage_class,
)
CSI_NODES = Printer((NAME, integer("Drivers"), AGE), _csi_node)
CSI_DRIVERS = Printer(
    (
        NAME,
        boolean("AttachRequired"),
        boolean("PodInfoOnMount"),
        boolean("StorageCapacity"),
        *plain("TokenRequests"),
        boolean("RequiresRepublish"),
        *plain("Modes"),
        AGE,
    ),
    _csi_driver,
)
VOLUME_ATTACHMENTS = Printer((NAME, *plain("Attacher", "PV", "Node"), boolean("Attached"), AGE), _attachment)
RESOURCE_CLAIMS = Printer((NAME, *plain("State"), AGE), _resource_claim)
RESOURCE_SLICES = Printer((NAME, *plain("Node", "Driver", "Pool"), AGE), _resource_slice)
NAME_AND_AGE = Printer((NAME, AGE), _name_and_age)
