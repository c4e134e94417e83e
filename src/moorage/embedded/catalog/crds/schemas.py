"""The schemas of custom kinds: what is cut off their objects, what is filled in, and what is refused.

A structural schema gives a type to every level, so that a field is either described or unknown. Pruning and defaulting
give new values; unchanged parts are shared. Objects are checked by the jsonschema library, with the API server's
sentences: OpenAPI's dialect is turned into JSON Schema of draft 4 first; only known keywords go in, so nothing in a
schema can make the library look elsewhere. CEL rules (x-kubernetes-validations) are not judged.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from typing import Any
from uuid import UUID

import jsonschema
from jsonschema import validators
from jsonschema.exceptions import ValidationError

from moorage.embedded.admission.problems import Problems
from moorage.embedded.catalog.crds import patterns
from moorage.store.objects import Raw

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")
_PLAIN_KEYWORDS = (
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
)
_LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf")
_format_checker = jsonschema.FormatChecker(formats=())


def prune(value: Any, schema: Raw, *, root: bool = False) -> Any:
    """Without the fields that the schema does not have. Metadata is left to the rules of all kinds."""
    if isinstance(value, list):
        items = schema.get("items")
        return [prune(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    kept: Raw = {}
    for name, item in value.items():
        below = _schema_of(schema, name, root)
        if below is not None:
            kept[name] = prune(item, below)
    return kept


def _schema_of(schema: Raw, name: str, root: bool) -> Raw | None:
    """The schema of one field; None for a field that is cut off."""
    if (root or schema.get(EMBEDDED)) and name in OF_EVERY_OBJECT:
        return {PRESERVE: True}
    own = (schema.get("properties") or {}).get(name)
    if isinstance(own, dict):
        return own
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        return others
    if schema.get(PRESERVE) or others is True:
        # Fields below an unknown one are unknown too; those below a known one are judged again.
        return {PRESERVE: True}
    return None


def fill_defaults(value: Any, schema: Raw) -> Any:
    """With the defaults of missing fields. A null where none is allowed counts as missing."""
    if isinstance(value, list):
        items = schema.get("items")
        return [fill_defaults(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    own = schema.get("properties") or {}
    for name, below in own.items():
        if name in filled and filled[name] is None and not below.get("nullable"):
            del filled[name]
        if "default" in below and name not in filled:
            filled[name] = below["default"]
        if name in filled:
            filled[name] = fill_defaults(filled[name], below)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for name in filled.keys() - own.keys():
            filled[name] = fill_defaults(filled[name], others)
    return filled


def to_json_schema(schema: Raw) -> Raw:
    """An OpenAPI schema as JSON Schema."""
    made: Raw = {keyword: schema[keyword] for keyword in _PLAIN_KEYWORDS if keyword in schema}
    types = _types(schema)
    if types:
        made["type"] = types
    if schema.get("nullable") and isinstance(made.get("enum"), list):
        made["enum"] = [*made["enum"], None]
    for keyword in _LISTS_OF_SCHEMAS:
        if isinstance(schema.get(keyword), list):
            made[keyword] = [to_json_schema(below) for below in schema[keyword] if isinstance(below, dict)]
    for keyword in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            made[keyword] = to_json_schema(schema[keyword])
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {
            name: to_json_schema(below) for name, below in schema["properties"].items() if isinstance(below, dict)
        }
    if "required" in schema:
        made["required"] = schema["required"]  # reported last, as the API server does
    return made


def _types(schema: Raw) -> list[str]:
    types = ["integer", "string"] if schema.get(INT_OR_STRING) else []
    if not types and isinstance(schema.get("type"), str):
        types = [schema["type"]]
    return [*types, "null"] if types and schema.get("nullable") else types


def _is_integer(checker: Any, value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


_FORMATS: dict[str, Callable[[str], object]] = {
    "date-time": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")),
    "date": date.fromisoformat,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "cidr": lambda text: ipaddress.ip_network(text, strict=False),
    "uuid": UUID,
}
for _name, _read in _FORMATS.items():

    def _check(value: object, read: Callable[[str], object] = _read) -> bool:
        return not isinstance(value, str) or read(value) is not None

    _format_checker.checks(_name, raises=ValueError)(_check)


def _pattern(validator: Any, pattern: str, value: Any, schema: Raw) -> Iterator[ValidationError]:
    if isinstance(value, str) and not patterns.matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_Draft4 = validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft4Validator,
    {"pattern": _pattern},
    type_checker=jsonschema.Draft4Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


class SchemaCheck:
    """One schema, ready to judge objects."""

    def __init__(self, schema: Raw) -> None:
        self._schema = schema
        self._validator = _Draft4(to_json_schema(schema), format_checker=_format_checker)

    def check(self, raw: Raw, problems: Problems) -> None:
        for error in self._validator.iter_errors(raw):
            _report(error, problems)
        _check_lists(raw, self._schema, "", problems)


def _report(error: ValidationError, problems: Problems) -> None:
    path = _path(error.absolute_path)
    value: Any = error.instance
    wanted: Any = error.validator_value
    match error.validator:
        case "required":
            for name in (n for n in wanted if n not in value):
                if f"'{name}' is a required" in error.message:
                    problems.required(f"{path}.{name}" if path else name)
        case "enum":
            shown = (item if isinstance(item, str) else json.dumps(item) for item in wanted)
            problems.not_supported(path, value, list(shown))
        case "maxLength":
            problems.too_long(path, wanted)
        case "maxItems" | "maxProperties":
            problems.too_many(path, len(value), wanted)
        case "anyOf":
            _report_choice(path, "must validate at least one schema (anyOf)", error, problems)
        case "oneOf":
            found = "Found none valid" if error.context else "Found more than one valid alternative"
            _report_choice(path, f"must validate one and only one schema (oneOf). {found}", error, problems)
        case "not":
            _report_choice(path, "must not validate the schema (not)", error, problems)
        case "type":
            found = _type_name(value)
            types = ",".join(t for t in ([wanted] if isinstance(wanted, str) else wanted) if t != "null")
            problems.invalid(path, found, f'{path} in body must be of type {types}: "{found}"')
        case _:
            problems.invalid(path, value, f"{path} in body {_sentence(error)}")


def _report_choice(path: str, sentence: str, error: ValidationError, problems: Problems) -> None:
    problems.invalid(path, "", f'"{path}" {sentence}')
    for inner in error.context or ():
        if inner.validator == "required":
            _report(inner, problems)


def _sentence(error: ValidationError) -> str:
    wanted = error.validator_value
    exclusive = isinstance(error.schema, dict) and error.schema.get(f"exclusive{str(error.validator).capitalize()}")
    sentences = {
        "minimum": f"should be greater than {'' if exclusive else 'or equal to '}{wanted}",
        "maximum": f"should be less than {'' if exclusive else 'or equal to '}{wanted}",
        "minLength": f"should be at least {wanted} chars long",
        "minItems": f"should have at least {wanted} items",
        "minProperties": f"should have at least {wanted} properties",
        "pattern": f"should match '{wanted}'",
        "multipleOf": f"should be a multiple of {wanted}",
        "format": f"must be of type {wanted}: {json.dumps(error.instance)}",
    }
    return sentences.get(str(error.validator), error.message)


def _path(steps: Iterable[Any]) -> str:
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
    return names[type(value)]


def _check_lists(value: Any, schema: Raw, path: str, problems: Problems) -> None:
    """Sets have no value twice, and lists with keys no key."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        _check_unique(value, schema, path, problems)
        for index, item in enumerate(value):
            _check_lists(item, schema["items"], f"{path}[{index}]", problems)
    elif isinstance(value, dict):
        own, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, item in value.items():
            below = own.get(name, others)
            if isinstance(below, dict):
                _check_lists(item, below, f"{path}.{name}" if path else name, problems)


def _check_unique(value: list[Any], schema: Raw, path: str, problems: Problems) -> None:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("set", "map"):
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        identity = item
        if kind == "map":
            identity = {key: item[key] for key in keys if key in item} if isinstance(item, dict) else item
        text = json.dumps(identity, sort_keys=True)
        if text in seen:
            problems.duplicate(f"{path}[{index}]", identity)
        seen.add(text)
