"""Which rows changed since when: a generation per row, and a short log that answers without a scan."""

from __future__ import annotations

import numpy as np

from mooring.framework.nodes import IntArray
from mooring.state.read_only import read_only

_SHORTEST = 1024


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
        self._longest = max(_SHORTEST, 4 * width)
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
        self._longest = max(_SHORTEST, 4 * width)

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
