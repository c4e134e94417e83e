"""Damage in the middle of SQLite's write-ahead log, which SQLite itself takes for the end of the log.

A log is a header and frames of one page each; a frame that ends a transaction says so. Every frame carries
the salts of its log and a checksum over all frames before it. SQLite reads up to the first bad checksum and
forgets the rest: right for a transaction that a power cut tore, wrong for a flipped bit, behind which
acknowledged transactions lie. With synchronous=FULL a transaction begins only when the one before it is on
disk. So behind a torn transaction there is nothing, and frames of this log behind a *finished* transaction
that is itself behind the bad frame are proof of damage.

Frames: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)  # checksums over little-endian or big-endian words


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
