"""A small file beside the database that says how far its writes have come.

SQLite opens what it finds: if its log is missing or has lost its end, it takes the older data for the newest. The mark
names the newest resourceVersion and the number of starts that are on disk, and is written after them. So it is never
ahead of whole files, however the process or the machine ends, and if it is ahead, acknowledged writes are lost. It is
overwritten in place, in one sector, and not synced: after a power cut it may be behind, which only makes it weaker.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from moorage.api import private_files

SUFFIX = "-mark"
_SIZE = 64


class MarkDamaged(Exception):
    """The content of the file was not written by Moorage, or was changed."""


class DiskProgress(NamedTuple):
    """What is on disk."""

    version: int = 0
    starts: int = 0


def read(path: Path) -> DiskProgress | None:
    """Return what the mark of a database says; None if it is missing or empty. Raises OSError and MarkDamaged."""
    try:
        with path.with_name(f"{path.name}{SUFFIX}").open("rb") as file:
            data = file.read(_SIZE)
    except FileNotFoundError:
        return None
    if not data.strip(b"\0"):
        return None
    parts = data.split()
    if len(parts) != 3 or not all(part.isdigit() for part in parts[:2]):
        raise MarkDamaged
    progress = DiskProgress(int(parts[0]), int(parts[1]))
    if data != _line(progress):
        raise MarkDamaged
    return progress


class Mark:
    """The mark of an open database. Raises OSError."""

    def __init__(self, path: Path) -> None:
        own = path.with_name(f"{path.name}{SUFFIX}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._handle = os.open(own, flags, private_files.FILE)

    def write(self, progress: DiskProgress) -> None:
        os.pwrite(self._handle, _line(progress), 0)

    def close(self) -> None:
        os.close(self._handle)


def _line(progress: DiskProgress) -> bytes:
    text = f"{progress.version} {progress.starts}"
    return f"{text} {blake2b(text.encode(), digest_size=8).hexdigest()}".ljust(_SIZE - 1).encode() + b"\n"
