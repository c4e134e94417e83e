"""The body of a request as a JSON value: content types, sizes, depth, and what is wrong with it.

A value that comes from here is plain JSON of bounded depth, whatever was sent: all that follows may recurse.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from moorage.api import yaml_text
from moorage.api.errors import ApiError
from moorage.embedded import protobuf
from moorage.framework.ports import PatchType
from moorage.store import refusals

MAX_BYTES = 3 * 1024 * 1024
"""Bytes of a body, and of an object, as in the API server."""
MAX_DEPTH = 128
"""Levels of nesting. The deepest built-in kinds need about 40."""
_MAX_VALUES = 1_000_000

_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
_APPLY = "application/apply-patch"
_OBJECTS = f"application/json, application/yaml, {protobuf.CONTENT_TYPE}"
_PATCHES = (PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC)


def media_type(content_type: str) -> str:
    """Return the media type in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def read_object(body: bytes, content_type: str, *, strict: bool = False) -> dict[str, Any]:
    """Return the object in the body of a POST, PUT or DELETE. `strict` refuses duplicate fields."""
    kind = media_type(content_type)
    if kind in ("application/json", ""):
        value = read_json(body, strict=strict)
    elif kind in _YAML:
        value = read_yaml(body)
    elif kind == protobuf.CONTENT_TYPE:
        value = read_protobuf(body)
    else:
        raise _unsupported(_OBJECTS)
    if not isinstance(value, dict):
        raise refusals.bad_request(f"the body must be a JSON object, not {_named(value)}")
    return value


def read_patch(body: bytes, content_type: str) -> tuple[Any, str]:
    """Return a patch and its type."""
    kind = media_type(content_type)
    if kind in _PATCHES:
        return read_json(body), kind
    if kind.startswith(_APPLY):
        message = (
            "server-side apply is not served here; use client-side apply (kubectl apply without "
            f"--server-side) or a patch of type {', '.join(_PATCHES)}"
        )
        raise refusals.failure(415, "UnsupportedMediaType", message)
    raise _unsupported(", ".join(_PATCHES))


def read_json(body: bytes, *, strict: bool = False) -> Any:
    try:
        value = msgspec.json.decode(body)
        if strict:
            _refuse_duplicates(body)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError as error:
        raise refusals.bad_request(f"the body is not UTF-8: {error.reason} at byte {_offset(body)}") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise refusals.bad_request(f"the body is not readable as JSON: {error}; it has {len(body)} bytes") from error
    # Counting brackets is much faster than walking, and few bodies have so many.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check_size(value)
    return value


def read_yaml(body: bytes) -> Any:
    """Return one YAML document as JSON: keys become text, and values that JSON does not have are refused."""
    try:
        value = yaml_text.load(body, "the body", max_depth=MAX_DEPTH)
    except yaml_text.YamlTooDeep:
        raise _too_deep() from None
    except yaml_text.YamlTooLarge:
        raise too_large() from None
    except yaml_text.YamlError as error:
        problem = str(error).partition(": ")[2]
        raise refusals.bad_request(f"the body is not readable as YAML: {problem}") from error
    _check_size(value)
    return _as_json(value)


def read_protobuf(body: bytes) -> Any:
    """Return an object that a Go client sent."""
    try:
        value = protobuf.decode(body)
    except protobuf.ProtobufError as error:
        raise refusals.bad_request(f"the body is not readable as Protocol Buffers: {error}") from error
    _check_size(value)
    return value


def check_object(value: Any) -> None:
    """Apply the limits of bodies to a computed value, such as a patched object."""
    if _check_size(value) > MAX_BYTES:
        raise too_large()


def too_large() -> ApiError:
    message = f"Request entity too large: limit is {MAX_BYTES}"
    return refusals.failure(413, "RequestEntityTooLarge", message)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and value - value == 0:  # neither infinite nor not a number
        return value
    raise refusals.bad_request(f"the body has a value that JSON does not allow: {str(value)[:80]!r}")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool | int | float):
        return json.dumps(key)
    raise refusals.bad_request(f"the body has a key that is not a string: {str(key)[:80]!r}")


def _check_size(value: Any) -> int:
    """Check depth and number of values without recursion. Return a lower bound of the size in bytes."""
    level, values, size = [value], 0, 0
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                size += sum(len(key) if isinstance(key, str) else 1 for key in item)
                below += item.values()
            elif isinstance(item, list):
                below += item
            else:
                size += len(item) if isinstance(item, str) else 1
            if len(below) > _MAX_VALUES:
                raise too_large()
        values += len(below)
        if values > _MAX_VALUES:
            raise too_large()
        if not below:
            return size
        level = below
    raise _too_deep()


def _refuse_duplicates(body: bytes) -> None:
    def check(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise refusals.bad_request(f'strict decoding error: duplicate field "{key}"')
            seen.add(key)

    json.loads(body, object_pairs_hook=check)


def _offset(body: bytes) -> int:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _too_deep() -> ApiError:
    return refusals.bad_request(f"the body is nested more than {MAX_DEPTH} levels deep")


def _unsupported(accepted: str) -> ApiError:
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return refusals.failure(415, "UnsupportedMediaType", message)


def _named(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")
