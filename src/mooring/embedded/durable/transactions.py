"""One batch of changes as one transaction. Used by one thread at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from mooring.api.resources import Resource
from mooring.embedded.durable.layout import row_checksum, state_checksum
from mooring.embedded.durable.reading import Contents
from mooring.store.objects import Stored, key_of

Change: TypeAlias = tuple[Stored, bool]
"""A new state, and whether the object is gone with it."""
_Name: TypeAlias = tuple[int, str, str]
"""Number of the kind, namespace, name."""
_Place: TypeAlias = tuple[int, int]
"""Row and checksum of an object."""

_PUT = (
    "INSERT OR REPLACE INTO objects (id, resource, namespace, name, body, checksum) VALUES (?, ?, ?, ?, ?, ?)"
)
_STATE = "UPDATE state SET version = ?, objects = ?, combined = ?, starts = ?, checksum = ?"
_KIND = "INSERT INTO resources (id, grp, version, plural, kind, namespaced) VALUES (?, ?, ?, ?, ?, ?)"


class Database:
    """The connection that writes, and where each object is in the database."""

    def __init__(self, path: Path, contents: Contents, *, synchronous: str = "FULL") -> None:
        self.path = path
        self._starts = contents.starts
        self._version = contents.version
        self._combined = 0
        self._kinds = {(r.group, r.plural): number for number, r in contents.resources.items()}
        self._places: dict[_Name, _Place] = {}
        for row in contents.rows:
            self._places[self._name(row.resource, *key_of(row.raw))] = (row.id, row.checksum)
            self._combined ^= row.checksum
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute(f"PRAGMA synchronous = {synchronous}")

    def begin_start(self) -> int:
        """Counts this start of the database and gives its number."""
        self._starts += 1
        self._connection.execute("BEGIN IMMEDIATE")
        self._write_state(self._version, len(self._places), self._combined)
        self._connection.execute("COMMIT")
        return self._starts

    def write(self, batch: list[Change]) -> None:
        """All or nothing; an sqlite3.Error leaves everything as it was."""
        newest = {
            (stored.resource.group, stored.resource.plural, stored.key): (stored, gone)
            for stored, gone in batch
        }
        connection = self._connection
        kinds = dict(self._kinds)
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._add_kinds(stored.resource for stored, _ in newest.values())
            changed = self._write_objects(newest.values())
            combined, count = self._sums(changed)
            version = batch[-1][0].version
            self._write_state(version, count, combined)
            connection.execute("COMMIT")
        except BaseException:
            self._kinds = kinds
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._version, self._combined = version, combined
        for name, place in changed.items():
            if place is None:
                self._places.pop(name, None)
            else:
                self._places[name] = place

    def close(self) -> None:
        """Moves the log into the database and closes it."""
        self._connection.close()

    def _name(self, resource: Resource, namespace: str, name: str) -> _Name:
        return self._kinds[resource.group, resource.plural], namespace, name

    def _add_kinds(self, found: Iterable[Resource]) -> None:
        for resource in found:
            key = (resource.group, resource.plural)
            if key not in self._kinds:
                number = self._kinds[key] = len(self._kinds)
                row = (
                    number,
                    resource.group,
                    resource.version,
                    resource.plural,
                    resource.kind,
                    resource.namespaced,
                )
                self._connection.execute(_KIND, row)

    def _write_objects(self, changes: Iterable[Change]) -> dict[_Name, _Place | None]:
        changed: dict[_Name, _Place | None] = {}
        put: list[tuple[int, int, str, str, bytes, int]] = []
        gone: list[tuple[int]] = []
        for stored, deleted in changes:
            name = self._name(stored.resource, *stored.key)
            known = self._places.get(name)
            if deleted:
                changed[name] = None
                if known is not None:
                    gone.append((known[0],))
                continue
            row, body = (known[0] if known is not None else stored.version), stored.encoded
            checksum = row_checksum(stored.resource, name[1], name[2], body)
            changed[name] = (row, checksum)
            put.append((row, *name, body, checksum))
        self._connection.executemany(_PUT, put)
        self._connection.executemany("DELETE FROM objects WHERE id = ?", gone)
        return changed

    def _sums(self, changed: dict[_Name, _Place | None]) -> tuple[int, int]:
        combined, count = self._combined, len(self._places)
        for name, place in changed.items():
            known = self._places.get(name)
            if known is not None:
                combined, count = combined ^ known[1], count - 1
            if place is not None:
                combined, count = combined ^ place[1], count + 1
        return combined, count

    def _write_state(self, version: int, count: int, combined: int) -> None:
        checksum = state_checksum(version, count, combined, self._starts)
        self._connection.execute(_STATE, (version, count, combined, self._starts, checksum))
