"""A watch as it arrives: bytes into lines, a line into an event. No I/O.

Lines are cut on bytes, since a chunk may end anywhere, also inside a character. The usual line costs a single
pass of the decoder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.api import decoding
from moorage.api.errors import BadAnswer, ObjectError, from_status
from moorage.api.meta import ApiStatus, Record
from moorage.api.resources import Resource, Unstructured
from moorage.client import responses
from moorage.framework.ports import BOOKMARK, WatchEvent


class Lines:
    """Chunks in, complete lines out. What is left when the stream ends is no line, and is dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        """Bytes that one line may have."""
        self._parts: list[bytes] = []
        """The line that has begun, in the pieces it came in: joined once, when it is complete."""
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._keep(first)
            return []
        if self._parts:
            first = b"".join([*self._parts, first])
            self._parts.clear()
            self._size = 0
        *complete, begun = rest
        self._keep(begun)
        return [line for line in (first, *complete) if line and not line.isspace()]

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            raise BadAnswer(f"an event of the watch is longer than {self._limit} bytes")


INITIAL_EVENTS_END = "k8s.io/initial-events-end"
ERROR = "ERROR"

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _RawEvent(Record):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Head(Record):
    """What is asked of any object before its kind is known to be right; nothing in it can be malformed."""

    kind: Any = ""
    metadata: Any = None

    def version(self) -> str:
        found = self.metadata.get("resourceVersion") if isinstance(self.metadata, dict) else ""
        return found if isinstance(found, str) else ""

    def ends_initial_events(self) -> bool:
        annotations = self.metadata.get("annotations") if isinstance(self.metadata, dict) else None
        return isinstance(annotations, dict) and annotations.get(INITIAL_EVENTS_END) == "true"


@dataclass(frozen=True, slots=True)
class Stranger:
    """An object of another kind than the watch is about; no informer accepts it."""

    kind: str


_raw_event = msgspec.json.Decoder(_RawEvent)
_head = msgspec.json.Decoder(_Head)
_status = msgspec.json.Decoder(ApiStatus)


def reader(resource: Resource) -> Callable[[bytes], WatchEvent]:
    """Reads the lines of one watch. Raises the ApiError of an ERROR line, and BadAnswer for what is no event;
    an object that is malformed or of another kind comes out as an event about that."""
    if resource.type is Unstructured:
        return lambda line: _slowly(resource, line)
    typed = msgspec.defstruct(
        f"{resource.kind}Event", [("type", str, ""), ("object", resource.type | None, None)], frozen=True
    )
    decode = msgspec.json.Decoder(typed).decode
    kind = resource.kind

    def read(line: bytes) -> WatchEvent:
        try:
            event: Any = decode(line)
        except _UNREADABLE:
            return _slowly(resource, line)
        found = event.object
        if found is None or found.kind != kind or event.type in (BOOKMARK, ERROR):
            return _slowly(resource, line)
        return WatchEvent(event.type, found, found.metadata.resource_version)

    return read


def _slowly(resource: Resource, line: bytes) -> WatchEvent:
    try:
        event = _raw_event.decode(line)
    except _UNREADABLE as error:
        raise BadAnswer(f"watch of {resource}: a line is not an event ({error}): {responses.shown(line)!r}") from error
    if event.type == ERROR:
        raise from_status(_error_status(event.object))
    head = _head_of(event.object)
    version = head.version()
    if event.type == BOOKMARK:
        return WatchEvent(BOOKMARK, None, version, initial_events_end=head.ends_initial_events())
    if head.kind != resource.kind:
        return WatchEvent(event.type, Stranger(responses.shown(str(head.kind))), "")
    try:
        return WatchEvent(event.type, decoding.decode(resource, event.object), version)
    except ObjectError as error:
        return WatchEvent(event.type, responses.malformed(resource, error), version)


def _head_of(raw: msgspec.Raw) -> _Head:
    try:
        return _head.decode(raw)
    except _UNREADABLE:
        return _Head()


def _error_status(raw: msgspec.Raw) -> ApiStatus:
    try:
        return _status.decode(raw)
    except _UNREADABLE:
        return ApiStatus(code=500, message=f"an error that cannot be read: {responses.shown(bytes(raw))}")
