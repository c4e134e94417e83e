"""The files of a record: lines, compressed where the name ends in .gz, in parts where they are to be rotated.

What was flushed survives the end of the process: of a file that was never closed everything up to the last
flush can be read. What the lines say is for `sim.records`, when to flush and to rotate for `recording`.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from mooring.api.errors import MooringError

ENDINGS = (".jsonl", ".jsonl.gz")
LEVEL = 6
_GZIP = 31
"""zlib's window bits for a file with gzip's header."""


class RecordFile:
    """One file, from its first line to its end. A MooringError names the file when it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        """Bytes in the file."""
        self._packed = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP) if path.suffix == ".gz" else None
        self._waiting: list[bytes] = []
        try:
            self._file = path.open("xb")
        except FileExistsError as error:
            raise MooringError(
                f"the record {path} is there already: name another file, or move it"
            ) from error
        except OSError as error:
            raise self._failed(error) from error

    def add(self, line: bytes) -> None:
        """Keep a line for the next flush. Cannot fail."""
        self._waiting.append(line if self._packed is None else self._packed.compress(line))

    def flush(self) -> None:
        """Everything added so far is in the file."""
        if self._packed is not None and self._waiting:
            self._waiting.append(self._packed.flush(zlib.Z_SYNC_FLUSH))
        self._write()

    def close(self) -> None:
        if self._packed is not None and not self._file.closed:
            self._waiting.append(self._packed.flush())
        try:
            self._write()
        finally:
            self._file.close()

    def _write(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        if not data:
            return
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from error
        self.size += len(data)

    def _failed(self, error: OSError) -> MooringError:
        return MooringError(f"the record {self.path} cannot be written: {error.strerror}")


def check_name(path: Path) -> None:
    """Readers know records by their names."""
    if not path.name.endswith(ENDINGS):
        raise MooringError(f"{path}: the name of a record ends in {' or '.join(ENDINGS)}")


def part(path: Path, number: int) -> Path:
    """`day.jsonl.gz` → `day-0001.jsonl.gz`."""
    stem = stem_of(path)
    return path.with_name(f"{stem}-{number:04d}{path.name.removeprefix(stem)}")


def stem_of(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")
