"""Objects in Protocol Buffers, as Go clients send them since Kubernetes 1.33: read into plain JSON.

    k8s\\0  Unknown{typeMeta{apiVersion, kind}, raw}     the envelope; raw is the message of the kind

Only reading: whoever sends Protocol Buffers reads JSON too. Messages follow the types files. What JSON would
not show is not shown: times that are not set, and zeros where the types say that they mean nothing.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from moorage.api.times import format_time
from moorage.store.schemas import Definition, Field, ListOf, MapOf, Plain, Ref, Type, library

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SCALARS = frozenset({"string", "int32", "int64", "bool", "float", "bytes"})


class ProtobufError(ValueError):
    """The body is no message that is understood here; the text says why."""


@dataclass(slots=True)
class _Table:
    """The fields of a message by number, and the messages whose fields JSON shows in place."""

    fields: dict[int, Field] = field(default_factory=dict)
    inline: dict[int, _Table] = field(default_factory=dict)


def decode(body: bytes) -> dict[str, Any]:
    """The object in a body, with its apiVersion and kind."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("the body does not begin as Kubernetes objects in Protocol Buffers do")
    try:
        return _decode(body[len(_MAGIC) :])
    except ProtobufError:
        raise
    except (IndexError, struct.error, ValueError, ArithmeticError, OSError, RecursionError) as error:
        raise ProtobufError(f"the message is damaged: {error}") from error


def _decode(envelope: bytes) -> dict[str, Any]:
    outer = {number: value for number, _, value in _read(envelope)}
    names = {number: value for number, _, value in _read(_message(outer.get(1, b"")))}
    api_version, kind = _text(names.get(1, b"")), _text(names.get(2, b""))
    if outer.get(3):
        raise ProtobufError("a content encoding inside of the message is not supported")
    definition = library().kind(api_version, kind)
    if definition is None and kind == "DeleteOptions":
        definition = library().kind("v1", kind)  # it is sent under the group of what is deleted
    if definition is None:
        raise ProtobufError(f"{kind} of {api_version} is not understood in Protocol Buffers; send JSON")
    content = _object(definition, _message(outer.get(2, b"")))
    return {"apiVersion": api_version, "kind": kind, **content}


def _object(definition: Definition, message: bytes) -> dict[str, Any]:
    made: dict[str, Any] = {}
    _fill(made, _table(definition.package, definition.name), message)
    return made


def _fill(made: dict[str, Any], table: _Table, message: bytes) -> None:
    for number, wire, value in _read(message):
        known = table.fields.get(number)
        if known is not None:
            _put(made, known, wire, value)
        elif number in table.inline:
            _fill(made, table.inline[number], _message(value))


def _put(made: dict[str, Any], known: Field, wire: int, value: Any) -> None:
    type_ = known.type
    if isinstance(type_, ListOf):
        made.setdefault(known.name, []).extend(_items(type_.item, wire, value))
    elif isinstance(type_, MapOf):
        parts = {number: (w, v) for number, w, v in _read(_message(value))}
        key = _text(parts[1][1]) if 1 in parts else ""
        made.setdefault(known.name, {})[key] = _entry(type_.item, parts)
    else:
        read = _value(type_, wire, value)
        if read is not None and not (known.zero_is_unset and not read):
            made[known.name] = read


def _entry(type_: Type, parts: dict[int, tuple[int, Any]]) -> Any:
    if isinstance(type_, ListOf):  # a list inside a map is a message of its own
        inner = _read(_message(parts[2][1])) if 2 in parts else ()
        return [_value(type_.item, wire, value) for number, wire, value in inner if number == 1]
    wire, value = parts.get(2, (_BYTES, b""))
    return _value(type_, wire, value)


def _items(type_: Type, wire: int, value: Any) -> Iterator[Any]:
    packed = wire == _BYTES and isinstance(type_, Plain) and type_.name in ("int32", "int64", "bool")
    if not packed:
        yield _value(type_, wire, value)
        return
    position = 0
    while position < len(value):
        number, position = _varint(value, position)
        yield _value(type_, _VARINT, number)


def _value(type_: Type, wire: int, value: Any) -> Any:
    match type_:
        case Ref():
            definition = library().resolve(type_)
            if definition.fields is None and value:
                raise ProtobufError(f"{definition.name} is not understood in Protocol Buffers; send JSON")
            return _object(definition, _message(value))
        case Plain(name):
            return _scalar(name, wire, value) if name in _SCALARS else _special(name, _message(value))
        case _:
            raise ProtobufError("a list of lists is not understood in Protocol Buffers; send JSON")


def _scalar(name: str, wire: int, value: Any) -> Any:
    match name:
        case "string":
            return _text(value)
        case "bytes":
            return base64.b64encode(_message(value)).decode()
        case "float":
            if wire != _FIXED64:
                raise ProtobufError("a number has the wrong form")
            return struct.unpack("<d", value)[0]
    if wire != _VARINT:
        raise ProtobufError("a number has the wrong form")
    return bool(value) if name == "bool" else _signed(value)


def _special(name: str, message: bytes) -> Any:
    """Types that are plain in JSON and messages here."""
    parts = {number: value for number, _, value in _read(message)}
    match name:
        case "quantity":
            return _text(parts.get(1, b""))
        case "intOrString":
            return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))
        case "time" | "microTime":
            seconds, nanos = _signed(parts.get(1, 0)), _signed(parts.get(2, 0))
            if not seconds and not nanos:
                return None
            return format_time(seconds + nanos / 1e9, micro=name == "microTime")
        case _:
            raw = _message(parts.get(1, b""))
            return msgspec.json.decode(raw) if raw else None


@cache
def _table(package: str, name: str) -> _Table:
    table = _Table()
    for known in (library().resolve(Ref(package, name)).fields or {}).values():
        place = table
        for number in known.number[:-1]:
            place = place.inline.setdefault(number, _Table())
        if known.number:
            place.fields[known.number[-1]] = known
    return table


def _read(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of each field."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == _VARINT:
            value, position = _varint(message, position)
        elif wire in (_FIXED64, _FIXED32):
            end = position + (8 if wire == _FIXED64 else 4)
            value, position = message[position:end], end
        elif wire == _BYTES:
            length, position = _varint(message, position)
            value, position = message[position : position + length], position + length
        else:
            raise ProtobufError(f"wire type {wire} is not used by Kubernetes")
        if position > len(message):
            raise ProtobufError("the message ends in the middle of a field")
        yield number, wire, value


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), position
        shift += 7
        if shift > 63:
            raise ProtobufError("a number is longer than 64 bits")


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise ProtobufError("a number has the wrong form")
    return value - 2**64 if value >= 2**63 else value


def _message(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("a number stands where a message belongs")
    return value


def _text(value: Any) -> str:
    return _message(value).decode()
