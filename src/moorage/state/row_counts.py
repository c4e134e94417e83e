"""An integer per row: a dict while few rows have one, then an array of floats.

Most selectors match pods on a handful of nodes, and thousands of selectors are kept. An array for each would
take 100 MB with 5,000 nodes, but a selector that matches everywhere would be slow as a dict. The array holds
floats because `bincount` would convert integers on every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from weakref import ref

import numpy as np

from moorage.framework.indexes import Topology
from moorage.framework.nodes import BoolArray, FloatArray, IntArray

_MIN_ROWS = 32
"""Up to this many rows stay a dict, even in the smallest table."""
_ARRAY_SHARE = 32
"""If more than one in this many rows has a number, an array is faster."""
_MAX_LOG_ENTRIES = 128
"""Number of changes that are logged row by row."""
_MAX_KEPT_DOMAINS = 64
"""Sums over up to this many domains are kept for the next call."""
_MAX_SINGLE_ROWS = 8
"""Up to this many rows are faster to add one by one."""
_ENTRY_BYTES = 96
"""Approximate size of a dict entry."""


class RowTable(Protocol):
    """An object with rows: the node table."""

    @property
    def width(self) -> int: ...


class RowCounts:
    """Row → number, 0 for most rows. Never negative when used as a count."""

    __slots__ = ("_few", "_log", "_many", "_sums", "_table", "version")

    def __init__(self, table: RowTable) -> None:
        self._table = table
        self._few: dict[int, int] = {}
        """Row → number other than 0, while `_many` is None."""
        self._many: FloatArray | None = None
        self.version = 0
        """Grows with every change."""
        self._log: list[int] | None = None
        """The rows of the latest changes, one per version. Kept from the first call of `changed_since`."""
        self._sums: tuple[ref[Topology], FloatArray] | None = None
        """The sums per bin of the topology used last, if it has few domains. A weak reference, so that
        thousands of counts do not keep old topologies alive."""

    @property
    def empty(self) -> bool:
        return not self._few if self._many is None else not self._many.any()

    @property
    def nbytes(self) -> int:
        return _ENTRY_BYTES * len(self._few) if self._many is None else self._many.nbytes

    @property
    def per_row(self) -> FloatArray:
        """The numbers of all rows of the table."""
        width = self._table.width
        if self._many is not None:
            return self._array(width)
        column = np.zeros(width)
        rows, numbers = self._entries()
        column[rows] = numbers
        return column

    def few(self) -> Mapping[int, int] | None:
        """Return the rows with a number other than 0, read-only, or None if there are many."""
        return self._few if self._many is None else None

    def number(self, row: int) -> int:
        """Return the number of one row."""
        many = self._many
        if many is None:
            return self._few.get(row, 0)
        return int(many[row]) if row < len(many) else 0

    def changed_since(self, version: int) -> list[int] | None:
        """Return the rows that changed after that version, possibly repeated, or None if unknown."""
        if self._log is None:
            self._log = []
        changes = self.version - version
        if changes > len(self._log):
            return None
        return self._log[len(self._log) - changes :] if changes else []

    def add(self, row: int, number: int) -> None:
        self.version += 1
        if self._log is not None:
            self._log.append(row)
            if len(self._log) > _MAX_LOG_ENTRIES:
                del self._log[: _MAX_LOG_ENTRIES // 2]
        if self._sums is not None:
            self._add_to_sums(row, number)
        if self._many is not None:
            self._array(row + 1)[row] += number
            return
        total = self._few.get(row, 0) + number
        if total:
            self._few[row] = total
            if len(self._few) > self._max_dict_rows():
                self._convert_to_array()
        else:
            self._few.pop(row, None)

    def add_all(self, numbers: Mapping[int, int], sign: int = 1) -> None:
        """Add to many rows at once."""
        many = self._many is not None or len(numbers) > self._max_dict_rows()
        if not many or len(numbers) <= _MIN_ROWS:
            for row, number in numbers.items():
                self.add(row, sign * number)
            return
        self.version += 1
        self._log = self._sums = None  # too many rows to log
        if self._many is None:
            self._convert_to_array()
        rows = np.fromiter(numbers.keys(), dtype=np.int64, count=len(numbers))
        amounts = np.fromiter(numbers.values(), dtype=np.int64, count=len(numbers))
        self._array(int(rows.max()) + 1)[rows] += sign * amounts

    def sums(self, topology: Topology, where: BoolArray | None = None) -> FloatArray:
        """Return a new array with the sum per domain, over the rows where `where` is true."""
        if where is not None or topology.size > _MAX_KEPT_DOMAINS:
            return self._sums_per_domain(topology, where)
        if self._sums is None or self._sums[0]() is not topology:
            self._sums = ref(topology), self._sums_per_bin(topology)
        return self._sums[1][1:].copy()

    def _sums_per_bin(self, topology: Topology) -> FloatArray:
        """Return the sums per bin. The first entry is for rows without the label."""
        sums = np.zeros(topology.size + 1)
        if self._many is None and len(self._few) <= _MAX_SINGLE_ROWS:
            for row, number in self._few.items():
                sums[topology.bins[row]] += number
        else:
            sums[1:] = self._sums_per_domain(topology, None)
        return sums

    def _sums_per_domain(self, topology: Topology, where: BoolArray | None) -> FloatArray:
        if self._many is not None:
            column = self._array(self._table.width)
            return topology.sums(column if where is None else column * where)
        rows, numbers = self._entries()
        weights = numbers if where is None else numbers * where[rows]
        return topology.sums_of(rows, weights)

    def _add_to_sums(self, row: int, number: int) -> None:
        assert self._sums is not None
        topology, sums = self._sums[0](), self._sums[1]
        if topology is not None and row < len(topology.bins):
            sums[topology.bins[row]] += number
        else:
            self._sums = None  # nodes have changed, and with them the topology

    def as_dict(self) -> dict[int, int]:
        """Return the rows with a number other than 0. For checks."""
        if self._many is None:
            return dict(self._few)
        return {row: int(self._many[row]) for row in np.flatnonzero(self._many).tolist()}

    def _max_dict_rows(self) -> int:
        """Return the number of rows up to which a dict is better."""
        return max(_MIN_ROWS, self._table.width // _ARRAY_SHARE)

    def _entries(self) -> tuple[IntArray, IntArray]:
        count = len(self._few)
        rows = np.fromiter(self._few.keys(), dtype=np.int64, count=count)
        return rows, np.fromiter(self._few.values(), dtype=np.int64, count=count)

    def _convert_to_array(self) -> None:
        self._many = self.per_row
        self._few = {}

    def _array(self, width: int) -> FloatArray:
        """Return the array, extended to at least this width. It grows with the table, not with every row."""
        assert self._many is not None
        short = max(width, self._table.width) - len(self._many)
        if short > 0:
            self._many = np.concatenate([self._many, np.zeros(short)])
        return self._many
