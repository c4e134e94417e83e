"""JSON to records and back, and the check of what a record's strings mean.

Decoding is one msgspec call. When that fails, nulls are taken out and it is tried once more, since API
servers send null for empty lists and maps. What then still fails becomes an ObjectError naming object and
field, so that one bad object can be set aside while thousands of good ones pass.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import msgspec

from mooring.api import validation
from mooring.api.errors import ObjectError
from mooring.api.meta import Object
from mooring.api.resources import AnyObject, Resource, Unstructured

JSON: TypeAlias = bytes | bytearray | memoryview | str | msgspec.Raw

_WHERE = re.compile(r"(?P<message>.*) - at `(?P<key>key in )?\$(?P<path>.*)`", re.DOTALL)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(resource: Resource, data: JSON) -> AnyObject:
    """The object in a piece of JSON; ObjectError if it is none of this resource."""
    if resource.type is not Unstructured:
        try:
            return _decoder(resource).decode(data)
        except _UNREADABLE:
            pass  # the slow path below tries again without nulls, and words the error
    return convert(resource, _parse(resource, data))


def reader(resource: Resource) -> Callable[[JSON], AnyObject]:
    """`decode` for one resource, for those who call it thousands of times in a row."""
    if resource.type is Unstructured:
        return partial(decode, resource)
    fast = _decoder(resource).decode

    def read(data: JSON) -> AnyObject:
        try:
            return fast(data)
        except _UNREADABLE:
            return decode(resource, data)

    return read


def convert(resource: Resource, raw: dict[str, Any]) -> AnyObject:
    """The object in an already parsed JSON value; ObjectError if it is none of this resource."""
    try:
        return _convert(resource, raw)
    except _UNREADABLE:
        pass
    try:
        return _convert(resource, _without_nulls(raw))
    except _UNREADABLE as error:
        raise _object_error(resource, raw, error) from error


def validate(obj: AnyObject) -> None:
    """Checks the quantities and selectors an object carries; ObjectError names it and the first bad field.

    Selectors of pods that have a node already are not checked: such a pod must stay in the accounting, and
    plugins ignore the terms of existing pods that they cannot parse.
    """
    if isinstance(obj, Object):
        validation.check(obj)


def encode(obj: AnyObject) -> bytes:
    """JSON without the fields that have their default value."""
    return msgspec.json.encode(obj.raw if isinstance(obj, Unstructured) else obj)


def to_builtins(obj: AnyObject) -> dict[str, Any]:
    """Plain dictionaries and lists as `encode` would write them. An Unstructured gives its own dictionary."""
    if isinstance(obj, Unstructured):
        return obj.raw
    # By way of JSON, because msgspec.to_builtins leaves tuples where JSON has lists.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return plain


@cache
def _decoder(resource: Resource) -> msgspec.json.Decoder[AnyObject]:
    return msgspec.json.Decoder(resource.type)


def _parse(resource: Resource, data: JSON) -> dict[str, Any]:
    try:
        raw = msgspec.json.decode(data)
    except _UNREADABLE as error:
        raise ObjectError(
            _describe(resource, _metadata_only(data)), "", f"not readable as JSON: {error}"
        ) from error
    if not isinstance(raw, dict):
        raise ObjectError(_describe(resource, {}), "", f"expected a JSON object, found {type(raw).__name__}")
    return raw


class _Identity(msgspec.Struct):
    metadata: dict[str, Any] = {}


def _metadata_only(data: JSON) -> dict[str, Any]:
    """What names an object that is not readable as a whole, for instance because of a number out of range."""
    try:
        return {"metadata": msgspec.json.decode(data, type=_Identity).metadata}
    except _UNREADABLE:
        return {}


def _convert(resource: Resource, raw: dict[str, Any]) -> AnyObject:
    if resource.type is Unstructured:
        return Unstructured(raw)
    return msgspec.convert(raw, resource.type)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _object_error(resource: Resource, raw: dict[str, Any], error: Exception) -> ObjectError:
    match = _WHERE.fullmatch(str(error))
    if match is None:
        return ObjectError(_describe(resource, raw), "", f"{error}; correct the object")
    # msgspec writes the keys of maps as [...]; Kubernetes paths end at the map.
    path = match["path"].replace("[...]", "").removeprefix(".")
    return ObjectError(_describe(resource, raw), path, f"{match['message']}; correct this field")


def _describe(resource: Resource, raw: dict[str, Any]) -> str:
    """Kind and key as far as they can be read from a broken object."""
    metadata = raw.get("metadata")
    parts = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, dict) else []
    key = "/".join(part for part in parts if isinstance(part, str) and part)
    return f"{resource.kind} {key}" if key else f"{resource.kind} of unknown name"
