"""Reads the YAML files of simulations: strict fields, durations and rates, and errors with their position.

The meaning of the fields is documented at their types.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar, dataclass_transform

import msgspec
from msgspec import inspect

from moorage.api import yaml_text
from moorage.api.errors import MoorageError
from moorage.api.problems import did_you_mean
from moorage.api.times import DurationError, parse_duration

T = TypeVar("T")

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.*)`")
_PLACE = re.compile(r"(?P<message>.*) - at `(?:key in )?\$(?P<path>.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_RATE = re.compile(r"(?P<number>[0-9.]+) */ *(?P<unit>s|m|h)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class FieldError(MoorageError):
    """A file of a simulation is invalid. The message names the file, the field and how to fix it."""


# For type checkers only: subclasses inherit `frozen` and `kw_only`.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Fields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of such a file. Unknown fields are errors."""


class Seconds(float):
    """A number of seconds, or text such as 90s, 15m or 1h30m."""


class Rate(float):
    """A number per second, or text such as 10/s, 600/m or 100/h."""


def parse_yaml(text: str | bytes, source: str) -> dict[str, Any]:
    """Return the mapping in a YAML file."""
    try:
        raw = yaml_text.load(text, source)
    except yaml_text.YamlError as error:
        raise FieldError(str(error)) from error
    if not isinstance(raw, dict):
        raise FieldError(f"{source}: must be a YAML mapping")
    return raw


def read_fields(kind: type[T], raw: Any, source: str) -> T:
    """Return the typed value. Raise a FieldError that names the file, the path and, for an unknown field, the
    known ones."""
    try:
        return msgspec.convert(raw, kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        found = _PLACE.fullmatch(str(error))
        message, path = (found["message"], found["path"]) if found else (str(error), "")
        place = path.removeprefix(".")
        if unknown := _UNKNOWN.fullmatch(message):
            known = _known(inspect.type_info(kind), path)
            hint = did_you_mean(unknown["field"], known) or f"known fields are {', '.join(known)}"
            field = f"{place}.{unknown['field']}".removeprefix(".")
            raise FieldError(f"{source}: {field}: unknown field; {hint}") from error
        raise FieldError(f"{source}: {place}: {message}" if place else f"{source}: {message}") from error


def _read(kind: type, value: Any) -> Any:
    if kind is Seconds:
        return _seconds(value)
    if kind is Rate:
        return _rate(value)
    raise NotImplementedError(kind)


def _seconds(value: Any) -> Seconds:
    if isinstance(value, str):
        try:
            return Seconds(parse_duration(value))
        except DurationError:
            raise ValueError(f"{value!r} is not a duration; write seconds, or 90s, 15m, 1h30m") from None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Seconds(value)
    raise ValueError(f"{value!r} is not a duration; write seconds, or 90s, 15m, 1h30m")


def _rate(value: Any) -> Rate:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return Rate(value)
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    try:
        number = float(match["number"]) if match else 0.0
    except ValueError:
        number = 0.0
    if match is None or number <= 0:
        raise ValueError(f"{value!r} is not a rate; write a number per second, or 10/s, 600/m, 100/h")
    return Rate(number / _UNITS[match["unit"]])


def _known(info: inspect.Type, path: str) -> list[str]:
    """Return the fields of the struct at a path."""
    for name, _ in _STEP.findall(path):
        info = _inside(info, name)
    found = _struct(info)
    return sorted(field.encode_name for field in found.fields) if found else []


def _inside(info: inspect.Type, name: str) -> inspect.Type:
    struct = _struct(info)
    if name and struct is not None:
        return next((f.type for f in struct.fields if f.encode_name == name), inspect.AnyType())
    for each in info.types if isinstance(info, inspect.UnionType) else (info,):
        if isinstance(each, inspect.DictType):
            return each.value_type
        if not name and isinstance(each, inspect.ListType | inspect.VarTupleType):
            return each.item_type
    return inspect.AnyType()


def _struct(info: inspect.Type) -> inspect.StructType | None:
    kinds = info.types if isinstance(info, inspect.UnionType) else (info,)
    return next((each for each in kinds if isinstance(each, inspect.StructType)), None)
