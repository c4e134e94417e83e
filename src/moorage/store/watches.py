"""Watches: a cursor into a table's history, narrowed by a selection.

    open ──take()──▶ events in order, without gaps
      │
      ├─ close() ──────────────────▶ closed: take() gives nothing any more
      ├─ fell behind the history ──▶ closed: take() raises Gone (410) once
      └─ its beginning was undone ─▶ closed: take() raises Gone (410) once

The buffer of a slow watcher is the shared history itself, so it is bounded without a copy per watcher.
Waiting is left to the owner: `wake` is called whenever there may be something to take. Nothing newer than
`current()` is given out: that is the newest version that is durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from moorage.framework.ports import ADDED, BOOKMARK, DELETED, MODIFIED
from moorage.store import refusals
from moorage.store.listing import Selection
from moorage.store.objects import Stored
from moorage.store.table import Change, Table


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch; a bookmark has no object."""

    type: str
    stored: Stored | None
    version: int
    initial_events_end: bool = False


class Subscription:
    """One open watch. Made by `Store.watch`."""

    def __init__(
        self,
        table: Table,
        selection: Selection,
        *,
        since: int,
        initial: list[Event],
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

    def take(self, limit: int | None = None) -> list[Event]:
        """The events since the last call, at most `limit`; Gone when some of them are forgotten already."""
        self._check_place()
        taken: list[Event] = []
        newest = self._current()
        while not self.closed and (limit is None or len(taken) < limit):
            event = self._take_one(newest)
            if event is None:
                break
            taken.append(event)
        return taken

    def bookmark(self) -> None:
        """Asks for a bookmark after everything that has happened so far."""
        self._bookmark_wanted = True
        self.changed()

    def changed(self) -> None:
        if self.wake is not None:
            self.wake()

    def taken_back(self, version: int) -> None:
        """What this watch began with did not last: it ends, and its reader lists again."""
        if self._since > version:
            self._undone = True
            self.changed()

    def close(self) -> None:
        self.closed = True
        self._table.listeners.pop(self, None)

    def _take_one(self, newest: int) -> Event | None:
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
            return Event(BOOKMARK, None, max(newest, self._since))
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

    def _seen(self, change: Change) -> Event | None:
        """The change as this watch sees it: objects enter and leave a selection as if created and deleted."""
        if change.version <= self._since:
            return None  # a watch from the future, opened with a version the store has yet to reach
        before = change.previous is not None and self._matches(change.previous)
        after = not change.deleted and self._matches(change.stored)
        if after:
            return Event(MODIFIED if before else ADDED, change.stored, change.version)
        if before:
            return Event(DELETED, change.stored if change.deleted else change.as_deselected(), change.version)
        return None

    def _matches(self, stored: Stored) -> bool:
        return self._everything or self._selection.matches(stored)
