"""The amounts of resources in the node table: allocatable, requested and free, one column per resource.

The load of a row keeps its exact sums. They are written into the columns when these are read: a pod that is
decided from a cached result reads none of them, and a row that changes several times is written once.

Any pod can ask for any resource, and a column spans all nodes. Only resources that a node offers have columns, and
those that a plugin scores by. What pods request of other resources is kept row by row, as long as they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from moorage.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from moorage.framework.nodes import Amounts, FloatArray, IntArray
from moorage.state.columns import LIMIT, clamp, read_only
from moorage.state.pod_entry import RowLoad

_WITH_SCORING_DEFAULTS = (CPU, MEMORY)
"""The resources for which scoring assumes default requests."""
_STANDARD_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
Cells = tuple[IntArray, FloatArray | None, IntArray | None, FloatArray | None, IntArray | None]
"""The arrays of one resource: requested, nonzero requested (each with its float copy), and free."""
RowAmounts = Callable[[int], tuple[RowLoad, Mapping[str, int]]]
"""Row → its load, and the allocatable amounts of its node."""


class ResourceColumns:
    """Amounts by resource and row. All resources without a column share one of zeros.

    Entries are within ±`columns.LIMIT`. Arrays are read-only views of the live columns, and are replaced when
    the table grows.
    """

    def __init__(self, width: int, on_layout: Callable[[bool], None] = lambda replaced: None) -> None:
        self._width = width
        self._on_layout = on_layout
        """Called with True when arrays were replaced, with False when some were added or dropped."""
        self._columns: dict[str, IntArray] = {}
        self._shown: dict[str, IntArray] = {}
        self._zeros = read_only(np.zeros(width, dtype=np.int64))
        self._floats: dict[str, FloatArray] = {}
        """Float copies of the columns that a plugin has asked for; NumPy is slow with mixed types."""
        self._shown_floats: dict[str, FloatArray] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, resource: str) -> bool:
        return resource in self._columns

    def floats(self, resource: str) -> FloatArray:
        """Return the column in float64, exact below 2^53."""
        shown = self._shown_floats.get(resource)
        if shown is None:
            copy = self._floats[resource] = self[resource].astype(np.float64)
            shown = self._shown_floats[resource] = read_only(copy)
            self._on_layout(False)
        return shown

    def arrays(self, resource: str) -> tuple[IntArray, FloatArray | None]:
        """Return the writable column and its float copy, if there is one."""
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
        """Replace the amounts `old` of a row by `new`."""
        for resource in old:
            if resource not in new:
                self.put(row, resource, 0)
        for resource, amount in new.items():
            self.put(row, resource, amount)

    def drop(self, resource: str) -> None:
        """Forget the column of a resource."""
        for known in (self._columns, self._shown, self._floats, self._shown_floats):
            known.pop(resource, None)
        self._on_layout(False)

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
        self._on_layout(True)

    def filled(self, amounts: Mapping[int, int] | None) -> IntArray:
        """Return a new array with the amounts of some rows; the shared zeros if there are none."""
        if not amounts:
            return self._zeros
        column: IntArray = np.zeros(self._width, dtype=np.int64)
        column[list(amounts)] = list(amounts.values())
        return read_only(column)

    def _create(self, resource: str) -> IntArray:
        column = self._columns[resource] = np.zeros(self._width, dtype=np.int64)
        self._shown[resource] = read_only(column)
        self._on_layout(False)
        return column


class StoredAmountColumns:
    """The amounts of all rows. Implements `framework.nodes.AmountColumns`.

    `amounts_of` returns the values to write; `on_replaced` is called when arrays were replaced.
    """

    def __init__(self, width: int, amounts_of: RowAmounts, on_replaced: Callable[[], None]) -> None:
        self._amounts_of = amounts_of
        self._on_replaced = on_replaced
        self._allocatable = ResourceColumns(width, self._layout_changed)
        self._requested = ResourceColumns(width, self._layout_changed)
        self._nonzero = ResourceColumns(width, self._layout_changed)
        self._by_name: dict[str, ResourceColumns] = {
            "allocatable": self._allocatable,
            "requested": self._requested,
            "nonzero_requested": self._nonzero,
        }
        self._offers: Counter[str] = Counter()
        """Resource → number of nodes that offer it, any amount."""
        self._pinned = set(_STANDARD_RESOURCES)
        """Resources that have columns whether a node offers them or not."""
        self._elsewhere: dict[str, dict[int, int]] = {}
        """Resource without columns → row → requested amount. No inner mapping is empty."""
        self._free: dict[str, IntArray] = {}
        """Allocatable less requested, for the resources that a plugin has asked for."""
        self._shown_free: dict[str, IntArray] = {}
        self.unwritten: dict[int, None] = {}
        """Rows whose pods have changed since the columns were last read. Never another object."""
        self._cells: dict[str, Cells] = {}
        """Resource → the arrays that `_write` fills; cleared when one of them is replaced."""
        for resource in _STANDARD_RESOURCES:  # nearly every pod requests them
            self._cells_of(resource)

    def __len__(self) -> int:
        """Return the number of resources that something is kept for."""
        return len(self._requested) + len(self._elsewhere)

    def allocatable(self, resource: str) -> IntArray:
        return self._allocatable[resource]

    def requested(self, resource: str) -> IntArray:
        if self.unwritten:
            self.catch_up()
        if resource in self._elsewhere:
            return self._requested.filled(self._elsewhere[resource])
        return self._requested[resource]

    def nonzero_requested(self, resource: str) -> IntArray:
        """Return requests with scoring defaults; resources without a default are as requested."""
        if resource not in _WITH_SCORING_DEFAULTS:
            return self.requested(resource)
        if self.unwritten:
            self.catch_up()
        return self._nonzero[resource]

    def free(self, resource: str) -> IntArray:
        if self.unwritten:
            self.catch_up()
        shown = self._shown_free.get(resource)
        if shown is None:
            if resource not in self._requested:
                requested = self._elsewhere.get(resource, {})
                return self._requested.filled({row: -amount for row, amount in requested.items()})
            self._free[resource] = self._allocatable[resource] - self._requested[resource]
            shown = self._shown_free[resource] = read_only(self._free[resource])
            self._cells.clear()
        return shown

    def floats(self, column: Amounts, resource: str) -> FloatArray:
        """Return a column in float64. The names of these resources come from the configuration, not from pods."""
        if self.unwritten:
            self.catch_up()
        if resource not in self._pinned:
            self._pinned.add(resource)
            self._track(resource)
        if column == "nonzero_requested":
            column = column if resource in _WITH_SCORING_DEFAULTS else "requested"
        return self._by_name[column].floats(resource)

    def set_node(self, row: int, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Replace the allocatable amounts of a row."""
        for resource in new.keys() - old.keys():
            self._offers[resource] += 1
            self._track(resource)
        self._allocatable.replace(row, old, new)
        for resource in old.keys() - new.keys():
            self._offers[resource] -= 1
            if not self._offers[resource]:
                del self._offers[resource]
                self._forget(resource)
        for resource, column in self._free.items():
            column[row] = self._allocatable[resource][row] - self._requested[resource][row]

    def catch_up(self) -> None:
        """Write the sums of changed rows."""
        rows = list(self.unwritten)
        self.unwritten.clear()
        for row in rows:
            self._write(row)

    def _write(self, row: int) -> None:
        load, allocatable = self._amounts_of(row)
        unused = False
        for resource, total in load.sums.items():
            amount = total if -LIMIT <= total <= LIMIT else clamp(total)
            cells = self._cells.get(resource)
            if not amount and resource not in _STANDARD_RESOURCES:
                unused = True
            if cells is None:
                if resource not in self._requested:
                    self._write_elsewhere(row, resource, amount)
                    continue
                cells = self._cells_of(resource)
            sums, floats, counted, counted_floats, free = cells
            sums[row] = amount
            if floats is not None:
                floats[row] = amount
            if free is not None:
                free[row] = allocatable.get(resource, 0) - amount
            if counted is not None:
                counted[row] = amount = clamp(load.nonzero_sums[resource])
                if counted_floats is not None:
                    counted_floats[row] = amount
        if unused:
            load.drop_unused(_STANDARD_RESOURCES)

    def _write_elsewhere(self, row: int, resource: str, amount: int) -> None:
        rows = self._elsewhere.get(resource)
        if amount:
            if rows is None:
                rows = self._elsewhere[resource] = {}
            rows[row] = amount
        elif rows is not None:
            rows.pop(row, None)
            if not rows:
                del self._elsewhere[resource]

    def grow(self, width: int) -> None:
        self.catch_up()
        for columns in (self._allocatable, self._requested, self._nonzero):
            columns.grow(width)
        self._free.clear()
        self._shown_free.clear()

    def _track(self, resource: str) -> None:
        """Give a resource columns."""
        if resource not in self._requested:
            column, _ = self._requested.arrays(resource)
            for row, amount in self._elsewhere.pop(resource, {}).items():
                column[row] = amount

    def _forget(self, resource: str) -> None:
        """Drop the columns of a resource that no node offers any more."""
        if resource in self._pinned:
            return
        requested = self._requested[resource]
        rows = np.flatnonzero(requested).tolist()
        if rows:
            self._elsewhere[resource] = {row: int(requested[row]) for row in rows}
        self._free.pop(resource, None)
        self._shown_free.pop(resource, None)
        self._allocatable.drop(resource)
        self._requested.drop(resource)

    def _cells_of(self, resource: str) -> Cells:
        sums, floats = self._requested.arrays(resource)
        counted = self._nonzero.arrays(resource) if resource in _WITH_SCORING_DEFAULTS else (None, None)
        # Creating a column clears all cells, so these are stored last.
        found = self._cells[resource] = (sums, floats, *counted, self._free.get(resource))
        return found

    def _layout_changed(self, replaced: bool) -> None:
        """Forget the cells. If columns were replaced, existing views are out of date as well."""
        self._cells.clear()
        if replaced:
            self._on_replaced()
