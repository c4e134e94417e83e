"""A data directory is looked at, and loaded, without changing a byte of it.

The database is opened for writing only after everything in it has been read and checked: the files are first
judged by their bytes, then read through a connection that cannot write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from pathlib import Path

import msgspec

from mooring.api import resources
from mooring.api.resources import Resource
from mooring.embedded.durable import wal
from mooring.embedded.durable.layout import (
    APPLICATION_ID,
    DATABASE,
    FORMAT,
    PAGE_SIZE,
    DataDirError,
    row_checksum,
    state_checksum,
)
from mooring.store.objects import Raw

_WAY_OUT = (
    "restore the directory from a copy, or move it away to start with an empty one; nothing was changed"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One object as it is on disk."""

    id: int
    resource: Resource
    raw: Raw
    checksum: int


@dataclass(slots=True)
class Contents:
    """All that a data directory holds."""

    version: int = 1
    starts: int = 0
    resources: dict[int, Resource] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)


def is_new(directory: Path) -> bool:
    """Whether there is no database yet. Raises DataDirError for what is none of ours."""
    path = directory / DATABASE
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise DataDirError(f"{path} cannot be read: {error.strerror}; make it readable") from error
    if header[:16] != b"SQLite format 3\0" or len(header) < 100:
        raise DataDirError(f"{path} is no database, or its beginning is lost; {_WAY_OUT}")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise DataDirError(f"{path} is a database of another program; name another data directory")
    found = int.from_bytes(header[60:64], "big")
    if found > FORMAT:
        raise DataDirError(
            f"{path} was written by a newer Mooring (format {found}, this one knows {FORMAT}); "
            "use that version, or name another data directory"
        )
    return False


def read(directory: Path) -> Contents:
    """Everything, checked. Raises DataDirError when something is not as it was written."""
    path = directory / DATABASE
    log = path.with_name(f"{DATABASE}-wal")
    frame = wal.damaged_at(log, PAGE_SIZE)
    if frame is not None:
        where = f"frame {frame}" if frame else "its header"
        raise _damaged(path, f"the log {DATABASE}-wal is broken at {where}, with finished writes after it")
    # Without a log SQLite would make an empty one; "immutable" keeps it from that, our lock makes it true.
    mode = "mode=ro" if log.exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
            return _contents(path, connection)
    except sqlite3.Error as error:
        raise _damaged(path, f"SQLite says: {error}") from error


def _contents(path: Path, connection: sqlite3.Connection) -> Contents:
    state = connection.execute("SELECT version, objects, combined, starts, checksum FROM state").fetchone()
    if state is None:
        raise _damaged(path, "it has lost its state")
    version, count, combined, starts, checksum = state
    if checksum != state_checksum(version, count, combined, starts):
        raise _damaged(path, "the checksum of its state is wrong")
    contents = Contents(version, starts, dict(_resources(connection)))
    contents.rows = list(_rows(path, connection, contents.resources))
    found = reduce(xor, (row.checksum for row in contents.rows), 0)
    if (len(contents.rows), found) != (count, combined):
        raise _damaged(
            path, f"{count} objects were written and {len(contents.rows)} found, or old ones among them"
        )
    return contents


def _resources(connection: sqlite3.Connection) -> Iterator[tuple[int, Resource]]:
    query = "SELECT id, grp, version, plural, kind, namespaced FROM resources"
    for number, group, version, plural, kind, namespaced in connection.execute(query):
        known = resources.by_plural(plural, group)
        if known is None or known.version != version:
            known = resources.custom(group, version, plural, kind, bool(namespaced))
        yield number, known


def _rows(path: Path, connection: sqlite3.Connection, kinds: dict[int, Resource]) -> Iterator[Row]:
    query = "SELECT id, resource, namespace, name, body, checksum FROM objects"
    for number, kind, namespace, name, body, checksum in connection.execute(query):
        resource = kinds.get(kind)
        if resource is None:
            raise _damaged(path, f"an object ({namespace}/{name}) is of a kind that it has lost")
        if row_checksum(resource, namespace, name, body) != checksum:
            raise _damaged(path, f"the checksum of {resource.kind} {namespace}/{name} is wrong")
        yield Row(number, resource, msgspec.json.decode(body), checksum)


def _damaged(path: Path, why: str) -> DataDirError:
    return DataDirError(f"{path} is damaged: {why}; {_WAY_OUT}")
