"""What is in a data directory, and how it is checked and read without changing a byte of it.

    moorage.db, -wal, -shm    SQLite in WAL mode
      resources               the kinds that objects belong to
      objects                 the newest state of each object; `id` is the version it was created under
      state                   one row: newest resourceVersion, number of objects, starts, checksums
    moorage.db-mark           how far the writes have come (`mark`): lost files and lost ends are noticed by it
    lock                      held by the process that uses the directory

Each object row carries a checksum of itself, and `state` the combination (xor) of all of them. A changed byte is found
in its row; a row that is lost, doubled or old is found in the combination. The database is opened for writing only
after everything in it has been read and checked: the files are first judged by their bytes, then read through a
connection that cannot write.

Damage in the middle of the write-ahead log SQLite takes for the end of the log. A log is a header and frames of one
page each; a frame that ends a transaction says so. Every frame carries the salts of its log and a checksum over all
frames before it. SQLite reads up to the first bad checksum and forgets the rest: right for a transaction that a power
cut tore, wrong for a flipped bit, behind which acknowledged transactions lie. With synchronous=FULL a transaction
begins only when the one before it is on disk. So behind a torn transaction there is nothing, and frames of this log
behind a *finished* transaction that is itself behind the bad frame are proof of damage.

Frames: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from operator import xor
from pathlib import Path

import msgspec

from moorage.api import resources
from moorage.api.errors import MoorageError
from moorage.api.former_name import FORMER_NAME, with_current_prefix
from moorage.api.resources import Resource
from moorage.embedded.durable import mark
from moorage.embedded.durable.mark import MarkDamaged
from moorage.store.objects import Raw

DATABASE = "moorage.db"
FORMER_DATABASE = f"{FORMER_NAME}.db"
LOCK = "lock"
APPLICATION_ID = 0x4D6F6F72
FORMAT = 1
"""Grows with every change of the tables that an older Moorage could not read."""
PAGE_SIZE = 4096

SCHEMA = f"""
PRAGMA page_size = {PAGE_SIZE};
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
PRAGMA journal_mode = WAL;
CREATE TABLE resources (
    id INTEGER PRIMARY KEY, grp TEXT NOT NULL, version TEXT NOT NULL, plural TEXT NOT NULL,
    kind TEXT NOT NULL, namespaced INTEGER NOT NULL);
CREATE TABLE objects (
    id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    body BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 0), version INTEGER NOT NULL, objects INTEGER NOT NULL,
    combined INTEGER NOT NULL, starts INTEGER NOT NULL, checksum INTEGER NOT NULL);
"""
_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)  # checksums over little-endian or big-endian words
_WAY_OUT = "restore the directory from a copy, or move it away to start with an empty one; nothing was changed"


class DataDirError(MoorageError):
    """A data directory cannot be used. The message names it, says why, and what to do."""


def row_checksum(resource: Resource, namespace: str, name: str, body: bytes) -> int:
    head = f"{resource.group}\0{resource.version}\0{resource.plural}\0{namespace}\0{name}\0"
    return _signed(blake2b(head.encode() + body, digest_size=8).digest())


def state_checksum(version: int, objects: int, combined: int, starts: int) -> int:
    return _signed(blake2b(f"{version} {objects} {combined} {starts}".encode(), digest_size=8).digest())


def _signed(digest: bytes) -> int:
    """SQLite's integers have a sign."""
    return int.from_bytes(digest, "big", signed=True)


def damaged_at(path: Path, page_size: int) -> int | None:
    """The number (from 1) of a bad frame that finished transactions follow, 0 for the header, else None."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(data) < _HEADER.size:
        return None
    magic, _, _, _, *salts, first, second = _HEADER.unpack_from(data)
    order = ">" if magic & 1 else "<"
    running = _checksum(data[:24], (0, 0), order)
    if magic not in _MAGIC or running != (first, second):
        return 0 if _finished_after(data, 0, page_size, None) > 1 else None
    for number, offset in _frames(data, page_size):
        _, _, *found, first, second = _FRAME.unpack_from(data, offset)
        body = data[offset + _FRAME.size : offset + _FRAME.size + page_size]
        running = _checksum(data[offset : offset + 8] + body, running, order)
        if found != salts or running != (first, second):
            return number if _finished_after(data, number, page_size, salts) > 1 else None
    return None


def _frames(data: bytes, page_size: int) -> Iterator[tuple[int, int]]:
    """Number (from 1) and offset of each whole frame."""
    size = _FRAME.size + page_size
    for number in range(1, (len(data) - _HEADER.size) // size + 1):
        yield number, _HEADER.size + (number - 1) * size


def _finished_after(data: bytes, bad: int, page_size: int, salts: list[int] | None) -> int:
    """How many transactions of this log end behind the bad frame, it included.

    Without the header's salts those of the first frame count. Frames of an earlier log, which the file may
    still end with, have other salts.
    """
    ends = 0
    for number, offset in _frames(data, page_size):
        _, pages_after_commit, *found, _, _ = _FRAME.unpack_from(data, offset)
        salts = salts or found
        if number >= bad and found == salts and pages_after_commit:
            ends += 1
    return ends


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    """SQLite's running checksum: two sums that feed each other, word by word."""
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


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


def take_over(directory: Path) -> None:
    """Rename a database that was made under the project's former name.

    The log goes first: after a crash in between, the next start still finds the database under its old name.
    """
    if (directory / DATABASE).exists():
        return
    for suffix in ("-wal", "-shm", mark.SUFFIX, ""):
        former = directory / f"{FORMER_DATABASE}{suffix}"
        if former.exists():
            former.rename(directory / f"{DATABASE}{suffix}")


def is_new(directory: Path) -> bool:
    """Whether there is no database yet. Raises DataDirError for a file that is not ours, and for a lost database."""
    path = directory / DATABASE
    if not path.exists() and (directory / FORMER_DATABASE).exists():
        path = directory / FORMER_DATABASE
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        _check_not_lost(directory)
        return True
    except OSError as error:
        raise DataDirError(f"{path} cannot be read: {error.strerror}; make it readable") from error
    if header[:16] != b"SQLite format 3\0" or len(header) < 100:
        raise DataDirError(f"{path} is not a database, or its header is lost; {_WAY_OUT}")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise DataDirError(f"{path} is a database of another program; choose another data directory")
    found = int.from_bytes(header[60:64], "big")
    if found > FORMAT:
        raise DataDirError(
            f"{path} was written by a newer Moorage (format {found}, this one knows {FORMAT}); "
            "use that version, or choose another data directory"
        )
    return False


def _check_not_lost(directory: Path) -> None:
    """Raise DataDirError if there is no database but files that belong to one."""
    for name in (DATABASE, FORMER_DATABASE):
        for suffix in ("-wal", mark.SUFFIX):
            rest = directory / f"{name}{suffix}"
            if rest.exists() and rest.stat().st_size:
                raise DataDirError(f"{directory / name} is missing, but {rest.name} is there; {_WAY_OUT}")


def _check_progress(path: Path, contents: Contents) -> None:
    """Raise DataDirError if the files lack writes that the mark knows of."""
    own = f"{path.name}{mark.SUFFIX}"
    try:
        marked = mark.read(path)
    except OSError as error:
        raise DataDirError(f"{path.with_name(own)} cannot be read: {error.strerror}; make it readable") from error
    except MarkDamaged:
        raise DataDirError(
            f"{path.with_name(own)} is damaged, so writes may be lost; restore the directory from a copy, or remove "
            f"{own} to go on with the data that is there; nothing was changed"
        ) from None
    if marked is None or (marked.version <= contents.version and marked.starts <= contents.starts):
        return
    log = f"{path.name}-wal"
    if marked.version > contents.version:
        lost = (
            f"writes up to resourceVersion {marked.version} were acknowledged, and the files end at {contents.version}"
        )
    else:
        lost = "its content is older than the last start"
    why = (
        f"the end of {log} is missing" if path.with_name(log).exists() else f"{log} is missing, or the database is old"
    )
    raise DataDirError(
        f"{path} is damaged: {lost}: {why}; restore the directory from a copy, or remove {own} to go on with the older "
        "data; nothing was changed"
    )


def read(directory: Path) -> Contents:
    """Everything, checked. Raises DataDirError when something is not as it was written."""
    path = directory / DATABASE
    log = path.with_name(f"{DATABASE}-wal")
    frame = damaged_at(log, PAGE_SIZE)
    if frame is not None:
        where = f"frame {frame}" if frame else "its header"
        raise _damaged(path, f"the log {DATABASE}-wal is broken at {where}, with finished writes after it")
    # Without a log SQLite would make an empty one; "immutable" keeps it from that, our lock makes it true.
    mode = "mode=ro" if log.exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
            contents = _contents(path, connection)
    except sqlite3.Error as error:
        raise _damaged(path, f"SQLite says: {error}") from error
    _check_progress(path, contents)
    return contents


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
        raise _damaged(path, f"{count} objects were written and {len(contents.rows)} found, or old ones among them")
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
        yield Row(number, resource, msgspec.json.decode(with_current_prefix(body)), checksum)


def _damaged(path: Path, why: str) -> DataDirError:
    return DataDirError(f"{path} is damaged: {why}; {_WAY_OUT}")
