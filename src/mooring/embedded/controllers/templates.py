"""From templates to objects: owner references, pods, and the short hashes that name revisions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.api.resources import Resource, Unstructured

Raw = dict[str, Any]

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as names are generated: no vowels, so no words
_HASH_LENGTH = 10
_NAME_LENGTH = 63
_GENERATED_LENGTH = 58  # leaves room for the five letters that the server adds


def short_hash(value: Any, collisions: int = 0) -> str:
    """The same for equal JSON values, whatever the order of their keys."""
    canonical = msgspec.json.encode(value, order="sorted") + (str(collisions).encode() if collisions else b"")
    number = int.from_bytes(hashlib.blake2b(canonical, digest_size=8).digest(), "big")
    letters = []
    for _ in range(_HASH_LENGTH):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(letters)


def owner_reference(resource: Resource, owner: Unstructured) -> Raw:
    """For an object that `owner` controls."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def generate_name(owner: str) -> str:
    """The prefix for generated names of an owner's objects."""
    return f"{owner[: _GENERATED_LENGTH - 1]}-"


def pod_from(
    template: Mapping[str, Any],
    resource: Resource,
    owner: Unstructured,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Raw:
    """A pod of the owner's template; without a name it gets a generated one."""
    given = template.get("metadata") or {}
    meta: Raw = {
        "namespace": owner.namespace,
        "ownerReferences": [owner_reference(resource, owner)],
        **({"name": name} if name else {"generateName": generate_name(owner.name)}),
    }
    for field, more in (("labels", labels), ("annotations", annotations)):
        values = {**(given.get(field) or {}), **(more or {})}
        if values:
            meta[field] = values
    if given.get("finalizers"):
        meta["finalizers"] = given["finalizers"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}


def without_label(template: Mapping[str, Any], label: str) -> Raw:
    """The template with one label less, for comparisons."""
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != label}
    bare = {field: value for field, value in meta.items() if field not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**bare, **({"labels": labels} if labels else {})}}


def resolve(value: Any, total: int, *, up: bool, default: int = 0) -> int:
    """A count, or a percentage of `total` such as "25%"; rounded up or down."""
    if value is None:
        return default
    if isinstance(value, str):
        if not value.endswith("%"):
            return int(value)
        percent = int(value[:-1])
        return -(-percent * total // 100) if up else percent * total // 100
    return int(value)


def shortened(prefix: str, suffix: str) -> str:
    """`prefix-suffix`, with the prefix cut so that it is a label value."""
    return f"{prefix[: _NAME_LENGTH - len(suffix) - 1]}-{suffix}"
