"""Types as OpenAPI schemas, in either version of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from moorage.embedded.catalog.kinds import ServedKind
from moorage.store.objects import Raw
from moorage.store.schemas import TYPE_FIELDS, Definition, Field, Library, ListOf, MapOf, Plain, Ref, Type

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_META = Ref("meta/v1", "ObjectMeta")
_NAMED = {"quantity": QUANTITY, "intOrString": INT_OR_STRING}
_PLAIN: dict[str, Raw] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microTime": {"type": "string", "format": "date-time"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "any": {"type": "object"},
}
# What version 2 of OpenAPI can say of a custom kind's schema.
_KEPT_IN_V2 = ("description", "type", "format", "required")


@dataclass(frozen=True, slots=True)
class Style:
    """The differences between the versions that schemas show."""

    version: int

    def ref(self, name: str, description: str = "") -> Raw:
        place = "components/schemas" if self.version == 3 else "definitions"
        ref: Raw = {"$ref": f"#/{place}/{name}"}
        if not description:
            return ref
        return (
            {"description": description, "allOf": [ref]} if self.version == 3 else {"description": description, **ref}
        )

    def either(self, types: tuple[str, str], format_: str, description: str) -> Raw:
        schema: Raw = {"description": description, **({"format": format_} if format_ else {})}
        return schema | ({"oneOf": [{"type": t} for t in types]} if self.version == 3 else {"type": "string"})


V2, V3 = Style(2), Style(3)


def named_plain(style: Style) -> Iterator[tuple[str, Raw]]:
    """The two plain types that clients know by name."""
    amount = "An amount: a number, with a suffix such as m, k, Mi or Gi."
    yield QUANTITY, style.either(("string", "number"), "", amount)
    yield (INT_OR_STRING, style.either(("integer", "string"), "int-or-string", "A number, or a text such as 25%."))


def reachable(types: Library, roots: Iterable[Definition]) -> list[Definition]:
    """The roots and all that they refer to, by name."""
    found: dict[str, Definition] = {}
    waiting = list(roots)
    while waiting:
        definition = waiting.pop()
        if definition.openapi_name not in found:
            found[definition.openapi_name] = definition
            for field in (definition.fields or {}).values():
                waiting += (types.resolve(ref) for ref in _refs(field.type))
    return [found[name] for name in sorted(found)]


def _refs(type_: Type) -> Iterator[Ref]:
    if isinstance(type_, Ref):
        yield type_
    elif isinstance(type_, ListOf | MapOf):
        yield from _refs(type_.item)


def schema(types: Library, definition: Definition, style: Style) -> Raw:
    """The schema of one type."""
    made: Raw = {"type": "object"}
    if definition.description:
        made["description"] = definition.description
    if definition.fields is None:
        return made if definition.name != "JSON" else {}
    fields = definition.fields | TYPE_FIELDS if definition.api_version else definition.fields
    required = [field.name for field in definition.fields.values() if field.required]
    if required:
        made["required"] = required
    made["properties"] = {name: _property(types, fields[name], style) for name in sorted(fields)}
    if definition.api_version:
        group, _, version = definition.api_version.rpartition("/")
        made["x-kubernetes-group-version-kind"] = [gvk(group, version, definition.name)]
    return made


def gvk(group: str, version: str, kind: str) -> Raw:
    return {"group": group, "kind": kind, "version": version}


def _property(types: Library, field: Field, style: Style) -> Raw:
    made = _typed(types, field.type, style, field.description or _borrowed(types, field.type))
    strategies = (["merge"] if field.merge else []) + (["retainKeys"] if field.retain_keys else [])
    if strategies:
        made["x-kubernetes-patch-strategy"] = ",".join(strategies)
    if field.merge_key:
        made["x-kubernetes-patch-merge-key"] = field.merge_key
    keys = field.map_keys or ((field.merge_key,) if field.merge_key else ())
    if keys:
        made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    elif isinstance(field.type, ListOf):
        made["x-kubernetes-list-type"] = "set" if field.is_set or field.merge else "atomic"
    return made


def _borrowed(types: Library, type_: Type) -> str:
    """A field without a description is described as its type is."""
    match type_:
        case Ref():
            return types.resolve(type_).description
        case ListOf(item) | MapOf(item):
            return _borrowed(types, item)
        case _:
            return ""


def _typed(types: Library, type_: Type, style: Style, description: str = "") -> Raw:
    described: Raw = {"description": description} if description else {}
    match type_:
        case Plain(name) if name in _NAMED:
            return style.ref(_NAMED[name], description)
        case Plain(name):
            return described | _PLAIN[name]
        case Ref():
            return style.ref(types.resolve(type_).openapi_name, description)
        case ListOf(item):
            return {**described, "type": "array", "items": _typed(types, item, style)}
        case MapOf(item):
            return {**described, "type": "object", "additionalProperties": _typed(types, item, style)}


# Custom kinds


def custom_name(served: ServedKind) -> str:
    """`io.example.v1.Widget` for Widget of example.io/v1."""
    resource = served.resource
    return ".".join((*reversed(resource.group.split(".")), resource.version, resource.kind))


def custom_schema(types: Library, served: ServedKind, style: Style) -> Raw:
    """The schema of a definition, with what the server adds to every object."""
    resource = served.resource
    own: Raw = dict(served.schema or {"x-kubernetes-preserve-unknown-fields": True})
    made = own if style.version == 3 else _simplified(own)
    standard = {name: _property(types, field, style) for name, field in TYPE_FIELDS.items()}
    meta = style.ref(types.resolve(_META).openapi_name, "Identity, labels and life cycle of the object.")
    made["type"] = "object"
    made["properties"] = {**(made.get("properties") or {}), **standard, "metadata": meta}
    made["x-kubernetes-group-version-kind"] = [gvk(resource.group, resource.version, resource.kind)]
    return made


def _simplified(value: Any) -> Raw:
    if not isinstance(value, dict) or value.get("x-kubernetes-preserve-unknown-fields"):
        return {}
    made: Raw = {key: value[key] for key in _KEPT_IN_V2 if key in value}
    if value.get("x-kubernetes-int-or-string"):
        return {**made, "type": "string", "format": "int-or-string"}
    if isinstance(value.get("properties"), dict):
        made["properties"] = {name: _simplified(below) for name, below in value["properties"].items()}
    for below in ("items", "additionalProperties"):
        if isinstance(value.get(below), dict):
            made[below] = _simplified(value[below])
    return made
