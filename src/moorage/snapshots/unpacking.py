"""Files of clusters within a limit: a small compressed file may unpack to more than the memory of the machine."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, AnyStr

from moorage.api.errors import MoorageError

MAX_BYTES = 1 << 30
VARIABLE = "MOORAGE_MAX_SNAPSHOT_BYTES"
"""The environment variable that replaces MAX_BYTES."""
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""The first bytes of compressed files."""


class LineTooLong(MoorageError):
    """A line exceeds a limit."""


def limit() -> int:
    """Return the number of bytes that a snapshot may have when it is unpacked."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return MAX_BYTES
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text)):
        raise MoorageError(f"{VARIABLE} is {text!r}; expected a number of bytes greater than 0")
    return int(text)


def read_file(path: Path) -> bytes:
    """Return the bytes of a snapshot, still packed."""
    most = limit()
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise MoorageError(f"the snapshot {path} cannot be read: {error.strerror or error}") from error
    if len(data) > most:
        raise MoorageError(f"the snapshot {path} has more than {most} bytes; {_way_out()}")
    return data


def unpacked(source: str, data: bytes, max_bytes: int | None = None, way_out: str = "") -> bytes:
    """Return the text of a file that may be compressed, and stop at the limit. `source` is its name in messages."""
    if data.startswith(ZSTANDARD):
        raise MoorageError(
            f"{source} is compressed with Zstandard; snapshots are read as JSON, YAML or gzip: unpack it"
        )
    if not data.startswith(GZIP):
        return data
    most = limit() if max_bytes is None else max_bytes
    try:
        with gzip.open(io.BytesIO(data)) as file:
            found = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise MoorageError(f"{source} cannot be read: {error}") from error
    if len(found) > most:
        raise MoorageError(f"{source} unpacks to more than {most} bytes; {way_out or _way_out()}")
    return found


def lines(file: IO[AnyStr], source: str, max_length: int) -> Iterator[AnyStr]:
    """Yield the lines of a file. Raises LineTooLong before more of a line is read."""
    number = 0
    while line := file.readline(max_length + 1):
        number += 1
        if len(line) > max_length:
            raise LineTooLong(f"{source}, line {number} is longer than {max_length} bytes")
        yield line


def _way_out() -> str:
    return f"if it is yours, set {VARIABLE} to a larger number of bytes"
