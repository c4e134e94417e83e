"""The files of a record: lines, compressed by the ending of the name, in parts where they are to be rotated;
and the snapshots beside them.

What was flushed survives the end of the process: of a file that was never closed everything up to the last
flush can be read. What the lines say is for `sim.records`, when to flush and to rotate for `recording`.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from moorage.api.errors import MoorageError
from moorage.api.times import format_time, parse_time

ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")


class RecordingFile:
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


GZIP_LEVEL, ZSTANDARD_LEVEL = 6, 3
CHUNK = 1 << 17
_GZIP_WINDOW = 31
"""zlib's window bits for a file with gzip's header."""
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""What files begin with."""


@dataclass(frozen=True, slots=True)
class Compressor:
    """What becomes of bytes on their way into a file; each function gives those that are ready."""

    add: Callable[[bytes], bytes]
    flush: Callable[[], bytes]
    """After it everything so far can be read."""
    finish: Callable[[], bytes]


def packing(path: Path) -> Compressor:
    """By the ending of the name."""
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
    """The bytes of a file, compressed or not."""
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
        while data := file.read(CHUNK):
            while data:
                if unpacking is None or unpacking.eof:
                    unpacking = zstandard.ZstdDecompressor().decompressobj()
                try:
                    yield unpacking.decompress(data)
                except zstandard.ZstdError as error:
                    raise EOFError(str(error)) from error
                data = unpacking.unused_data
    if unpacking is not None and not unpacking.eof:
        raise EOFError("its end is missing")


class _Chunks(io.RawIOBase):
    """Bytes that come in pieces, as a file."""

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
            f"{path}: Zstandard needs a package: install moorage[sim], or use a file that ends in .gz"
        ) from error
    return zstandard
