"""The files of a record: lines, compressed by the ending of the name, in parts where they are to be rotated;
and the snapshots beside them.

What was flushed survives the end of the process: of a file that was never closed everything up to the last
flush can be read. What the lines say is for `sim.records`, when to flush and to rotate for `recording`.
"""

from __future__ import annotations

import re
from pathlib import Path

from moorage.api.errors import MoorageError
from moorage.api.times import format_time, parse_time
from moorage.sim.compression import packing

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")


class RecordFile:
    """One file, from its first line to its end. A MoorageError names the file when it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        """Bytes in the file."""
        self._packing = packing(path)
        self._waiting: list[bytes] = []
        try:
            self._file = path.open("xb")
        except FileExistsError as error:
            raise MoorageError(
                f"the record {path} is there already: name another file, or move it"
            ) from error
        except OSError as error:
            raise self._failed(error) from error

    def add(self, line: bytes) -> None:
        """Keep a line for the next flush. Cannot fail."""
        self._waiting.append(self._packing.add(line))

    def flush(self) -> None:
        """Everything added so far is in the file."""
        if self._waiting:
            self._waiting.append(self._packing.flush())
        self._write()

    def close(self) -> None:
        if not self._file.closed:
            self._waiting.append(self._packing.finish())
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

    def _failed(self, error: OSError) -> MoorageError:
        return MoorageError(f"the record {self.path} cannot be written: {error.strerror}")


def check_name(path: Path) -> None:
    """Readers know records by their names. A package that is missing is named before anything is read."""
    if not path.name.endswith(ENDINGS):
        raise MoorageError(f"{path}: the name of a record ends in {', '.join(ENDINGS)}")
    packing(path)


def part(path: Path, number: int) -> Path:
    """`day.jsonl.gz` → `day-0001.jsonl.gz`."""
    stem = stem_of(path)
    return path.with_name(f"{stem}-{number:04d}{path.name.removeprefix(stem)}")


def stem_of(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".jsonl")


def snapshot_folder(path: Path) -> Path:
    """`day.jsonl.gz` → `day.snapshots`."""
    return path.with_name(f"{stem_of(path)}.snapshots")


def snapshot_file(path: Path, taken: float) -> Path:
    """Without colons, which some file systems do not take."""
    return snapshot_folder(path) / f"{format_time(taken, micro=True).replace(':', '-')}.json.gz"


def snapshot_before(path: Path, moment: float) -> tuple[float, Path] | None:
    """The newest snapshot of a record, or of the record of which it is a part, that is not later."""
    whole = path.with_name(re.sub(r"-\d{4}$", "", stem_of(path)) + ".jsonl")
    found = []
    for file in (*snapshot_folder(path).glob("*.json.gz"), *snapshot_folder(whole).glob("*.json.gz")):
        day, _, clock = file.name.removesuffix(".json.gz").partition("T")
        taken = parse_time(f"{day}T{clock.replace('-', ':')}")
        if taken is not None and taken <= moment:
            found.append((taken, file))
    return max(found, default=None)
