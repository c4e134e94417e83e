"""The amounts of all rows in columns: allocatable, requested, the same with scoring defaults, and what is
free.

The sums of a row are kept by its load, exactly; here they are written into columns when somebody reads these.
A pod that is decided from memory reads none of them, and a row that changes several times is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from mooring.framework.nodes import Amounts, FloatArray, IntArray
from mooring.state.amounts import LIMIT, clamp
from mooring.state.node_load import NodeLoad
from mooring.state.read_only import read_only
from mooring.state.resource_columns import ResourceColumns

_WITH_DEFAULTS = (CPU, MEMORY)
"""Resources for which scoring has defaults."""
_STANDARD = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)

Cells = tuple[IntArray, FloatArray | None, IntArray | None, FloatArray | None, IntArray | None]
"""Of one resource: requested and its float twin, the same with scoring defaults, and what is free."""
RowAmounts = Callable[[int], tuple[NodeLoad, Mapping[str, int]]]
"""Row → its load, and what its node has in all."""


class AmountColumns:
    """Columns by resource. `of_row` gives what is to be written; `replaced` is called when arrays are
    replaced by others."""

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
        """Allocatable less requested, of the resources that somebody has asked for."""
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
        for resource, total in load.requested.items():
            sums, twin, counted, counted_twin, free = self._cells.get(resource) or self._cells_of(resource)
            amount = total if -LIMIT <= total <= LIMIT else clamp(total)
            sums[row] = amount
            if twin is not None:
                twin[row] = amount
            if free is not None:
                free[row] = allocatable.get(resource, 0) - amount
            if counted is not None:
                counted[row] = amount = clamp(load.nonzero[resource])
                if counted_twin is not None:
                    counted_twin[row] = amount

    def grow(self, width: int) -> None:
        self.catch_up()
        for columns in (self._allocatable, self._requested, self._nonzero):
            columns.grow(width)
        self._free.clear()
        self._shown_free.clear()

    def _cells_of(self, resource: str) -> Cells:
        sums, twin = self._requested.arrays(resource)
        counted = self._nonzero.arrays(resource) if resource in _WITH_DEFAULTS else (None, None)
        # Making a column forgets all cells, so these are kept last.
        found = self._cells[resource] = (sums, twin, *counted, self._free.get(resource))
        return found

    def _relaid(self, replaced: bool) -> None:
        """Columns were replaced, which views made before do not know, or added."""
        self._cells.clear()
        if replaced:
            self._replaced()
