"""JSON patch (RFC 6902), merge patch (RFC 7386), and the choice among the three patch types.

All of them give a new value that shares its unchanged parts with the old one. The strategic form is in
`strategic`; what a patch may change is decided by the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mooring.api.errors import ApiError
from mooring.api.resources import Resource
from mooring.embedded import refusals
from mooring.embedded.objects import Raw
from mooring.embedded.strategic import strategic_merge
from mooring.framework.ports import PatchType

_MISSING: Any = object()


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


def _edit_list(
    value: list[Any], step: str, rest: list[str], change: Callable[[Any], Any], insert: bool
) -> list[Any]:
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
        raise _rejected("the result is no object with metadata")
    return value


def _rejected(why: str) -> ApiError:
    message = f"the server rejected our request due to an error in our request: {why}"
    return refusals.failure(422, "Invalid", message)
