"""One contiguous int64 column per resource name, kept for all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mooring.framework.nodes import FloatArray, IntArray
from mooring.state.amounts import clamp
from mooring.state.read_only import read_only


class ResourceColumns:
    """Amounts by resource and row. A resource that nobody has is a shared column of zeros.

    Entries are within ±`amounts.LIMIT`. Arrays handed out are read-only windows on the live columns, replaced
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
        """Twins in float64 of the columns that somebody has asked for; NumPy takes several times as long
        over mixed types."""
        self._shown_floats: dict[str, FloatArray] = {}

    def floats(self, resource: str) -> FloatArray:
        """The column in float64; exact below 2^53."""
        shown = self._shown_floats.get(resource)
        if shown is None:
            twin = self._floats[resource] = self[resource].astype(np.float64)
            shown = self._shown_floats[resource] = read_only(twin)
            self._relaid(False)
        return shown

    def arrays(self, resource: str) -> tuple[IntArray, FloatArray | None]:
        """The column itself and its twin, if it has one, to be written by whoever knows what he does."""
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
