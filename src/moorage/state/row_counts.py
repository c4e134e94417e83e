"""A whole number per row: a dict while few rows have one, an array of floats from then on.

Most selectors match pods on a handful of nodes, and thousands of selectors are remembered, so an array each
would cost 100 MB at 5,000 nodes; a selector that matches everywhere would be slow as a dict. Floats, because
`bincount` would convert whole numbers each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from weakref import ref

import numpy as np

from moorage.framework.indexes import Topology
from moorage.framework.nodes import BoolArray, FloatArray, IntArray

_FEWEST = 32
"""So many rows stay a dict in the smallest table."""
_SHARE = 32
"""Beyond this part of all rows an array is faster."""
_LONGEST = 128
"""Changes that are kept row by row."""
_FEW_DOMAINS = 64
"""Sums of so many domains are kept from one question to the next."""
_HANDFUL = 8
"""Rows that are added up faster one by one."""
_ENTRY = 96
"""Bytes of an entry of the dict, about."""


class Wide(Protocol):
    """Something with rows: the table."""

    @property
    def width(self) -> int: ...


class RowCounts:
    """Row → number, 0 for most. Never negative when used as a count."""

    __slots__ = ("_few", "_log", "_many", "_sums", "_table", "version")

    def __init__(self, table: Wide) -> None:
        self._table = table
        self._few: dict[int, int] = {}
        """Row → number other than 0, while `_many` is None."""
        self._many: FloatArray | None = None
        self.version = 0
        """Grows with every change."""
        self._log: list[int] | None = None
        """The rows of the latest changes, one for each version; kept from the first question on."""
        self._sums: tuple[ref[Topology], FloatArray] | None = None
        """The sums per bin of the topology that was asked for last, if it has few domains. Thousands of
        counts must not keep as many old topologies alive."""

    @property
    def empty(self) -> bool:
        return not self._few if self._many is None else not self._many.any()

    @property
    def nbytes(self) -> int:
        return _ENTRY * len(self._few) if self._many is None else self._many.nbytes

    @property
    def per_row(self) -> FloatArray:
        """All rows of the table."""
        width = self._table.width
        if self._many is not None:
            return self._widened(width)
        column = np.zeros(width)
        rows, numbers = self._entries()
        column[rows] = numbers
        return column

    def few(self) -> Mapping[int, int] | None:
        """The rows with a number other than 0 and these numbers, not to be changed; None where they are
        many."""
        return self._few if self._many is None else None

    def number(self, row: int) -> int:
        """The number of one row."""
        many = self._many
        if many is None:
            return self._few.get(row, 0)
        return int(many[row]) if row < len(many) else 0

    def changed_since(self, version: int) -> list[int] | None:
        """The rows that changed after that version, some of them several times; None where that is not
        known."""
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
            if len(self._log) > _LONGEST:
                del self._log[: _LONGEST // 2]
        if self._sums is not None:
            self._add_to_sums(row, number)
        if self._many is not None:
            self._widened(row + 1)[row] += number
            return
        total = self._few.get(row, 0) + number
        if total:
            self._few[row] = total
            if len(self._few) > self._most():
                self._become_many()
        else:
            self._few.pop(row, None)

    def add_all(self, numbers: Mapping[int, int], sign: int = 1) -> None:
        """`add` for many rows at once."""
        many = self._many is not None or len(numbers) > self._most()
        if not many or len(numbers) <= _FEWEST:
            for row, number in numbers.items():
                self.add(row, sign * number)
            return
        self.version += 1
        self._log = self._sums = None  # too many rows to keep
        if self._many is None:
            self._become_many()
        rows = np.fromiter(numbers.keys(), dtype=np.int64, count=len(numbers))
        amounts = np.fromiter(numbers.values(), dtype=np.int64, count=len(numbers))
        self._widened(int(rows.max()) + 1)[rows] += sign * amounts

    def sums(self, topology: Topology, where: BoolArray | None = None) -> FloatArray:
        """Per domain of the topology, on the rows where `where` is true; whole numbers. The caller's own."""
        if where is not None or topology.size > _FEW_DOMAINS:
            return self._summed(topology, where)
        if self._sums is None or self._sums[0]() is not topology:
            self._sums = ref(topology), self._per_bin(topology)
        return self._sums[1][1:].copy()

    def _per_bin(self, topology: Topology) -> FloatArray:
        """The first entry is for rows without the label."""
        sums = np.zeros(topology.size + 1)
        if self._many is None and len(self._few) <= _HANDFUL:
            for row, number in self._few.items():
                sums[topology.bins[row]] += number
        else:
            sums[1:] = self._summed(topology, None)
        return sums

    def _summed(self, topology: Topology, where: BoolArray | None) -> FloatArray:
        if self._many is not None:
            column = self._widened(self._table.width)
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
        """Rows with a number other than 0; for checks."""
        if self._many is None:
            return dict(self._few)
        return {row: int(self._many[row]) for row in np.flatnonzero(self._many).tolist()}

    def _most(self) -> int:
        """The number of rows up to which a dict is better."""
        return max(_FEWEST, self._table.width // _SHARE)

    def _entries(self) -> tuple[IntArray, IntArray]:
        count = len(self._few)
        rows = np.fromiter(self._few.keys(), dtype=np.int64, count=count)
        return rows, np.fromiter(self._few.values(), dtype=np.int64, count=count)

    def _become_many(self) -> None:
        self._many = self.per_row
        self._few = {}

    def _widened(self, width: int) -> FloatArray:
        """The array, at least so long; it grows with the table, not with every row."""
        assert self._many is not None
        short = max(width, self._table.width) - len(self._many)
        if short > 0:
            self._many = np.concatenate([self._many, np.zeros(short)])
        return self._many
