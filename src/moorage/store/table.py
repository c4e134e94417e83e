"""The objects of one resource and the bounded history of their changes.

A table knows nothing of Kubernetes rules; the store decides what is written. Watches read the history with
a cursor of their own (see `watches`), so a change costs the same however many watch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Protocol

from moorage.api.resources import Resource
from moorage.store.objects import Key, Stored


class TableListener(Protocol):
    """Notified when changes of the table may be sent to clients."""

    def changed(self) -> None: ...

    def taken_back(self, version: int) -> None:
        """The changes after a version have been undone."""
        ...


class TableChange:
    """One step of the history: `previous` None means created, `deleted` that `stored` is the last state."""

    __slots__ = ("_outside", "deleted", "previous", "stored")

    def __init__(self, stored: Stored, previous: Stored | None, deleted: bool) -> None:
        self.stored = stored
        self.previous = previous
        self.deleted = deleted
        self._outside: Stored | None = None

    @property
    def version(self) -> int:
        return self.stored.version

    def as_deselected(self) -> Stored:
        """The previous state under this change's version: what those see whose selection the object left."""
        if self._outside is None:
            assert self.previous is not None
            self._outside = self.previous.with_version(self.version)
        return self._outside


class ObjectTable:
    """Current objects by key, and the last changes. `floor` is the newest version already forgotten."""

    def __init__(self, resource: Resource, history_limit: int, floor: int) -> None:
        self.resource = resource
        self.objects: dict[Key, Stored] = {}
        self.history: list[TableChange] = []
        self.dropped = 0
        """How many changes are no longer in `history`; `dropped` + position is a change's lasting number."""
        self.floor = floor
        self.listeners: dict[TableListener, None] = {}
        self._limit = history_limit
        self._sorted: list[Key] | None = None

    def put(self, stored: Stored) -> None:
        """Stores a new object or the next version of one."""
        key = stored.key
        previous = self.objects.get(key)
        if previous is None:
            self._sorted = None
        self.objects[key] = stored
        self._record(TableChange(stored, previous, deleted=False))

    def remove(self, last: Stored) -> None:
        """Takes an object away; `last` is its last state under the version of the deletion."""
        previous = self.objects.pop(last.key)
        self._sorted = None
        self._record(TableChange(last, previous, deleted=True))

    def in_order(self) -> list[Stored]:
        """All objects by namespace and name, as lists give them."""
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        return [self.objects[key] for key in self._sorted]

    def at(self, version: int) -> Iterable[Stored]:
        """The objects in order as they were at a version that is not below the floor."""
        start = self.position_after(version)
        if start == len(self.history):
            return self.in_order()
        past: dict[Key, Stored] = dict(self.objects)
        for change in reversed(self.history[start:]):
            if change.previous is None:
                del past[change.stored.key]
            else:
                past[change.stored.key] = change.previous
        return [past[key] for key in sorted(past)]

    def position_after(self, version: int) -> int:
        """Where the changes after a version begin in `history`."""
        if not self.history or self.history[-1].version <= version:
            return len(self.history)
        return bisect_right(self.history, version, key=lambda change: change.version)

    def forget(self, version: int) -> None:
        """Drops the changes up to a version."""
        self._drop(self.position_after(version))
        self.floor = max(self.floor, version)

    def notify(self) -> None:
        """Tells the listeners that there is something new to take."""
        for listener in tuple(self.listeners):
            listener.changed()

    def newest(self) -> int:
        """The version of the last change still known, else the floor."""
        return self.history[-1].version if self.history else self.floor

    def take_back(self, version: int) -> None:
        """Undoes the changes after a version, which no client has seen."""
        start = self.position_after(version)
        for change in reversed(self.history[start:]):
            if change.previous is None:
                del self.objects[change.stored.key]
            else:
                self.objects[change.stored.key] = change.previous
        del self.history[start:]
        self._sorted = None
        for listener in tuple(self.listeners):
            listener.taken_back(version)

    def _record(self, change: TableChange) -> None:
        self.history.append(change)
        # In batches, so that the cost of moving the rest is spread over many changes.
        if len(self.history) > self._limit + self._limit // 4:
            self._drop(len(self.history) - self._limit)

    def _drop(self, count: int) -> None:
        if count:
            self.floor = max(self.floor, self.history[count - 1].version)
            self.dropped += count
            del self.history[:count]
