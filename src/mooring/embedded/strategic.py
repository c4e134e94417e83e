"""Strategic merge patch: merge patch in which known lists are merged by key instead of replaced.

Which lists, and by which key, is data of the API (patchMergeKey); the table here holds the built-in kinds.
Directives: `$patch` (delete, replace), `$retainKeys`, `$deleteFromPrimitiveList/<list>` and
`$setElementOrder/<list>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mooring.api.resources import Resource
from mooring.embedded import refusals
from mooring.embedded.objects import Raw

_SET = ""
"""In place of a merge key: the list is a set of plain values."""

_EVERY_KIND = {
    "metadata.ownerReferences": "uid",
    "metadata.finalizers": _SET,
    "status.conditions": "type",
}
_CONTAINER_LISTS = {
    "": "name",
    ".ports": "containerPort",
    ".env": "name",
    ".volumeMounts": "mountPath",
    ".volumeDevices": "devicePath",
}
_POD = {
    f"spec.{containers}{part}": key
    for containers in ("containers", "initContainers", "ephemeralContainers")
    for part, key in _CONTAINER_LISTS.items()
} | {
    "spec.volumes": "name",
    "spec.imagePullSecrets": "name",
    "spec.hostAliases": "ip",
    "spec.topologySpreadConstraints": "topologyKey",
    "spec.schedulingGates": "name",
    "spec.resourceClaims": "name",
    "status.podIPs": "ip",
    "status.hostIPs": "ip",
    "status.resourceClaimStatuses": "name",
}
# Node taints and pod tolerations are missing on purpose: they are atomic, a patch replaces them.
_BY_PLURAL: dict[str, dict[str, str]] = {
    "pods": _POD,
    "nodes": {"status.addresses": "type", "spec.podCIDRs": _SET},
    "services": {"spec.ports": "port"},
    "serviceaccounts": {"secrets": "name", "imagePullSecrets": "name"},
}
_TEMPLATE = "spec.template."


def strategic_merge(resource: Resource, raw: Raw, patch: Mapping[str, Any]) -> Raw:
    """The patched object. BadRequest for an element without its merge key or an unknown directive."""
    return _merge_map(resource.plural, raw, patch, "")


def _merge_key(plural: str, path: str) -> str | None:
    """The merge key of the list at a path, "" for a set, None for an atomic list."""
    if path.startswith(_TEMPLATE):
        plural, path = "pods", path.removeprefix(_TEMPLATE)
    return _EVERY_KIND.get(path, _BY_PLURAL.get(plural, {}).get(path))


def _merge_map(plural: str, value: Any, patch: Mapping[str, Any], path: str) -> Raw:
    directive = patch.get("$patch")
    if directive == "replace":
        return {field: item for field, item in patch.items() if field != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise refusals.bad_request(f"unknown patch type: {directive}")
    merged = dict(value) if isinstance(value, dict) else {}
    for field, change in patch.items():
        if not field.startswith("$"):
            _merge_field(plural, merged, field, change, f"{path}.{field}" if path else field)
    _apply_directives(plural, merged, patch, path)
    return merged


def _merge_field(plural: str, merged: Raw, field: str, change: Any, path: str) -> None:
    if change is None:
        merged.pop(field, None)
    elif isinstance(change, Mapping):
        merged[field] = _merge_map(plural, merged.get(field), change, path)
    elif isinstance(change, list | tuple):
        merged[field] = _merge_list(plural, merged.get(field) or [], list(change), path)
    else:
        merged[field] = change


def _merge_list(plural: str, value: list[Any], patch: list[Any], path: str) -> list[Any]:
    key = _merge_key(plural, path)
    if key is None:
        return patch
    if key == _SET:
        return value + [item for item in patch if item not in value]
    if any(isinstance(item, Mapping) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, Mapping) and "$patch" in item)]
    return _merge_by_key(plural, value, patch, path, key)


def _merge_by_key(plural: str, value: list[Any], patch: list[Any], path: str, key: str) -> list[Any]:
    merged = {_identity(item, key, path): item for item in value}
    for change in patch:
        identity = _identity(change, key, path)
        if change.get("$patch") == "delete":
            merged.pop(identity, None)
        else:
            merged[identity] = _merge_map(plural, merged.get(identity), change, path)
    return list(merged.values())


def _identity(item: Any, key: str, path: str) -> Any:
    if not isinstance(item, Mapping) or not isinstance(item.get(key), str | int):
        raise refusals.bad_request(f"map: {item} at {path} does not contain declared merge key: {key}")
    return item[key]


def _apply_directives(plural: str, merged: Raw, patch: Mapping[str, Any], path: str) -> None:
    for directive, argument in patch.items():
        name, _, field = directive.partition("/")
        if name == "$retainKeys":
            for unwanted in merged.keys() - set(argument):
                del merged[unwanted]
        elif name == "$deleteFromPrimitiveList":
            merged[field] = [item for item in merged.get(field) or [] if item not in argument]
        elif name == "$setElementOrder":
            key = _merge_key(plural, f"{path}.{field}" if path else field)
            merged[field] = _ordered(merged.get(field) or [], argument, key)


def _ordered(items: list[Any], order: Iterable[Any], key: str | None) -> list[Any]:
    """Items named in the order first, in that order; the others after them, as they were."""
    ranks = {item[key] if key and isinstance(item, Mapping) else item: n for n, item in enumerate(order)}
    return sorted(items, key=lambda item: ranks.get(item[key] if key else item, len(ranks)))
