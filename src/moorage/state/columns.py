"""The building blocks of the node table: clamped amounts, interned values, the change log, and columns that are
computed from other columns.

A quantity can be as large as 2^63-1, so two absurd pods would overflow an int64 sum and make their node look empty.
Sums per node are therefore exact Python integers, and only the values written into a column are clamped to ±(2^62-1).
The sum or difference of two such values fits into int64, so that kernels need no guard for `requested + request` or
`allocatable - requested`. A clamped amount is still larger than any realistic one, so comparisons give the same result
as with exact numbers.

A change of a row or column has a number, its version.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.api.errors import MoorageError
from moorage.api.recent import Recent
from moorage.framework.indexes import Topology
from moorage.framework.nodes import Compute, ComputeRow, IntArray, Nodes, NodeView

LIMIT = 2**62 - 1
"""The largest magnitude that a column holds."""
ScalarT = TypeVar("ScalarT", bound=np.generic)
T = TypeVar("T", bound=Hashable)
_MIN_LOG_ENTRIES = 1024
_MAX_BYTES = 32 * 1024 * 1024
"""The memory that the computed columns of one kind may take."""
_MAX_SINGLE_ROWS = 8
"""Up to this many changed rows are recomputed one by one."""
_MAX_TOPOLOGIES = 256
"""Number of topologies kept. Their keys come from pods, so any user can name many."""


class CacheError(MoorageError):
    """A call contradicts the cached state. This is a bug, never a bad object."""


def clamp(amount: int) -> int:
    """Return the amount, limited to what a column can hold."""
    if -LIMIT <= amount <= LIMIT:
        return amount
    return LIMIT if amount > 0 else -LIMIT


def read_only(column: npt.NDArray[ScalarT]) -> npt.NDArray[ScalarT]:
    """Return a write-protected view of the column, so that an accidental `+=` in a plugin raises."""
    shown = column.view()
    shown.flags.writeable = False
    return shown


class Interner(Generic[T]):
    """Numbers distinct values from 0, in the order in which they first appear.

    It does not track values that are no longer used. Once it is `crowded`, its owner builds a fresh one from
    the values in use. That happens when the number of values has doubled, so it costs O(1) per value.
    """

    __slots__ = ("_crowd", "codes")

    def __init__(self, min_crowd: int, in_use: int = 0) -> None:
        self.codes: dict[T, int] = {}
        self._crowd = max(min_crowd, 2 * in_use)

    def code(self, value: T) -> int:
        found = self.codes.get(value)
        if found is None:
            found = self.codes[value] = len(self.codes)
        return found

    @property
    def crowded(self) -> bool:
        """Whether most values are probably unused."""
        return len(self.codes) > self._crowd


class ChangeLog:
    """The version of every row. Each change takes the next version and leaves it at its row."""

    def __init__(self, width: int) -> None:
        self.version = 0
        """Number of the latest change. It grows by one with each change and never repeats."""
        self.row = -1
        """The row of the latest change."""
        self.version_before_row = 0
        """Since this version, only `row` has changed."""
        self._versions = np.zeros(width, dtype=np.int64)
        """Row → version, as of `_written_version`."""
        self._written_version = 0
        self._rows: list[int] = []
        """The rows of the changes `_first_version` to `version`."""
        self._first_version = 1
        self._max_entries = max(_MIN_LOG_ENTRIES, 4 * width)
        """The length at which the older half of `_rows` is dropped."""

    @property
    def versions(self) -> IntArray:
        """Row → number of its latest change."""
        self._write()
        return read_only(self._versions)

    def grow(self, width: int) -> None:
        self._versions = np.concatenate([self._versions, np.zeros(width - len(self._versions), dtype=np.int64)])
        self._max_entries = max(_MIN_LOG_ENTRIES, 4 * width)

    def mark(self, row: int) -> None:
        """Record a change of the row."""
        if row != self.row:
            self.row, self.version_before_row = row, self.version
        self.version += 1
        self._rows.append(row)
        if len(self._rows) > self._max_entries:
            self._shorten()

    def since(self, version: int) -> list[int]:
        """Return the rows that changed after that version, each once, in no particular order."""
        changes = self.version - version
        if not changes:
            return []
        if version >= self.version_before_row:  # the usual case: a pod was assumed and then seen
            return [self.row]
        start, rows = version + 1 - self._first_version, self._rows
        # Scanning all rows costs about as much as visiting an eighth of them one by one.
        if start >= 0 and changes <= len(self._versions) // 8:
            return list(dict.fromkeys(rows[start:]))
        self._write()
        changed: list[int] = np.flatnonzero(self._versions > version).tolist()
        return changed

    def _write(self) -> None:
        """Bring `_versions` up to date. If a row changed several times, its last version stays."""
        rows = self._rows[self._written_version + 1 - self._first_version :]
        self._versions[rows] = np.arange(self._written_version + 1, self.version + 1)
        self._written_version = self.version

    def _shorten(self) -> None:
        self._write()
        dropped = len(self._rows) // 2
        del self._rows[:dropped]
        self._first_version += dropped


class ListedColumns(Protocol):
    """The part of the node table that computed columns and topologies need."""

    @property
    def width(self) -> int: ...

    @property
    def node_version(self) -> int: ...

    def nodes(self) -> Nodes: ...


@dataclass(slots=True)
class _Column:
    values: npt.NDArray[Any]
    shown: npt.NDArray[Any]
    """A write-protected view of `values`."""
    version: int


class DerivedColumns:
    """The columns that plugins compute, by key: full width, 0 in rows without a node.

    Only changed rows are recomputed. Columns are bounded in bytes, and those go that are not used for a while.
    """

    def __init__(self, changes: ChangeLog, view: Callable[[IntArray], Nodes], views: Sequence[NodeView | None]) -> None:
        self._changes = changes
        self._view = view
        """Rows → the `Nodes` that `compute` receives."""
        self._views = views
        """Row → view, or None for a row without a node."""
        self._columns: Recent[Hashable, _Column] = Recent(_MAX_BYTES)

    def current(self, key: Hashable, width: int) -> npt.NDArray[Any] | None:
        """Return the column if it is up to date, else None. Called for every pod, so it must be cheap."""
        column = self._columns.get(key)
        if column is None or column.version != self._changes.version or len(column.values) != width:
            return None
        return column.shown

    def get(
        self, key: Hashable, table: ListedColumns, width: int, compute: Compute, compute_row: ComputeRow | None = None
    ) -> npt.NDArray[Any]:
        """Return the column after bringing it up to date."""
        column = self._columns.get(key)
        if column is None or len(column.values) != width:
            column = self._create(key, table.nodes().rows, width, compute)
        elif column.version != self._changes.version:
            self._refresh(column, compute, compute_row)
        return column.shown

    def _create(self, key: Hashable, rows: IntArray, width: int, compute: Compute) -> _Column:
        first = np.asarray(compute(self._view(rows)))
        values = np.zeros(width, dtype=first.dtype)
        values[rows] = first
        column = _Column(values, read_only(values), self._changes.version)
        return self._columns.put(key, column, values.nbytes)

    def _refresh(self, column: _Column, compute: Compute, compute_row: ComputeRow | None) -> None:
        changed = self._changes.since(column.version)
        column.version = self._changes.version
        values = column.values
        if compute_row is not None and len(changed) <= _MAX_SINGLE_ROWS:
            for row in changed:
                node = self._views[row]
                values[row] = 0 if node is None else compute_row(node)
            return
        live = np.array([row for row in changed if self._views[row] is not None], dtype=np.int64)
        if len(live) < len(changed):
            values[changed] = 0
        if len(live):
            values[live] = compute(self._view(live))


class Topologies:
    """The domains of label keys. Each is built once and kept until a node changes."""

    def __init__(self, table: ListedColumns) -> None:
        self._table = table
        self._valid_for = (-1, 0)
        """Generation of the nodes and width of the table. Pods of an unknown node widen it too."""
        self._known: dict[str, Topology] = {}
        self._absent: Topology | None = None
        """The topology of a key that no node has."""

    def topology(self, key: str) -> Topology:
        present = (self._table.node_version, self._table.width)
        if self._valid_for != present or len(self._known) >= _MAX_TOPOLOGIES:
            self._valid_for = present
            self._known.clear()
            self._absent = None
        found = self._known.get(key)
        if found is None:
            if self._absent is not None and not self._absent.live.columns.labels.values(key):
                return self._absent.under(key)  # any pod can name many of these
            found = Topology(self._table.nodes(), key)
            if found.size:
                self._known[key] = found
            else:
                self._absent = found
        return found
