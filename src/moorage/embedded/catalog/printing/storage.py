"""The columns of volumes, claims, storage classes, and the kinds of CSI and dynamic resource allocation."""

from __future__ import annotations

from typing import Any

from moorage.embedded.catalog.printing.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Printer,
    boolean,
    count,
    dig,
    integer,
    listed,
    maps,
    string,
    terminating,
    text,
    wide,
    words,
)
from moorage.store.objects import Raw

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def default_class(*annotations: str) -> Column:
    """Return the name column of a class kind: an annotation marks the default class."""

    def name(raw: Raw, now: float) -> str:
        is_default = any(text(raw, "metadata", "annotations", key) == "true" for key in annotations)
        return f"{text(raw, 'metadata', 'name')} (default)" if is_default else text(raw, "metadata", "name")

    return Column("Name", name, format=NAME.format, description=NAME.description)


def _phase(raw: Raw, now: float) -> str:
    return "Terminating" if terminating(raw) else text(raw, "status", "phase")


def _storage_class(raw: Raw, now: float) -> str:
    """The old annotation takes precedence over the field."""
    return text(raw, "metadata", "annotations", _CLASS_ANNOTATION) or text(raw, "spec", "storageClassName")


def _capacity(raw: Raw, part: str) -> str:
    value: Any = dig(raw, part, "capacity", "storage")
    return "0" if value is None else str(value)


def _access_modes(raw: Raw, part: str) -> str:
    modes = words(raw, part, "accessModes")
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _claim_of(raw: Raw, now: float) -> str:
    claim = dig(raw, "spec", "claimRef")
    return f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else ""


def _is_bound(raw: Raw) -> bool:
    return bool(text(raw, "spec", "volumeName"))


def _token_requests(raw: Raw, now: float) -> str:
    if dig(raw, "spec", "tokenRequests") is None:
        return UNSET
    return ",".join(text(request, "audience") for request in maps(raw, "spec", "tokenRequests"))


def _claim_state(raw: Raw, now: float) -> str:
    states = ["deleted"] if terminating(raw) else []
    if dig(raw, "status", "allocation") is not None:
        states.append("allocated")
        states += ["reserved"] if maps(raw, "status", "reservedFor") else []
    elif not states:
        states.append("pending")
    return ",".join(states)


_ATTRIBUTES_CLASS = string("VolumeAttributesClass", ".spec.volumeAttributesClassName", UNSET)
_VOLUME_MODE = wide("VolumeMode", ".spec.volumeMode", UNSET)

VOLUMES = Printer(
    (
        NAME,
        string("Capacity", lambda raw, now: _capacity(raw, "spec")),
        string("Access Modes", lambda raw, now: _access_modes(raw, "spec")),
        string("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
        string("Status", _phase),
        string("Claim", _claim_of),
        string("StorageClass", _storage_class),
        _ATTRIBUTES_CLASS,
        string("Reason", ".status.reason"),
        AGE,
        _VOLUME_MODE,
    )
)
CLAIMS = Printer(
    (
        NAME,
        string("Status", _phase),
        string("Volume", ".spec.volumeName"),
        string("Capacity", lambda raw, now: _capacity(raw, "status") if _is_bound(raw) else ""),
        string("Access Modes", lambda raw, now: _access_modes(raw, "status") if _is_bound(raw) else ""),
        string("StorageClass", _storage_class),
        _ATTRIBUTES_CLASS,
        AGE,
        _VOLUME_MODE,
    )
)
STORAGE_CLASSES = Printer(
    (
        default_class(*_DEFAULT_ANNOTATIONS),
        string("Provisioner", ".provisioner"),
        string("ReclaimPolicy", ".reclaimPolicy", "Delete"),
        string("VolumeBindingMode", ".volumeBindingMode", "Immediate"),
        boolean("AllowVolumeExpansion", ".allowVolumeExpansion"),
        AGE,
    )
)
CSI_NODES = Printer((NAME, integer("Drivers", count(".spec.drivers")), AGE))
CSI_DRIVERS = Printer(
    (
        NAME,
        boolean("AttachRequired", ".spec.attachRequired", default=True),
        boolean("PodInfoOnMount", ".spec.podInfoOnMount"),
        boolean("StorageCapacity", ".spec.storageCapacity"),
        string("TokenRequests", _token_requests),
        boolean("RequiresRepublish", ".spec.requiresRepublish"),
        string("Modes", listed(".spec.volumeLifecycleModes", default=NONE)),
        AGE,
    )
)
VOLUME_ATTACHMENTS = Printer(
    (
        NAME,
        string("Attacher", ".spec.attacher"),
        string("PV", ".spec.source.persistentVolumeName"),
        string("Node", ".spec.nodeName"),
        boolean("Attached", ".status.attached"),
        AGE,
    )
)
RESOURCE_CLAIMS = Printer((NAME, string("State", _claim_state), AGE))
RESOURCE_SLICES = Printer(
    (
        NAME,
        string("Node", ".spec.nodeName"),
        string("Driver", ".spec.driver"),
        string("Pool", ".spec.pool.name"),
        AGE,
    )
)
