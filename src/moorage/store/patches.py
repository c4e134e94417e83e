"""The three patch types: JSON patch (RFC 6902), merge patch (RFC 7386), and strategic merge patch.

All of them give a new value that shares its unchanged parts with the old one. In the strategic form known
lists are merged by key instead of replaced; which lists, and by which key, is data of the API (`schemas`).
Its directives: `$patch` (delete, replace), `$retainKeys`, `$deleteFromPrimitiveList/<list>` and
`$setElementOrder/<list>`. What a patch may change is decided by the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from moorage.api.errors import ApiError
from moorage.api.resources import Resource
from moorage.framework.ports import PatchType
from moorage.store import refusals
from moorage.store.objects import Raw
from moorage.store.schemas import Definition, Field, ListOf, Ref, Type, library

_MISSING: Any = object()
_SET = ""
"""In place of a merge key: the list is a set of plain values."""


def apply_patch(resource: Resource, raw: Raw, patch: Any, patch_type: str) -> Raw:
    """The patched object; an ApiError of 400, 415 or 422 when the patch does not fit."""
    if patch_type == PatchType.JSON:
        return _as_object(apply_json_patch(raw, _operations(patch)))
    if not isinstance(patch, Mapping):
        raise refusals.bad_request("a merge patch must be a JSON object")
    if patch_type == PatchType.MERGE:
        return _as_object(merge(raw, patch))
    if patch_type == PatchType.STRATEGIC and not _is_custom(resource):
        return strategic_merge(resource, raw, patch)
    accepted = [PatchType.JSON, PatchType.MERGE] + ([] if _is_custom(resource) else [PatchType.STRATEGIC])
    raise refusals.unsupported_patch(", ".join(accepted))


def _is_custom(resource: Resource) -> bool:
    """Built-in groups have no dot or end in .k8s.io; only they have merge keys."""
    return "." in resource.group and not resource.group.endswith(".k8s.io")


def merge(value: Any, patch: Any) -> Any:
    """RFC 7386: maps are merged, null removes, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for field, change in patch.items():
        if change is None:
            merged.pop(field, None)
        else:
            merged[field] = merge(merged.get(field), change)
    return merged


def apply_json_patch(value: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """RFC 6902, one operation after the other; the whole patch fails if one does."""
    for operation in operations:
        value = _apply_operation(value, operation)
    return value


def _apply_operation(value: Any, operation: Mapping[str, Any]) -> Any:
    path = _pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _edit(value, path, lambda _: _value(operation), insert=True)
        case "replace":
            _look_up(value, path)
            return _edit(value, path, lambda _: _value(operation))
        case "remove":
            _look_up(value, path)
            return _edit(value, path, lambda _: _MISSING)
        case "test":
            if _look_up(value, path) != _value(operation):
                raise _rejected(f"testing value {operation['path']} failed")
            return value
        case "copy":
            found = _look_up(value, _pointer(operation.get("from")))
            return _edit(value, path, lambda _: found, insert=True)
        case "move":
            source = _pointer(operation.get("from"))
            found = _look_up(value, source)
            return _edit(_edit(value, source, lambda _: _MISSING), path, lambda _: found, insert=True)
        case other:
            raise _rejected(f"unexpected kind: {other}")


def _edit(value: Any, path: list[str], change: Callable[[Any], Any], insert: bool = False) -> Any:
    """A copy of the containers along the path, with the value at its end changed, inserted or removed."""
    if not path:
        return change(value)
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        return _edit_map(value, step, rest, change, insert)
    if isinstance(value, list):
        return _edit_list(value, step, rest, change, insert)
    raise _rejected(f"no container at {step!r}")


def _edit_map(value: Raw, step: str, rest: list[str], change: Callable[[Any], Any], insert: bool) -> Raw:
    if rest and step not in value:
        raise _rejected(f"path names a missing field: {step!r}")
    new = _edit(value.get(step), rest, change, insert)
    if new is _MISSING:
        return {field: item for field, item in value.items() if field != step}
    return {**value, step: new}


def _edit_list(value: list[Any], step: str, rest: list[str], change: Callable[[Any], Any], insert: bool) -> list[Any]:
    inserting = insert and not rest
    index = _index(step, len(value), inserting)
    if inserting:
        return [*value[:index], change(None), *value[index:]]
    new = _edit(value[index], rest, change, insert)
    return [*value[:index], *([] if new is _MISSING else [new]), *value[index + 1 :]]


def _look_up(value: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(value, list):
            value = value[_index(step, len(value), False)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            raise _rejected(f"path names a missing field: {step!r}")
    return value


def _index(step: str, length: int, inserting: bool) -> int:
    if step == "-" and inserting:
        return length
    # ASCII digits only: str.isdigit and int() accept those of other scripts.
    if not step.isascii() or not step.isdigit() or int(step) >= length + inserting:
        raise _rejected(f"invalid array index: {step!r}")
    return int(step)


def _pointer(path: Any) -> list[str]:
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise _rejected(f"not a JSON pointer: {path!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise _rejected(f"{operation.get('op')} without a value")
    return operation["value"]


def _operations(patch: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(patch, list | tuple) and all(isinstance(operation, Mapping) for operation in patch):
        return patch
    raise refusals.bad_request("a JSON patch must be a list of operations")


def _as_object(value: Any) -> Raw:
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        raise _rejected("the result is not an object with metadata")
    return value


def _rejected(why: str) -> ApiError:
    message = f"the server rejected our request due to an error in our request: {why}"
    return refusals.failure(422, "Invalid", message)


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
