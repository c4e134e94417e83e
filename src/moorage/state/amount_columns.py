"""The amounts of all rows in columns: allocatable, requested, the same with scoring defaults, and what is
free.

The sums of a row are kept by its load, exactly; here they are written into columns when these are read. A pod
that is decided from memory reads none of them, and a row that changes several times is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from moorage.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from moorage.framework.nodes import Amounts, FloatArray, IntArray
from moorage.state.columns import LIMIT, clamp, read_only
from moorage.state.pod_entry import NodeLoad

_WITH_DEFAULTS = (CPU, MEMORY)
"""Resources for which scoring has defaults."""
_STANDARD = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
Cells = tuple[IntArray, FloatArray | None, IntArray | None, FloatArray | None, IntArray | None]
"""Of one resource: requested and its float copy, the same with scoring defaults, and what is free."""
RowAmounts = Callable[[int], tuple[NodeLoad, Mapping[str, int]]]
"""Row → its load, and what its node has in all."""


class ResourceColumns:
    """Amounts by resource and row. A resource that no node has is a shared column of zeros.

    Entries are within ±`columns.LIMIT`. Arrays handed out are read-only windows on the live columns, replaced
    when the table grows.
    """

    def __init__(self, width: int, relaid: Callable[[bool], None] = lambda replaced: None) -> None:
        self._width = width
        self._relaid = relaid
        """Called with True when arrays are replaced by others, with False when some are added."""
        self._columns: dict[str, IntArray] = {}
        self._shown: dict[str, IntArray] = {}
        self._zeros = read_only(np.zeros(width, dtype=np.int64))
        self._floats: dict[str, FloatArray] = {}
        """Float copies of the columns that a plugin has asked for; NumPy takes several times as long over
        mixed types."""
        self._shown_floats: dict[str, FloatArray] = {}

    def floats(self, resource: str) -> FloatArray:
        """The column in float64; exact below 2^53."""
        shown = self._shown_floats.get(resource)
        if shown is None:
            copy = self._floats[resource] = self[resource].astype(np.float64)
            shown = self._shown_floats[resource] = read_only(copy)
            self._relaid(False)
        return shown

    def arrays(self, resource: str) -> tuple[IntArray, FloatArray | None]:
        """The column itself and its float copy, if it has one, to be written by the caller."""
        column = self._columns.get(resource)
        return self._create(resource) if column is None else column, self._floats.get(resource)

    def __getitem__(self, resource: str) -> IntArray:
        return self._shown.get(resource, self._zeros)

    def put(self, row: int, resource: str, amount: int) -> None:
        column = self._columns.get(resource)
        if column is None:
            column = self._create(resource)
        column[row] = clamp(amount)
        if resource in self._floats:
            self._floats[resource][row] = column[row]

    def replace(self, row: int, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Write `new` where the row held `old`."""
        for resource in old:
            if resource not in new:
                self.put(row, resource, 0)
        for resource, amount in new.items():
            self.put(row, resource, amount)

    def grow(self, width: int) -> None:
        for resource, column in self._columns.items():
            wider = np.zeros(width, dtype=np.int64)
            wider[: self._width] = column
            self._columns[resource] = wider
            self._shown[resource] = read_only(wider)
        self._zeros = read_only(np.zeros(width, dtype=np.int64))
        self._floats.clear()
        self._shown_floats.clear()
        self._width = width
        self._relaid(True)

    def _create(self, resource: str) -> IntArray:
        column = self._columns[resource] = np.zeros(self._width, dtype=np.int64)
        self._shown[resource] = read_only(column)
        self._relaid(False)
        return column


class AmountColumns:
    """Columns by resource. Implements `framework.nodes.AmountColumns`. `of_row` gives what is to be written;
    `replaced` is called when arrays are replaced by others."""

    def __init__(self, width: int, of_row: RowAmounts, replaced: Callable[[], None]) -> None:
        self._of_row = of_row
        self._replaced = replaced
        self._allocatable = ResourceColumns(width, self._relaid)
        self._requested = ResourceColumns(width, self._relaid)
        self._nonzero = ResourceColumns(width, self._relaid)
        self._by_name: dict[str, ResourceColumns] = {
            "allocatable": self._allocatable,
            "requested": self._requested,
            "nonzero_requested": self._nonzero,
        }
        self._free: dict[str, IntArray] = {}
        """Allocatable less requested, of the resources that a plugin has asked for."""
        self._shown_free: dict[str, IntArray] = {}
        self.unwritten: dict[int, None] = {}
        """Rows whose pods have changed since the columns were last read; the same object for ever."""
        self._cells: dict[str, Cells] = {}
        """Resource → the arrays that a pod event writes; forgotten when one of them is replaced."""
        for resource in _STANDARD:  # nearly every pod asks for them
            self._cells_of(resource)

    def allocatable(self, resource: str) -> IntArray:
        return self._allocatable[resource]

    def requested(self, resource: str) -> IntArray:
        if self.unwritten:
            self.catch_up()
        return self._requested[resource]

    def nonzero_requested(self, resource: str) -> IntArray:
        """Resources without a scoring default are as requested."""
        if self.unwritten:
            self.catch_up()
        return (self._nonzero if resource in _WITH_DEFAULTS else self._requested)[resource]

    def free(self, resource: str) -> IntArray:
        if self.unwritten:
            self.catch_up()
        shown = self._shown_free.get(resource)
        if shown is None:
            self._free[resource] = self._allocatable[resource] - self._requested[resource]
            shown = self._shown_free[resource] = read_only(self._free[resource])
            self._cells.clear()
        return shown

    def floats(self, column: Amounts, resource: str) -> FloatArray:
        if self.unwritten:
            self.catch_up()
        if column == "nonzero_requested":
            column = column if resource in _WITH_DEFAULTS else "requested"
        return self._by_name[column].floats(resource)

    def set_node(self, row: int, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """A node has these amounts where it had others."""
        self._allocatable.replace(row, old, new)
        for resource, column in self._free.items():
            column[row] = self._allocatable[resource][row] - self._requested[resource][row]

    def catch_up(self) -> None:
        """Write the sums of changed rows."""
        rows = list(self.unwritten)
        self.unwritten.clear()
        for row in rows:
            self._write(row)

    def _write(self, row: int) -> None:
        load, allocatable = self._of_row(row)
        for resource, total in load.sums.items():
            cells = self._cells.get(resource) or self._cells_of(resource)
            sums, floats, counted, counted_floats, free = cells
            amount = total if -LIMIT <= total <= LIMIT else clamp(total)
            sums[row] = amount
            if floats is not None:
                floats[row] = amount
            if free is not None:
                free[row] = allocatable.get(resource, 0) - amount
            if counted is not None:
                counted[row] = amount = clamp(load.nonzero_sums[resource])
                if counted_floats is not None:
                    counted_floats[row] = amount

    def grow(self, width: int) -> None:
        self.catch_up()
        for columns in (self._allocatable, self._requested, self._nonzero):
            columns.grow(width)
        self._free.clear()
        self._shown_free.clear()

    def _cells_of(self, resource: str) -> Cells:
        sums, floats = self._requested.arrays(resource)
        counted = self._nonzero.arrays(resource) if resource in _WITH_DEFAULTS else (None, None)
        # Making a column forgets all cells, so these are kept last.
        found = self._cells[resource] = (sums, floats, *counted, self._free.get(resource))
        return found

    def _relaid(self, replaced: bool) -> None:
        """Columns were replaced, which views made before do not know, or added."""
        self._cells.clear()
        if replaced:
            self._replaced()
