"""Compressed files of lines: gzip, and Zstandard where the package `zstandard` is installed.

Written by the ending of the name, read by what is in the file. Several files joined to one are read as one. A
file that is cut off is read up to there, then an EOFError says so.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from moorage.api.errors import MoorageError

GZIP_LEVEL, ZSTANDARD_LEVEL = 6, 3
CHUNK = 1 << 17
_GZIP_WINDOW = 31
"""zlib's window bits for a file with gzip's header."""
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""What files begin with."""


@dataclass(frozen=True, slots=True)
class Packing:
    """What becomes of bytes on their way into a file; each function gives those that are ready."""

    add: Callable[[bytes], bytes]
    flush: Callable[[], bytes]
    """After it everything so far can be read."""
    finish: Callable[[], bytes]


def packing(path: Path) -> Packing:
    """By the ending of the name."""
    if path.suffix == ".gz":
        gzipped = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        return Packing(gzipped.compress, lambda: gzipped.flush(zlib.Z_SYNC_FLUSH), gzipped.flush)
    if path.suffix == ".zst":
        zstandard = _zstandard(path)
        packed = zstandard.ZstdCompressor(level=ZSTANDARD_LEVEL).compressobj()
        block = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        return Packing(packed.compress, lambda: packed.flush(block), packed.flush)
    return Packing(lambda data: data, bytes, bytes)


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
