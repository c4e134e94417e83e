"""JSON as text: read within limits on size and depth.

JSON of users and of the network that becomes plain values passes through here, or through `decoding` if it is
a Kubernetes object. msgspec stops at Python's recursion limit, with a RecursionError; values below that limit
may still be too deep for a function that recurses, so they are limited too.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

from moorage.api.errors import MoorageError
from moorage.api.yaml_text import MAX_BYTES, MAX_DEPTH

T = TypeVar("T")
Text = bytes | bytearray | str | msgspec.Raw


class JsonError(MoorageError, ValueError):
    """A text is not JSON, or exceeds a limit. The message begins with the source of the text."""


class JsonTooDeep(JsonError):
    """The values are nested too deeply."""


@overload
def load(text: Text, source: str = ..., *, max_bytes: int = ...) -> Any: ...
@overload
def load(text: Text, source: str, kind: type[T], *, max_bytes: int = ...) -> T: ...


def load(text: Text, source: str = "the text", kind: Any = Any, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value of a text, as `kind` if one is given."""
    size = memoryview(text).nbytes if isinstance(text, msgspec.Raw) else len(text)
    if size > max_bytes:
        raise JsonError(f"{source} has {size} bytes; at most {max_bytes} are read")
    try:
        value = msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise _too_deep(source) from None
    except msgspec.ValidationError as error:
        raise JsonError(f"{source} is not as expected: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JsonError(f"{source} is not JSON: {error}") from error
    if is_deep(value, MAX_DEPTH):
        raise _too_deep(source)
    return value


def is_deep(value: Any, max_depth: int) -> bool:
    """Return whether lists and objects are nested more than `max_depth` levels deep. Does not recurse."""
    level = [value]
    for _ in range(max_depth + 1):
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            return False
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]
    return True


def _too_deep(source: str) -> JsonTooDeep:
    return JsonTooDeep(f"{source} is nested more than {MAX_DEPTH} levels deep")
