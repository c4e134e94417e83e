"""What a list shows: the objects that its selectors choose, whole or in pages that show one moment.

Watches choose by the same `Selection`. A continue token holds the version of the first page and the last key
given out; later pages are computed from the history, so nothing is kept for clients that never come back.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from moorage.api import resources
from moorage.api.errors import SelectorError
from moorage.api.resources import Resource
from moorage.api.selectors import Selector, parse_field_selector, parse_selector
from moorage.store import refusals
from moorage.store.objects import Key, Raw, Stored
from moorage.store.table import Table

_EVERY_KIND = {"metadata.name": "", "metadata.namespace": ""}
_OF_EVENTS = {
    f"regarding.{part}": ""
    for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
}
# Selectable field -> what an absent one reads as.
_FIELDS: dict[Resource, dict[str, str]] = {
    resources.PODS: {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    },
    resources.NODES: {"spec.unschedulable": "false"},
    resources.NAMESPACES: {"status.phase": ""},
    resources.EVENTS: {**_OF_EVENTS, "reason": "", "type": "", "reportingController": ""},
    resources.REPLICA_SETS: {"status.replicas": "0"},
}


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One term of a field selector, with its path split and its default looked up."""

    path: tuple[str, ...]
    absent: str
    value: str
    negated: bool

    def holds(self, raw: Raw) -> bool:
        value: Any = raw
        for step in self.path:
            value = value.get(step) if isinstance(value, dict) else None
        text = value if isinstance(value, str) else _text(value, self.absent)
        return (text == self.value) != self.negated


@dataclass(frozen=True, slots=True)
class Selection:
    """All three conditions. An empty namespace means all of them."""

    namespace: str
    labels: Selector
    fields: tuple[FieldTest, ...]

    @property
    def everything(self) -> bool:
        return not self.namespace and self.labels.empty and not self.fields

    def matches(self, stored: Stored) -> bool:
        meta = stored.raw["metadata"]
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        if not self.labels.empty and not self.labels.matches(meta.get("labels") or {}):
            return False
        for test in self.fields:  # noqa: SIM110 - a generator would cost more than the tests themselves
            if not test.holds(stored.raw):
                return False
        return True


@lru_cache(maxsize=1024)
def select(
    resource: Resource, namespace: str = "", label_selector: str = "", field_selector: str = ""
) -> Selection:
    """Parses both selectors; a bad one is a BadRequest."""
    try:
        labels = parse_selector(label_selector)
        terms = parse_field_selector(field_selector).requirements
    except SelectorError as error:
        raise refusals.bad_request(str(error)) from error
    known = {**_EVERY_KIND, **_FIELDS.get(resource, {})}
    for term in terms:
        if term.path not in known:
            raise refusals.bad_request(f"field label not supported: {term.path}")
    tests = (FieldTest(tuple(t.path.split(".")), known[t.path], t.value, t.negated) for t in terms)
    return Selection(namespace, labels, tuple(tests))


def _text(value: Any, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@dataclass(frozen=True, slots=True)
class Listing:
    """One answer: objects in order, the version they show, and the token of the next page if one follows."""

    items: list[Stored]
    version: int
    next_page: str = ""
    remaining: int | None = field(default=None)
    """How many objects follow; unknown (None) with selectors, as in the API server."""


class _Token(msgspec.Struct, frozen=True):
    version: int
    after: Key


def list_page(
    table: Table, selection: Selection, version: int, limit: int, page: str, exact: int | None = None
) -> Listing:
    """`version` is the current one; with a token, the token's is shown instead, or else the `exact` one."""
    token = _read(page) if page else None
    if token is None and exact is not None:
        if exact < table.floor:
            raise refusals.too_old(exact, table.floor)
        return _cut(table.at(exact), selection, exact, limit)
    if token is None:
        return _cut(table.in_order(), selection, version, limit)
    if token.version < table.floor or token.version > version:
        raise refusals.page_expired()
    rest = [stored for stored in table.at(token.version) if stored.key > token.after]
    return _cut(rest, selection, token.version, limit)


def _cut(objects: Iterable[Stored], selection: Selection, version: int, limit: int) -> Listing:
    found = list(objects) if selection.everything else [s for s in objects if selection.matches(s)]
    if limit <= 0 or len(found) <= limit:
        return Listing(found, version)
    last = found[limit - 1]
    remaining = len(found) - limit if selection.labels.empty and not selection.fields else None
    return Listing(found[:limit], version, _write(_Token(version, last.key)), remaining)


def _write(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _read(page: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(page.encode()), type=_Token)
    except (binascii.Error, ValueError) as error:
        raise refusals.bad_request(f"continue key is not valid: {error}") from error
