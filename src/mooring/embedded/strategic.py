"""Strategic merge patch: merge patch in which known lists are merged by key instead of replaced.

Which lists, and by which key, is data of the API (`schemas`); lists that it does not know are replaced.
Directives: `$patch` (delete, replace), `$retainKeys`, `$deleteFromPrimitiveList/<list>` and
`$setElementOrder/<list>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from mooring.api.resources import Resource
from mooring.embedded import refusals
from mooring.embedded.objects import Raw
from mooring.embedded.schemas.library import library
from mooring.embedded.schemas.notation import Definition, Field, ListOf, Ref, Type

_SET = ""
"""In place of a merge key: the list is a set of plain values."""


def strategic_merge(resource: Resource, raw: Raw, patch: Mapping[str, Any]) -> Raw:
    """The patched object. BadRequest for an element without its merge key or an unknown directive."""
    return _merge_map(resource, raw, patch, "")


@cache
def _merge_key(resource: Resource, path: str) -> str | None:
    """The merge key of the list at a path, "" for a set, None for an atomic list."""
    definition = library().kind(resource.api_version, resource.kind)
    field: Field | None = None
    for step in path.split("."):
        field = (definition.fields or {}).get(step) if definition is not None else None
        if field is None:
            return None
        definition = _inside(field.type)
    return field.merge_key if field is not None and field.merge else None


def _inside(described: Type) -> Definition | None:
    """The type that a field, or each item of a list, has fields of."""
    if isinstance(described, ListOf):
        described = described.item
    return library().resolve(described) if isinstance(described, Ref) else None


def _merge_map(resource: Resource, value: Any, patch: Mapping[str, Any], path: str) -> Raw:
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
            _merge_field(resource, merged, field, change, f"{path}.{field}" if path else field)
    _apply_directives(resource, merged, patch, path)
    return merged


def _merge_field(resource: Resource, merged: Raw, field: str, change: Any, path: str) -> None:
    if change is None:
        merged.pop(field, None)
    elif isinstance(change, Mapping):
        merged[field] = _merge_map(resource, merged.get(field), change, path)
    elif isinstance(change, list | tuple):
        merged[field] = _merge_list(resource, merged.get(field) or [], list(change), path)
    else:
        merged[field] = change


def _merge_list(resource: Resource, value: Any, patch: list[Any], path: str) -> list[Any]:
    before: list[Any] = value if isinstance(value, list) else []
    key = _merge_key(resource, path)
    if key is None:
        return patch
    if key == _SET:
        return before + [item for item in patch if item not in before]
    if any(isinstance(item, Mapping) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, Mapping) and "$patch" in item)]
    return _merge_by_key(resource, before, patch, path, key)


def _merge_by_key(resource: Resource, value: list[Any], patch: list[Any], path: str, key: str) -> list[Any]:
    merged = {_identity(item, key, path): item for item in value}
    for change in patch:
        identity = _identity(change, key, path)
        if change.get("$patch") == "delete":
            merged.pop(identity, None)
        else:
            merged[identity] = _merge_map(resource, merged.get(identity), change, path)
    return list(merged.values())


def _identity(item: Any, key: str, path: str) -> Any:
    if not isinstance(item, Mapping) or not isinstance(item.get(key), str | int):
        raise refusals.bad_request(f"map: {item} at {path} does not contain declared merge key: {key}")
    return item[key]


def _apply_directives(resource: Resource, merged: Raw, patch: Mapping[str, Any], path: str) -> None:
    for directive, argument in patch.items():
        name, _, field = directive.partition("/")
        if name not in ("$retainKeys", "$deleteFromPrimitiveList", "$setElementOrder"):
            continue
        if not isinstance(argument, list) or not isinstance(merged.get(field) or [], list):
            raise refusals.bad_request(f"{directive} at {path or 'the top'} needs a list")
        if name == "$retainKeys":
            for unwanted in [key for key in merged if key not in argument]:
                del merged[unwanted]
        elif name == "$deleteFromPrimitiveList":
            merged[field] = [item for item in merged.get(field) or [] if item not in argument]
        else:
            here = f"{path}.{field}" if path else field
            merged[field] = _ordered(merged.get(field) or [], argument, _merge_key(resource, here), here)


def _ordered(items: list[Any], order: list[Any], key: str | None, path: str) -> list[Any]:
    """Items named in the order first, in that order; the others after them, as they were."""
    if not key:
        return sorted(items, key=lambda item: order.index(item) if item in order else len(order))
    ranks = {_identity(item, key, path): rank for rank, item in enumerate(order)}
    return sorted(items, key=lambda item: ranks.get(_identity(item, key, path), len(ranks)))
