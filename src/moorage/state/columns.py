"""What the columns of the state are built from, and the error of a state that contradicts itself.

Amounts: a quantity may be as large as 2^63-1, so a node with two absurd pods would overflow an int64 sum and
look empty. Sums per node are therefore kept as exact Python integers; only what is written into a column is
clamped to ±(2^62-1). Adding or subtracting two such numbers stays within int64, so kernels need no guard of
their own for `requested + request` or `allocatable - requested`. A clamped amount is still larger than any
honest one, so comparisons come out as with exact numbers.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.api.errors import MoorageError
from moorage.framework.nodes import IntArray

LIMIT = 2**62 - 1
"""The largest magnitude that a column holds."""
ScalarT = TypeVar("ScalarT", bound=np.generic)
T = TypeVar("T", bound=Hashable)
_SHORTEST_LOG = 1024


def clamp(amount: int) -> int:
    """The amount as a column may hold it."""
    if -LIMIT <= amount <= LIMIT:
        return amount
    return LIMIT if amount > 0 else -LIMIT


def read_only(column: npt.NDArray[ScalarT]) -> npt.NDArray[ScalarT]:
    """A write-protected window on the column, so that an accidental `+=` in a plugin raises."""
    shown = column.view()
    shown.flags.writeable = False
    return shown


class Interner(Generic[T]):
    """Value → code, counted from 0 in the order of first sight.

    Values whose last user is gone are not tracked. Instead the owner makes a fresh interner from the values
    in use once this one is `crowded`: with twice as many values as after the last time, that costs O(1) per
    value.
    """

    __slots__ = ("_crowd", "codes")

    def __init__(self, smallest_crowd: int, in_use: int = 0) -> None:
        self.codes: dict[T, int] = {}
        self._crowd = max(smallest_crowd, 2 * in_use)

    def code(self, value: T) -> int:
        found = self.codes.get(value)
        if found is None:
            found = self.codes[value] = len(self.codes)
        return found

    @property
    def crowded(self) -> bool:
        """Probably most values are out of use."""
        return len(self.codes) > self._crowd


class ChangeLog:
    """Every change takes the next number of one global counter and leaves it at its row."""

    def __init__(self, width: int) -> None:
        self.generation = 0
        """Number of the latest change; grows by one with each, never repeats."""
        self.row = -1
        """The row of the latest change."""
        self.before_row = 0
        """Generation after which that row alone has changed."""
        self._generations = np.zeros(width, dtype=np.int64)
        """As of generation `_written`."""
        self._written = 0
        self._rows: list[int] = []
        """Rows of the changes `_first`, `_first + 1`, … `generation`."""
        self._first = 1
        self._longest = max(_SHORTEST_LOG, 4 * width)
        """Length at which the older half of `_rows` is dropped."""

    @property
    def generations(self) -> IntArray:
        """Row → number of its latest change."""
        self._write()
        return read_only(self._generations)

    def grow(self, width: int) -> None:
        self._generations = np.concatenate(
            [self._generations, np.zeros(width - len(self._generations), dtype=np.int64)]
        )
        self._longest = max(_SHORTEST_LOG, 4 * width)

    def mark(self, row: int) -> None:
        """The row has changed."""
        if row != self.row:
            self.row, self.before_row = row, self.generation
        self.generation += 1
        self._rows.append(row)
        if len(self._rows) > self._longest:
            self._shorten()

    def since(self, generation: int) -> list[int]:
        """Rows changed after that generation, each once, in no particular order."""
        changes = self.generation - generation
        if not changes:
            return []
        if generation >= self.before_row:  # as a rule: a pod that was assumed and then seen
            return [self.row]
        start, rows = generation + 1 - self._first, self._rows
        # A scan of all rows costs about as much as going through an eighth of them one by one.
        if start >= 0 and changes <= len(self._generations) // 8:
            return list(dict.fromkeys(rows[start:]))
        self._write()
        changed: list[int] = np.flatnonzero(self._generations > generation).tolist()
        return changed

    def _write(self) -> None:
        """Bring the generations up to date; of a row that changed several times the last one stays."""
        rows = self._rows[self._written + 1 - self._first :]
        self._generations[rows] = np.arange(self._written + 1, self.generation + 1)
        self._written = self.generation

    def _shorten(self) -> None:
        self._write()
        dropped = len(self._rows) // 2
        del self._rows[:dropped]
        self._first += dropped


class CacheError(MoorageError):
    """The cached state and what a caller asks of it contradict each other: a bug, never a bad object."""
