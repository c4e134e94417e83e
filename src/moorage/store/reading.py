"""Reading the store: lists, in pages that show one moment, and watches.

Both choose objects by a `Selection`. A continue token holds the version of the first page and the last key of
the page before; later pages are computed from the history, so nothing is kept for clients that never return.

A watch is a cursor into the history of a table:

    open ──take()──▶ events in order, without gaps
      │
      ├─ close() ──────────────────▶ closed: take() gives nothing any more
      ├─ fell behind the history ──▶ closed: take() raises Gone (410) once
      └─ its beginning was undone ─▶ closed: take() raises Gone (410) once

The buffer of a slow watcher is the shared history itself, so it is bounded without a copy per watcher. The
owner waits: `wake` is called whenever there may be events to take. Events newer than `current()`, the newest
durable version, are held back.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from moorage.api import resources
from moorage.api.errors import SelectorError
from moorage.api.resources import Resource
from moorage.api.selectors import FieldRequirement, Selector, parse_field_selector, parse_selector
from moorage.framework.ports import ADDED, BOOKMARK, DELETED, MODIFIED
from moorage.store import refusals
from moorage.store.objects import Key, Raw, Stored
from moorage.store.table import ObjectTable, TableChange

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
    resources.EVENTS: {**_OF_EVENTS, "reason": "", "type": "", "reportingController": "", "source": ""},
    resources.REPLICA_SETS: {"status.replicas": "0"},
}


_SOURCE = (("deprecatedSource", "component"), ("reportingController",))
"""What `source` selects events by: the component, or the reporter of events without one (pkg/registry/core/event)."""


@dataclass(frozen=True, slots=True)
class FieldTest:
    """A term of a field selector with its path and default resolved."""

    path: tuple[str, ...]
    otherwise: tuple[str, ...]
    """The path to read if the field at `path` is empty; () if there is none."""
    absent: str
    value: str
    negated: bool

    def holds(self, raw: Raw) -> bool:
        value = _dig(raw, self.path)
        if not value and self.otherwise:
            value = _dig(raw, self.otherwise)
        text = value if isinstance(value, str) else _text(value, self.absent)
        return (text == self.value) != self.negated


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects objects by namespace, labels and fields. An empty namespace selects all namespaces."""

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
def select(resource: Resource, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Selection:
    """Parse both selectors. An invalid one raises BadRequest."""
    try:
        labels = parse_selector(label_selector)
        terms = parse_field_selector(field_selector).requirements
    except SelectorError as error:
        raise refusals.bad_request(str(error)) from error
    known = {**_EVERY_KIND, **_FIELDS.get(resource, {})}
    for term in terms:
        if term.path not in known:
            raise refusals.bad_request(f"field label not supported: {term.path}")
    return Selection(namespace, labels, tuple(_test(term, known[term.path]) for term in terms))


def _test(term: FieldRequirement, absent: str) -> FieldTest:
    if term.path == "source":
        return FieldTest(*_SOURCE, absent, term.value, term.negated)
    return FieldTest(tuple(term.path.split(".")), (), absent, term.value, term.negated)


def _dig(raw: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        raw = raw.get(step) if isinstance(raw, dict) else None
    return raw


def _text(value: Any, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@dataclass(frozen=True, slots=True)
class StoreListing:
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
    table: ObjectTable, selection: Selection, version: int, limit: int, page: str, exact: int | None = None
) -> StoreListing:
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


def _cut(objects: Iterable[Stored], selection: Selection, version: int, limit: int) -> StoreListing:
    found = list(objects) if selection.everything else [s for s in objects if selection.matches(s)]
    if limit <= 0 or len(found) <= limit:
        return StoreListing(found, version)
    last = found[limit - 1]
    remaining = len(found) - limit if selection.labels.empty and not selection.fields else None
    return StoreListing(found[:limit], version, _write(_Token(version, last.key)), remaining)


def _write(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _read(page: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(page.encode()), type=_Token)
    except (binascii.Error, msgspec.DecodeError, ValueError, RecursionError) as error:
        raise refusals.bad_request(f"continue key is not valid: {error}") from error


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One line of a watch; a bookmark has no object."""

    type: str
    stored: Stored | None
    version: int
    initial_events_end: bool = False


class Subscription:
    """An open watch, created by `Store.watch`."""

    def __init__(
        self,
        table: ObjectTable,
        selection: Selection,
        *,
        since: int,
        initial: list[StoreEvent],
        buffer: int | None,
        current: Callable[[], int],
    ) -> None:
        self.wake: Callable[[], object] | None = None
        self.closed = False
        self._table = table
        self._selection = selection
        self._everything = selection.everything
        self._since = since
        self._initial = deque(initial)
        self._buffer = buffer
        self._current = current
        self._next = table.dropped + table.position_after(since)
        self._bookmark_wanted = False
        self._undone = False
        table.listeners[self] = None

    def take(self, limit: int | None = None) -> list[StoreEvent]:
        """Return the events since the last call, at most `limit`. Raise Gone if some of them are lost."""
        self._check_place()
        taken: list[StoreEvent] = []
        newest = self._current()
        while not self.closed and (limit is None or len(taken) < limit):
            event = self._take_one(newest)
            if event is None:
                break
            taken.append(event)
        return taken

    def bookmark(self) -> None:
        """Send a bookmark after all events so far."""
        self._bookmark_wanted = True
        self.changed()

    def changed(self) -> None:
        if self.wake is not None:
            self.wake()

    def taken_back(self, version: int) -> None:
        """End the watch because its first state was not durable; its reader lists again."""
        if self._since > version:
            self._undone = True
            self.changed()

    def close(self) -> None:
        self.closed = True
        self._table.listeners.pop(self, None)

    def _take_one(self, newest: int) -> StoreEvent | None:
        if self._initial:
            return self._initial.popleft() if self._since <= newest else None
        history = self._table.history
        while (position := self._next - self._table.dropped) < len(history):
            change = history[position]
            if change.stored.version > newest:
                return None
            self._next += 1
            event = self._seen(change)
            if event is not None:
                return event
        if self._bookmark_wanted:
            self._bookmark_wanted = False
            return StoreEvent(BOOKMARK, None, max(newest, self._since))
        return None

    def _check_place(self) -> None:
        if self.closed:
            return
        if self._undone:
            self.close()
            raise refusals.too_slow()
        behind = self._table.dropped + len(self._table.history) - self._next
        if self._next < self._table.dropped or (self._buffer is not None and behind > self._buffer):
            self.close()
            raise refusals.too_slow()

    def _seen(self, change: TableChange) -> StoreEvent | None:
        """Convert a change: entering or leaving the selection counts as creation or deletion."""
        if change.version <= self._since:
            return None  # a watch from the future, opened with a version the store has yet to reach
        before = change.previous is not None and self._matches(change.previous)
        after = not change.deleted and self._matches(change.stored)
        if after:
            return StoreEvent(MODIFIED if before else ADDED, change.stored, change.version)
        if before:
            return StoreEvent(DELETED, change.stored if change.deleted else change.as_deselected(), change.version)
        return None

    def _matches(self, stored: Stored) -> bool:
        return self._everything or self._selection.matches(stored)
