"""The files of a recording: compressed lines, split into parts if rotated, and the snapshots beside them.

The suffix of the name decides the compression for writing, the content for reading: gzip or, if the package
`zstandard` is installed, Zstandard. Concatenated files are read as one. Flushed data survives a killed
process: a truncated file is read up to its end, and then an EOFError is raised. `recordings` reads the lines;
`recorder` decides when to flush and to rotate.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from moorage.api import private_files
from moorage.api.errors import MoorageError
from moorage.api.times import format_time, parse_time

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")


class RecordingFile:
    """A file that is being written. A MoorageError names the file if it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        """Bytes in the file."""
        self._packing = packing(path)
        self._waiting: list[bytes] = []
        try:
            self._file = os.fdopen(private_files.create(path), "wb")
        except FileExistsError as error:
            raise MoorageError(f"The recording {path} already exists. Use another name, or move the file.") from error
        except OSError as error:
            raise self._failed(error) from error

    def add(self, line: bytes) -> None:
        """Keep a line for the next flush. This cannot fail."""
        self._waiting.append(self._packing.add(line))

    def flush(self) -> None:
        """Write everything that was added so far."""
        if self._waiting:
            self._waiting.append(self._packing.flush())
        self._write()

    def close(self) -> None:
        """Write the rest and close the file."""
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
        return MoorageError(f"Cannot write the recording {self.path}: {error.strerror}.")


def check_name(path: Path) -> None:
    """Raise if the name does not end like a recording, or if the package for its compression is missing."""
    if not path.name.endswith(ENDINGS):
        raise MoorageError(f"{path}: the name of a recording must end in {', '.join(ENDINGS)}.")
    packing(path)


def part(path: Path, number: int) -> Path:
    """Return the name of a part: `day.jsonl.gz` → `day-0001.jsonl.gz`."""
    stem = stem_of(path)
    return path.with_name(f"{stem}-{number:04d}{path.name.removeprefix(stem)}")


def stem_of(path: Path) -> str:
    """Return the name without its suffixes."""
    return path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".jsonl")


def snapshot_folder(path: Path) -> Path:
    """Return the folder for snapshots: `day.jsonl.gz` → `day.snapshots`."""
    return path.with_name(f"{stem_of(path)}.snapshots")


def snapshot_file(path: Path, taken: float) -> Path:
    """Return the name of a snapshot, without colons, which some file systems do not allow."""
    return snapshot_folder(path) / f"{format_time(taken, micro=True).replace(':', '-')}.json.gz"


def snapshot_before(path: Path, moment: float) -> tuple[float, Path] | None:
    """Return the newest snapshot of a recording, or of the recording it is a part of, up to this moment."""
    whole = path.with_name(re.sub(r"-\d{4}$", "", stem_of(path)) + ".jsonl")
    found = []
    for file in (*snapshot_folder(path).glob("*.json.gz"), *snapshot_folder(whole).glob("*.json.gz")):
        day, _, clock = file.name.removesuffix(".json.gz").partition("T")
        taken = parse_time(f"{day}T{clock.replace('-', ':')}")
        if taken is not None and taken <= moment:
            found.append((taken, file))
    return max(found, default=None)


GZIP_LEVEL, ZSTANDARD_LEVEL = 6, 3
CHUNK = 1 << 17
MAX_LINE = 64 << 20
"""Bytes of a line that is read. The API server accepts objects of 3 MiB."""
_PACKED_CHUNK = 1 << 10
"""Bytes of Zstandard that are unpacked at once. A block of 128 KiB may take four of them."""
_GZIP_WINDOW = 31
"""zlib's window bits for a file with a gzip header."""
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""The first bytes of compressed files."""


@dataclass(frozen=True, slots=True)
class Compressor:
    """Compresses bytes on their way into a file. Each function returns the bytes that are ready."""

    add: Callable[[bytes], bytes]
    flush: Callable[[], bytes]
    """Makes everything so far readable."""
    finish: Callable[[], bytes]


def packing(path: Path) -> Compressor:
    """Return the compressor for the suffix of the name."""
    if path.suffix == ".gz":
        gzipped = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        return Compressor(gzipped.compress, lambda: gzipped.flush(zlib.Z_SYNC_FLUSH), gzipped.flush)
    if path.suffix == ".zst":
        zstandard = _zstandard(path)
        packed = zstandard.ZstdCompressor(level=ZSTANDARD_LEVEL).compressobj()
        block = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        return Compressor(packed.compress, lambda: packed.flush(block), packed.flush)
    return Compressor(lambda data: data, bytes, bytes)


def opened(path: Path) -> io.BufferedReader:
    """Open a file for reading, compressed or not."""
    with path.open("rb") as start:
        begins = start.read(4)
    if begins.startswith(_GZIP):
        return cast(io.BufferedReader, gzip.open(path, "rb"))
    if begins == _ZSTANDARD:
        return io.BufferedReader(_Chunks(_unpacked(path, _zstandard(path))), CHUNK)
    return path.open("rb")


def _unpacked(path: Path, zstandard: Any) -> Iterator[bytes]:
    unpacking = None
    with path.open("rb") as file:
        while data := file.read(_PACKED_CHUNK):
            while data:
                if unpacking is None or unpacking.eof:
                    unpacking = zstandard.ZstdDecompressor().decompressobj()
                try:
                    yield unpacking.decompress(data)
                except zstandard.ZstdError as error:
                    raise EOFError(str(error)) from error
                data = unpacking.unused_data
    if unpacking is not None and not unpacking.eof:
        raise EOFError("the end is missing")


class _Chunks(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _zstandard(path: Path) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MoorageError(
            f"{path}: Zstandard is not installed. Install moorage[sim], or use a name that ends in .gz."
        ) from error
    return zstandard
