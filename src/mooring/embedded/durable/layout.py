"""What is in a data directory: file names, tables, and the checksums that tie them together.

    mooring.db, -wal, -shm    SQLite in WAL mode
      resources               the kinds that objects belong to
      objects                 the newest state of each object; `id` is the version it was created under
      state                   one row: newest resourceVersion, number of objects, starts, checksums
    lock                      held by the process that uses the directory

Each object row carries a checksum of itself, and `state` the combination (xor) of all of them. A changed byte
is found in its row; a row that is lost, doubled or old is found in the combination.
"""

from __future__ import annotations

from hashlib import blake2b

from mooring.api.errors import MooringError
from mooring.api.resources import Resource

DATABASE = "mooring.db"
LOCK = "lock"
APPLICATION_ID = 0x4D6F6F72
FORMAT = 1
"""Grows with every change of the tables that an older Mooring could not read."""
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


class DataDirError(MooringError):
    """A data directory cannot be used. The message names it, says why, and what to do."""


def row_checksum(resource: Resource, namespace: str, name: str, body: bytes) -> int:
    head = f"{resource.group}\0{resource.version}\0{resource.plural}\0{namespace}\0{name}\0"
    return _signed(blake2b(head.encode() + body, digest_size=8).digest())


def state_checksum(version: int, objects: int, combined: int, starts: int) -> int:
    return _signed(blake2b(f"{version} {objects} {combined} {starts}".encode(), digest_size=8).digest())


def _signed(digest: bytes) -> int:
    """SQLite's integers have a sign."""
    return int.from_bytes(digest, "big", signed=True)
