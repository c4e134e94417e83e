"""Stored versions of objects, and the few operations on JSON values that everything here shares.

A JSON value that has entered the store is never changed in place: a new version is a new dictionary that
shares the unchanged parts with the old one. That is what makes versions, history and watches cheap, and it
is why readers must not change what they are given.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from moorage.api import decoding
from moorage.api.errors import ObjectError
from moorage.api.resources import AnyObject, Resource
from moorage.api.times import format_time
from moorage.framework.ports import Malformed
from moorage.store import refusals

Raw: TypeAlias = dict[str, Any]
"""An object as the API server holds it: plain JSON."""
Key: TypeAlias = tuple[str, str]
"""Namespace (empty where there is none) and name."""

_UNREAD: Any = object()


class Stored:
    """One version of one object. The typed form is made once and shared by all readers."""

    __slots__ = ("_encoded", "_other", "_typed", "raw", "resource", "version")

    def __init__(self, resource: Resource, raw: Raw, version: int) -> None:
        self.resource = resource
        self.raw = raw
        self.version = version
        self._typed: AnyObject | Malformed = _UNREAD
        self._other: AnyObject | Malformed = _UNREAD
        self._encoded: bytes | None = None

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.raw["metadata"].get("namespace", ""))

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])

    @property
    def resource_version(self) -> str:
        return str(self.version)

    @property
    def typed(self) -> AnyObject | Malformed:
        """The record, or what is wrong with the object."""
        if self._typed is _UNREAD:
            self._typed = _typed(self.resource, self.raw)
        return self._typed

    def read_as(self, resource: Resource) -> AnyObject | Malformed:
        """In the form that a reader's resource names: most want the record, some the JSON as it is."""
        if resource.type is self.resource.type:
            return self.typed
        if not isinstance(self._other, resource.type):
            self._other = _typed(resource, self.raw)
        return self._other

    @property
    def encoded(self) -> bytes:
        """The object as JSON text: the same bytes for the disk, the answer and every watch."""
        if self._encoded is None:
            self._encoded = msgspec.json.encode(self.raw)
        return self._encoded

    def with_version(self, version: int) -> Stored:
        return Stored(self.resource, with_meta(self.raw, resourceVersion=str(version)), version)

    def __repr__(self) -> str:
        return f"<{self.resource} {'/'.join(filter(None, self.key))} at {self.version}>"


def _typed(resource: Resource, raw: Raw) -> AnyObject | Malformed:
    try:
        obj = decoding.convert(resource, raw)
        decoding.validate(obj)
    except ObjectError as error:
        return Malformed("/".join(filter(None, key_of(raw))), str(error))
    return obj


def key_of(raw: Raw) -> Key:
    meta = raw["metadata"]
    return (str(meta.get("namespace", "")), str(meta["name"]))


def key_in(resource: Resource, namespace: str, name: str) -> Key:
    """The key under which a request's object is stored."""
    return (namespace if resource.namespaced else "", name)


def metadata_of(raw: Raw) -> Raw:
    """The metadata of an object from outside; BadRequest if it has none."""
    meta = raw.get("metadata")
    if not isinstance(meta, dict):
        raise refusals.bad_request("the object has no metadata")
    return meta


def with_meta(raw: Raw, **changes: Any) -> Raw:
    """The object with other metadata fields; None takes a field away."""
    meta = {**raw["metadata"], **changes}
    return {**raw, "metadata": {field: value for field, value in meta.items() if value is not None}}


def copy_json(value: Any) -> Any:
    """A deep copy, for values that their giver may go on changing."""
    return msgspec.json.decode(msgspec.json.encode(value))


def timestamp(wall: float) -> str:
    """Whole seconds, as metav1.Time."""
    return _of_second(int(wall))


@lru_cache(maxsize=64)
def _of_second(second: int) -> str:
    return format_time(second)
