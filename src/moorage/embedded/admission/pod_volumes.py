"""Defaults of volume sources and of references to fields, as in pkg/apis/core/v1/defaults.go."""

from __future__ import annotations

from functools import lru_cache

from moorage.store.objects import Raw

_FILE_MODE = 420  # 0644
_TOKEN_SECONDS = 3600
_SOURCES: dict[str, Raw] = {
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "secret": {"defaultMode": _FILE_MODE},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
"""What is filled in, by the source of the volume."""


@lru_cache(maxsize=4096)
def pull_policy(image: str) -> str:
    """Return Always for `latest` and for images without a tag, otherwise IfNotPresent."""
    name, digest, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in ("", "latest") else "IfNotPresent"


def fill_in_claim_spec(given: Raw | None) -> Raw:
    """Fill in the spec of a claim or of a claim template. The data source has two names for the same thing."""
    spec = {"volumeMode": "Filesystem", **(given or {})}
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        reference = source
    elif reference and not source and not reference.get("namespace"):
        source = reference
    for field, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value:
            spec[field] = {"apiGroup": None, **value}
    return spec


def fill_in_source(volume: Raw) -> Raw:
    """Fill in the source of a pod's volume, or of a persistent volume in its spec."""
    for source, defaults in _SOURCES.items():
        if source in volume:
            volume = {**volume, source: {**defaults, **volume[source]}}
    return volume


def fill_in_volume(given: Raw) -> Raw:
    """Fill in a volume of a pod. Without a source it is an empty directory."""
    if not given.keys() - {"name"}:
        return {**given, "emptyDir": {}}
    volume = fill_in_source(given)
    if "downwardAPI" in volume:
        volume["downwardAPI"] = _fill_in_items(volume["downwardAPI"])
    if "projected" in volume:
        sources = [_fill_in_projection(source) for source in volume["projected"].get("sources") or ()]
        volume["projected"] = {**volume["projected"], "sources": sources or None}
    if "ephemeral" in volume and volume["ephemeral"].get("volumeClaimTemplate"):
        template = volume["ephemeral"]["volumeClaimTemplate"]
        template = {"metadata": {}, **template, "spec": fill_in_claim_spec(template.get("spec"))}
        volume = {**volume, "ephemeral": {**volume["ephemeral"], "volumeClaimTemplate": template}}
    if "image" in volume and not volume["image"].get("pullPolicy"):
        policy = pull_policy(volume["image"].get("reference") or "")
        volume = {**volume, "image": {**volume["image"], "pullPolicy": policy}}
    return volume


def fill_in_references(value: Raw) -> Raw:
    """Fill in `fieldRef` and `resourceFieldRef` of a variable's source or of a file."""
    if "fieldRef" in value:
        value = {**value, "fieldRef": {"apiVersion": "v1", **value["fieldRef"]}}
    if "resourceFieldRef" in value:
        value = {**value, "resourceFieldRef": {"divisor": "0", **value["resourceFieldRef"]}}
    return value


def _fill_in_items(source: Raw) -> Raw:
    if not source.get("items"):
        return source
    return {**source, "items": [fill_in_references(item) for item in source["items"]]}


def _fill_in_projection(source: Raw) -> Raw:
    if "serviceAccountToken" in source:
        return {**source, "serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, **source["serviceAccountToken"]}}
    if "downwardAPI" in source:
        return {**source, "downwardAPI": _fill_in_items(source["downwardAPI"])}
    return source
