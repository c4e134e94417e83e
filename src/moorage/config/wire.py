"""Plain values -> typed records, strictly, with every mistake collected; and records -> the YAML of a file.

msgspec stops at the first error, so records and sequences are walked here and only leaves are left to it.
As in Go, null means "not given". A field that cannot be read takes its default, so that the rest of the file
is still checked. What is written is what `--write-config-to` leaves: complete, version v1, readable again;
fields that are unset (null, an empty list, a weight of zero, an empty plugin set) are left out.
"""

import re
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

import msgspec

from moorage.api import times, yaml_text
from moorage.api.problems import Problem, child, did_you_mean, required
from moorage.config.types import (
    API_VERSION,
    KIND,
    KubeSchedulerConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    wire_fields,
)
from moorage.framework.args import PluginArgs

_WORDS = {
    "int": "an integer",
    "str": "a string",
    "bool": "a boolean",
    "float": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


class _Refused:
    """The value cannot be read; the reason is among the problems."""


_REFUSED = _Refused()


def decode(value: object, target: Any, path: str, problems: list[Problem]) -> Any:
    """`value` as a `target`, or None when it cannot be one; what is wrong is added to `problems`."""
    decoded = _decode(value, target, path, problems)
    return None if decoded is _REFUSED else decoded


def is_duration(annotation: Any) -> bool:
    metadata = getattr(annotation, "__metadata__", ())
    return any(getattr(meta, "extra", None) == times.DURATION_ON_WIRE for meta in metadata)


def without_none(annotation: Any) -> Any:
    """`T` for `T | None`; anything else unchanged."""
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [part for part in get_args(annotation) if part is not type(None)]
        return rest[0] if len(rest) == 1 else annotation
    return annotation


def item_type(target: Any) -> Any:
    """The item type of a list or of a tuple of any length."""
    origin, arguments = get_origin(target), get_args(target)
    if origin is list:
        return arguments[0]
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return arguments[0]
    return None


def _decode(value: object, target: Any, path: str, problems: list[Problem]) -> Any:
    target = without_none(target)
    if is_duration(target):
        return _duration(value, path, problems)
    if _is_walkable(target):
        return _record(value, target, path, problems)
    if (item := item_type(target)) is not None:
        return _sequence(value, target, item, path, problems)
    return _leaf(value, target, path, problems)


def _is_walkable(target: Any) -> bool:
    if not (isinstance(target, type) and issubclass(target, msgspec.Struct)):
        return False
    config = target.__struct_config__
    return config.tag is None and not config.array_like


def _record(value: object, record: type[msgspec.Struct], path: str, problems: list[Problem]) -> Any:
    if not isinstance(value, Mapping):
        problems.append(_wrong_type(path, "a mapping", value))
        return _blank(record)
    fields = wire_fields(record)
    for key in value:
        if key not in fields:
            message = f'unknown field "{key}"'
            problems.append(Problem(path=child(path, str(key)), message=message, hint=did_you_mean(str(key), fields)))
    known = len(problems)
    given: dict[str, Any] = {}
    for name, field in fields.items():
        decoded = _field(value.get(name), field, child(path, name), problems)
        if decoded is not _REFUSED:
            given[field.name] = decoded
    return _construct(record, given, path, problems, known)


def _field(value: object, field: msgspec.structs.FieldInfo, path: str, problems: list[Problem]) -> Any:
    if value is not None:
        return _decode(value, field.type, path, problems)
    if field.required:
        problems.append(required(path))
    return _REFUSED


def _construct(
    record: type[msgspec.Struct], given: dict[str, Any], path: str, problems: list[Problem], known: int
) -> Any:
    try:
        return record(**given)
    except (TypeError, ValueError) as error:
        # A field that is required and was refused is reported already; the rest is what __post_init__ says.
        if len(problems) == known:
            problems.append(Problem(path=path, message=str(error)))
        return _REFUSED


def _blank(record: type[msgspec.Struct]) -> Any:
    """A stand-in that keeps the positions in a list right."""
    try:
        return record()
    except (TypeError, ValueError):
        return _REFUSED


def _sequence(value: object, target: Any, item: Any, path: str, problems: list[Problem]) -> Any:
    if not isinstance(value, list):
        problems.append(_wrong_type(path, "a list", value))
        return _REFUSED
    decoded = [_decode(entry, item, child(path, index), problems) for index, entry in enumerate(value)]
    kept = [entry for entry in decoded if entry is not _REFUSED]
    return kept if get_origin(target) is list else tuple(kept)


def _duration(value: object, path: str, problems: list[Problem]) -> Any:
    if not isinstance(value, str):
        hint = f'write "{value}s" for seconds' if type(value) in (int, float) else ""
        problems.append(_wrong_type(path, "a duration such as 15s or 1m30s", value, hint))
        return _REFUSED
    try:
        return times.parse_duration(value)
    except times.DurationError as error:
        problems.append(Problem(path=path, message=str(error), value=value))
        return _REFUSED


def _leaf(value: object, target: Any, path: str, problems: list[Problem]) -> Any:
    try:
        return msgspec.convert(value, target)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at ")
        inner = where.strip("`").removeprefix("$").removeprefix(".")
        full = path + inner if inner.startswith("[") else child(path, inner) if inner else path
        problems.append(Problem(path=full, message=_in_words(message), value=value))
        return _REFUSED


def _in_words(message: str) -> str:
    text = re.sub(r"`(\w+)`", lambda match: _WORDS.get(match[1], match[1]), message)
    return text[:1].lower() + text[1:]


def _wrong_type(path: str, expected: str, value: object, hint: str = "") -> Problem:
    return Problem(path=path, message=f"expected {expected}, got {_kind(value)}", value=value, hint=hint)


def _kind(value: object) -> str:
    names = {bool: "bool", int: "int", float: "float", str: "str", list: "array", dict: "object"}
    return _WORDS[names.get(type(value), "null")]


def dump(config: KubeSchedulerConfiguration) -> str:
    """Return the configuration as YAML; `load(dump(config))` equals `config`."""
    return to_yaml(to_wire(config))


def to_yaml(body: Mapping[str, Any]) -> str:
    """Return the text of a file with these fields of a configuration."""
    return yaml_text.dump({"apiVersion": API_VERSION, "kind": KIND, **body}, width=110)


def to_wire(record: msgspec.Struct) -> dict[str, Any]:
    """Return a record as plain values under its wire names."""
    if isinstance(record, PluginConfig) and isinstance(record.args, PluginArgs):
        header = {"apiVersion": API_VERSION, "kind": f"{record.name}Args"}
        return {"name": record.name, "args": {**header, **to_wire(record.args)}}
    result: dict[str, Any] = {}
    for name, field in wire_fields(type(record)).items():
        value = getattr(record, field.name)
        if not _is_unset(value, field, record):
            result[name] = _plain(value, field.type)
    return result


def _is_unset(value: object, field: msgspec.structs.FieldInfo, owner: msgspec.Struct) -> bool:
    """Return whether a field can be omitted. Zeros and false are written, as upstream does."""
    if value is None:
        return True
    if isinstance(owner, Plugin | Plugins):
        return bool(value == field.default)
    return value in ("", b"", (), [], {}) and value in (field.default, _made(field))


def _made(field: msgspec.structs.FieldInfo) -> object:
    factory = field.default_factory
    return None if factory is msgspec.NODEFAULT else factory()


def _plain(value: Any, annotation: Any) -> Any:
    if value is not None and is_duration(without_none(annotation)):
        return times.format_duration(value)
    if isinstance(value, msgspec.Struct) and value.__struct_config__.tag is None:
        return to_wire(value)
    if isinstance(value, tuple | list):
        return [_plain(item, item_type(without_none(annotation))) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return msgspec.to_builtins(value, str_keys=True)
