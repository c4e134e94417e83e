"""Fields that a kind does not have, and values of the wrong type, as the API server tells of them.

    unknown_fields  what `fieldValidation=Strict` refuses and `Warn` warns of
    mismatch        what no decoder could read: always a 400

Both follow the types in `schemas`, or the schema of a custom kind. A kind that neither describes has every
field, and a null is a value that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.embedded.catalog.kinds import Served
from mooring.embedded.objects import Raw
from mooring.embedded.schemas.library import TYPE_FIELDS, Library, library
from mooring.embedded.schemas.notation import Definition, Field, ListOf, MapOf, Plain, Ref, Type

STRICT = "strict decoding error: "
"""What precedes the list of unknown fields in the refusal."""

_JSON_NAMES = {str: "string", bool: "bool", list: "array", dict: "object", int: "number", float: "number"}
_GO_NAMES = {
    "bytes": "[]uint8",
    "time": "string",
    "microTime": "string",
    "quantity": "string",
    "float": "float64",
    "any": "object",
}
_RANGES = {"int32": 2**31, "int64": 2**63}


def unknown_fields(served: Served, raw: Raw) -> list[str]:
    """One `unknown field "spec.foo"` for each, in the order of the object."""
    if served.columns is not None:
        known = served.schema
        return [] if known is None else [_unknown(path) for path in _outside_schema(raw, known, "", True)]
    definition = _definition(served)
    return [] if definition is None else [_unknown(path) for path in _outside(library(), definition, raw, "")]


def mismatch(served: Served, raw: Raw) -> str | None:
    """The first value of a wrong type, in the words of the API server; None if there is none."""
    definition = _definition(served)
    if definition is None:
        return None
    problem = next(_mismatches(library(), definition, raw, ""), None)
    if problem is None:
        return None
    resource = served.resource
    return (
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {problem}'
    )


def _definition(served: Served) -> Definition | None:
    resource = served.resource
    return None if served.columns is not None else library().kind(resource.api_version, resource.kind)


def _unknown(path: str) -> str:
    return f'unknown field "{path}"'


def _known(definition: Definition, name: str) -> Field | None:
    assert definition.fields is not None
    found = definition.fields.get(name)
    return TYPE_FIELDS.get(name) if found is None and definition.api_version else found


def _outside(types: Library, definition: Definition, raw: Raw, path: str) -> Iterator[str]:
    if definition.fields is None:
        return
    for name, value in raw.items():
        here = f"{path}.{name}" if path else name
        field = _known(definition, name)
        if field is None:
            yield here
        else:
            yield from _outside_type(types, field.type, value, here)


def _outside_type(types: Library, type_: Type, value: Any, path: str) -> Iterator[str]:
    match type_:
        case Ref() if isinstance(value, dict):
            yield from _outside(types, types.resolve(type_), value, path)
        case ListOf(item) if isinstance(value, list):
            for index, element in enumerate(value):
                yield from _outside_type(types, item, element, f"{path}[{index}]")
        case MapOf(item) if isinstance(value, dict):
            for key, element in value.items():
                yield from _outside_type(types, item, element, f"{path}.{key}")


def _outside_schema(value: Any, schema: Raw, path: str, root: bool = False) -> Iterator[str]:
    """Fields outside a structural schema. The root has the fields of every object besides."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or not isinstance(schema, dict):
        return
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _outside_schema(element, schema.get("items") or {}, f"{path}[{index}]")
    elif isinstance(value, dict):
        own = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        embedded = root or schema.get("x-kubernetes-embedded-resource")
        for name, element in value.items():
            here = f"{path}.{name}" if path else name
            if name in own:
                yield from _outside_schema(element, own[name], here)
            elif isinstance(others, dict):
                yield from _outside_schema(element, others, here)
            elif not others and not (embedded and name in ("apiVersion", "kind", "metadata")):
                yield here


def _mismatches(types: Library, definition: Definition, raw: Raw, path: str) -> Iterator[str]:
    if definition.fields is None:
        return
    for name, value in raw.items():
        field = _known(definition, name)
        if field is not None and value is not None:
            yield from _mismatched(types, field.type, value, definition.name, f"{path}.{name}")


def _mismatched(types: Library, type_: Type, value: Any, owner: str, path: str) -> Iterator[str]:
    """`owner` is the type that has the field; `path` begins with a dot."""
    match type_:
        case Ref():
            definition = types.resolve(type_)
            if isinstance(value, dict):
                yield from _mismatches(types, definition, value, path)
            elif definition.fields is not None:
                yield _message(type_, value, owner, path)
        case ListOf(item) if isinstance(value, list):
            for element in value:
                if element is not None:
                    yield from _mismatched(types, item, element, owner, path)
        case MapOf(item) if isinstance(value, dict):
            for element in value.values():
                if element is not None:
                    yield from _mismatched(types, item, element, owner, path)
        case Plain(name):
            if not _fits(name, value):
                yield _message(type_, value, owner, path)
        case _:
            yield _message(type_, value, owner, path)


def _fits(name: str, value: Any) -> bool:
    match name:
        case "string" | "bytes" | "time" | "microTime":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int32" | "int64":
            return _is_whole(value) and -_RANGES[name] <= value < _RANGES[name]
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "quantity":
            return isinstance(value, str | int | float) and not isinstance(value, bool)
        case "intOrString":
            return isinstance(value, str) or _is_whole(value)
        case _:
            return True


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _message(type_: Type, value: Any, owner: str, path: str) -> str:
    found = _JSON_NAMES.get(type(value), "value")
    if isinstance(type_, Plain) and type_.name in _RANGES and found == "number":
        found = f"number {value}"  # one that does not fit is named
    return f"json: cannot unmarshal {found} into Go struct field {owner}{path} of type {_go_name(type_)}"


def _go_name(type_: Type) -> str:
    match type_:
        case Plain(name):
            return _GO_NAMES.get(name, name)
        case Ref(package, name):
            return f"{package.rpartition('/')[2]}.{name}"
        case ListOf(item):
            return f"[]{_go_name(item)}"
        case MapOf(item):
            return f"map[string]{_go_name(item)}"
