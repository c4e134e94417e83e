"""The columns of the node table: amounts of resources, labels and taints.

The load of a row keeps its exact sums. They are written into the columns when these are read: a pod that is
decided from a cached result reads none of them, and a row that changes several times is written once.

There is a column per label key that a plugin has asked for; what a label means (zone, hostname) is not known
here. Taints and `spec.unschedulable` are one small integer per node, so that the tolerations of a pod are
evaluated once per class of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from moorage.api.node import Node
from moorage.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from moorage.api.selectors import parse_integer
from moorage.api.taints import Taint
from moorage.framework.nodes import Amounts, CodeArray, FloatArray, IntArray, TaintClass
from moorage.state.columns import LIMIT, Interner, clamp, read_only
from moorage.state.pod_entry import RowLoad

_WITH_SCORING_DEFAULTS = (CPU, MEMORY)
"""The resources for which scoring assumes default requests."""
_STANDARD_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
Cells = tuple[IntArray, FloatArray | None, IntArray | None, FloatArray | None, IntArray | None]
"""The arrays of one resource: requested, nonzero requested (each with its float copy), and free."""
RowAmounts = Callable[[int], tuple[RowLoad, Mapping[str, int]]]
"""Row → its load, and the allocatable amounts of its node."""

ABSENT = -1
"""The code of a row without the label."""

_MAX_LABEL_COLUMNS = 1024
"""Number of label columns kept, the least recently used go first. Their keys come from pods, so any user can
name many."""
_MIN_LABEL_CROWD = 1024
"""Codes of a key with fewer values are never rebuilt."""
_NO_LABELS: Mapping[str, str] = {}
PLAIN = TaintClass((), False)
"""No taints and schedulable: always class 0, also of free rows and ghosts."""
_MIN_TAINT_CROWD = 64


class ResourceColumns:
    """Amounts by resource and row. A resource that no node has is a shared column of zeros.

    Entries are within ±`columns.LIMIT`. Arrays are read-only views of the live columns, and are replaced when
    the table grows.
    """

    def __init__(self, width: int, on_layout: Callable[[bool], None] = lambda replaced: None) -> None:
        self._width = width
        self._on_layout = on_layout
        """Called with True when arrays were replaced, with False when some were added."""
        self._columns: dict[str, IntArray] = {}
        self._shown: dict[str, IntArray] = {}
        self._zeros = read_only(np.zeros(width, dtype=np.int64))
        self._floats: dict[str, FloatArray] = {}
        """Float copies of the columns that a plugin has asked for; NumPy is slow with mixed types."""
        self._shown_floats: dict[str, FloatArray] = {}

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
        self._free: dict[str, IntArray] = {}
        """Allocatable less requested, for the resources that a plugin has asked for."""
        self._shown_free: dict[str, IntArray] = {}
        self.unwritten: dict[int, None] = {}
        """Rows whose pods have changed since the columns were last read. Never another object."""
        self._cells: dict[str, Cells] = {}
        """Resource → the arrays that `_write` fills; cleared when one of them is replaced."""
        for resource in _STANDARD_RESOURCES:  # nearly every pod requests them
            self._cells_of(resource)

    def allocatable(self, resource: str) -> IntArray:
        return self._allocatable[resource]

    def requested(self, resource: str) -> IntArray:
        if self.unwritten:
            self.catch_up()
        return self._requested[resource]

    def nonzero_requested(self, resource: str) -> IntArray:
        """Return requests with scoring defaults; resources without a default are as requested."""
        if self.unwritten:
            self.catch_up()
        return (self._nonzero if resource in _WITH_SCORING_DEFAULTS else self._requested)[resource]

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
            column = column if resource in _WITH_SCORING_DEFAULTS else "requested"
        return self._by_name[column].floats(resource)

    def set_node(self, row: int, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Replace the allocatable amounts of a row."""
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
        load, allocatable = self._amounts_of(row)
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
        counted = self._nonzero.arrays(resource) if resource in _WITH_SCORING_DEFAULTS else (None, None)
        # Creating a column clears all cells, so these are stored last.
        found = self._cells[resource] = (sums, floats, *counted, self._free.get(resource))
        return found

    def _layout_changed(self, replaced: bool) -> None:
        """Forget the cells. If columns were replaced, existing views are out of date as well."""
        self._cells.clear()
        if replaced:
            self._on_replaced()


class LabelColumn:
    """The values of one label key: a code per row, and on demand the value as a number."""

    __slots__ = ("codes", "numbers", "values")

    def __init__(self, key: str, labels: list[Mapping[str, str]], width: int) -> None:
        self.codes: CodeArray = np.full(width, ABSENT, dtype=np.int32)
        self.numbers: FloatArray | None = None
        """NaN if the label is absent or not an integer. None until a plugin compares numbers."""
        used = {row: found[key] for row, found in enumerate(labels) if key in found}
        self.values: Interner[str] = Interner(_MIN_LABEL_CROWD, len(set(used.values())))
        for row, value in used.items():
            self.codes[row] = self.values.code(value)

    def put(self, row: int, value: str | None) -> None:
        self.codes[row] = ABSENT if value is None else self.values.code(value)
        if self.numbers is not None:
            self.numbers[row] = number(value)

    def read_numbers(self) -> FloatArray:
        """Fill `numbers` from the codes, parsing each distinct value once."""
        by_code = np.array([*map(number, self.values.codes), np.nan])
        # ABSENT is the last entry of by_code.
        self.numbers = by_code[self.codes]
        return self.numbers

    def grow(self, width: int) -> None:
        more = width - len(self.codes)
        self.codes = np.concatenate([self.codes, np.full(more, ABSENT, dtype=np.int32)])
        if self.numbers is not None:
            self.numbers = np.concatenate([self.numbers, np.full(more, np.nan)])


class StoredLabelColumns:
    """The label columns by key. Implements `framework.nodes.LabelColumns`.

    A column is built when a plugin first asks for it and is kept up to date from then on. The codes of a key
    are valid as long as `values` returns the same mapping object: now and then a key gets new codes, to drop
    the values of nodes that are gone.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._labels: list[Mapping[str, str]] = [_NO_LABELS] * width
        """Row → labels of the node; empty for free rows and ghosts."""
        self._columns: dict[str, LabelColumn] = {}
        """Key → column, the most recently used one last."""
        self._nodes_with: Counter[str] = Counter()
        """Key → number of nodes. Keys that no node has share one column."""
        self._absent = LabelColumn("", self._labels, width)

    def codes(self, key: str) -> CodeArray:
        return read_only(self._column(key).codes)

    def values(self, key: str) -> Mapping[str, int]:
        return self._column(key).values.codes

    def numbers(self, key: str) -> FloatArray:
        column = self._column(key)
        return read_only(column.read_numbers() if column.numbers is None else column.numbers)

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        """Set the labels of the node in this row."""
        old = self._labels[row]
        self._labels[row] = labels
        if labels.keys() != old.keys():
            self._nodes_with.update(labels.keys())
            self._nodes_with.subtract(old.keys())
        for key, column in self._columns.items():
            value = labels.get(key)
            if value != old.get(key):
                column.put(row, value)
                if column.values.crowded:
                    self._columns[key] = LabelColumn(key, self._labels, self._width)

    def clear(self, row: int) -> None:
        self.put(row, _NO_LABELS)

    def grow(self, width: int) -> None:
        self._labels.extend([_NO_LABELS] * (width - self._width))
        self._width = width
        for column in (*self._columns.values(), self._absent):
            column.grow(width)

    def _column(self, key: str) -> LabelColumn:
        column = self._columns.pop(key, None)
        if column is None:
            if not self._nodes_with[key]:
                return self._absent
            column = LabelColumn(key, self._labels, self._width)
            if len(self._columns) >= _MAX_LABEL_COLUMNS:
                del self._columns[next(iter(self._columns))]
        self._columns[key] = column
        return column


def number(value: str | None) -> float:
    """Parse a label as Gt and Lt do: a decimal int64, otherwise NaN."""
    whole = None if value is None else parse_integer(value)
    return np.nan if whole is None else float(whole)


class TaintClasses:
    """The taint class of every row. Implements `framework.nodes.TaintColumns`.

    A class ignores the time at which a taint was added. Ids are valid as long as `classes` returns the same
    object: some taints have a timestamp as value, so unused classes pile up and are dropped now and then.
    """

    def __init__(self, width: int) -> None:
        self._ids: CodeArray = np.zeros(width, dtype=np.int32)
        self._interner: Interner[TaintClass] = Interner(_MIN_TAINT_CROWD)
        self._interner.code(PLAIN)
        self._classes: tuple[TaintClass, ...] = (PLAIN,)

    @property
    def ids(self) -> CodeArray:
        return read_only(self._ids)

    @property
    def classes(self) -> Sequence[TaintClass]:
        return self._classes

    def put(self, row: int, node: Node) -> None:
        self._ids[row] = self._interner.code(taint_class(node))
        if len(self._interner.codes) > len(self._classes):
            if self._interner.crowded:
                self._rebuild()
            self._classes = tuple(self._interner.codes)

    def clear(self, row: int) -> None:
        self._ids[row] = 0

    def grow(self, width: int) -> None:
        self._ids = np.concatenate([self._ids, np.zeros(width - len(self._ids), dtype=np.int32)])

    def _rebuild(self) -> None:
        """Assign new codes, to the classes in use only."""
        known = list(self._interner.codes)
        used = np.unique(np.append(self._ids, 0))
        self._interner = Interner(_MIN_TAINT_CROWD, len(used))
        fresh = np.zeros(len(known), dtype=np.int32)
        for old in used.tolist():
            fresh[old] = self._interner.code(known[old])
        self._ids = fresh[self._ids]


def taint_class(node: Node) -> TaintClass:
    """Return the taint class of a node."""
    if not node.spec.taints:
        return TaintClass((), True) if node.spec.unschedulable else PLAIN
    return TaintClass(tuple(map(_without_time, node.spec.taints)), node.spec.unschedulable)


def _without_time(taint: Taint) -> Taint:
    return msgspec.structs.replace(taint, time_added=None) if taint.time_added is not None else taint
