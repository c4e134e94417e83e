"""Fields that a kind does not have: refused or warned of, as the client asks with `fieldValidation`.

They follow the types in `store.schemas`, or the schema of a custom kind. A kind that neither describes has
every field. Values of the wrong type are not reported here: admission refuses them in any case. Without the
parameter nothing is checked: what writes often, such as controllers and schedulers, does not ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.api.errors import ApiError
from moorage.api.meta import StatusCause
from moorage.embedded.apiserver import urls
from moorage.embedded.apiserver.calls import ApiCall
from moorage.embedded.catalog.crds.schemas import OF_EVERY_OBJECT
from moorage.embedded.catalog.kinds import ServedKind
from moorage.store import refusals
from moorage.store.objects import Raw
from moorage.store.schemas import TYPE_FIELDS, Definition, Field, Library, ListOf, MapOf, Ref, Type, library

STRICT = "strict decoding error: "
"""What precedes the list of unknown fields in the refusal."""


def unknown_fields(served: ServedKind, raw: Raw) -> list[str]:
    """One `unknown field "spec.foo"` for each, in the order of the object."""
    if served.custom:
        known = served.schema
        return [] if known is None else [_unknown(path) for path in _outside_schema(raw, known, "", True)]
    definition = _definition(served)
    return [] if definition is None else [_unknown(path) for path in _outside(library(), definition, raw, "")]


def _definition(served: ServedKind) -> Definition | None:
    resource = served.resource
    return None if served.custom else library().kind(resource.api_version, resource.kind)


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
            if embedded and name in OF_EVERY_OBJECT:
                continue  # whatever the schema says of them: most write no more than their type
            if name in own:
                yield from _outside_schema(element, own[name], here)
            elif isinstance(others, dict):
                yield from _outside_schema(element, others, here)
            elif not others:
                yield here


def wanted(call: ApiCall) -> bool:
    return urls.field_validation(call.query) in ("Strict", "Warn")


def check(call: ApiCall, raw: Raw) -> None:
    """For the object in a body; a 400 if it is refused."""
    unknown = unknown_fields(call.served, raw) if wanted(call) else []
    if unknown and _is_strict(call):
        resource = call.served.resource
        head = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        raise refusals.bad_request(head + STRICT + ", ".join(unknown))
    call.warnings += unknown


def check_patched(call: ApiCall, before: Raw, after: Raw) -> None:
    """For the outcome of a patch; a 422 if it is refused. Only what the patch has added counts."""
    unknown = unknown_fields(call.served, after) if wanted(call) else []
    if unknown:
        old = set(unknown_fields(call.served, before))
        unknown = [field for field in unknown if field not in old]
    if unknown and _is_strict(call):
        raise _invalid_patch(call, STRICT + ", ".join(unknown))
    call.warnings += unknown


def _is_strict(call: ApiCall) -> bool:
    return urls.field_validation(call.query) == "Strict"


def _invalid_patch(call: ApiCall, problem: str) -> ApiError:
    resource, name = call.served.resource, call.path.name
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'{kind} "{name}" is invalid: patch: Invalid value: {problem}'
    causes = (StatusCause(reason="FieldValueInvalid", message=f"Invalid value: {problem}", field="patch"),)
    return refusals.failure(422, "Invalid", message, resource=resource, name=name, causes=causes, kind=resource.kind)
