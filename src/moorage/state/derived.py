"""What is computed from the columns: masks of selectors, verdicts on taints, sums, and the domains of labels.

Columns are computed per changed row only. There are two kinds: what depends on the node objects alone, and
what depends on the pods there as well. Each remembers the generation it is computed for. Bounded in bytes;
the least recently used go first. Topologies are made once per key and kept while no node changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from moorage.framework.indexes import Topology
from moorage.framework.nodes import Compute, ComputeRow, IntArray, Nodes, NodeView
from moorage.state.columns import ChangeLog, read_only

_BYTES = 32 * 1024 * 1024
_FEW = 8
"""Changed rows that are computed one by one."""
_KEYS = 256
"""Keys remembered; they come from pods, so any user can name many."""


class Table(Protocol):
    """The node table, as far as it is needed here."""

    @property
    def width(self) -> int: ...

    @property
    def node_generation(self) -> int: ...

    def nodes(self) -> Nodes:
        """All live rows."""
        ...


@dataclass(slots=True)
class _Column:
    values: npt.NDArray[Any]
    shown: npt.NDArray[Any]
    """Write-protected window on `values`."""
    generation: int


class DerivedColumns:
    """Key → column of full width; 0 in rows without a node."""

    def __init__(
        self, changes: ChangeLog, view: Callable[[IntArray], Any], views: Sequence[NodeView | None]
    ) -> None:
        self._changes = changes
        self._view = view
        """Rows → the `Nodes` that `compute` gets."""
        self._views = views
        """Row → view, None where there is no node."""
        self._columns: OrderedDict[Hashable, _Column] = OrderedDict()
        self._bytes = 0

    def current(self, key: Hashable, width: int) -> npt.NDArray[Any] | None:
        """The column if it is there and up to date; the common case, so it must cost next to nothing."""
        column = self._columns.get(key)
        if column is None or column.generation != self._changes.generation or len(column.values) != width:
            return None
        self._columns.move_to_end(key)
        return column.shown

    def get(
        self,
        key: Hashable,
        table: Table,
        width: int,
        compute: Compute,
        compute_row: ComputeRow | None = None,
    ) -> npt.NDArray[Any]:
        """The column, up to date."""
        column = self._columns.get(key)
        if column is None or len(column.values) != width:
            column = self._create(key, table.nodes().rows, width, compute)
        elif column.generation != self._changes.generation:
            self._refresh(column, compute, compute_row)
        self._columns.move_to_end(key)
        return column.shown

    def _create(self, key: Hashable, rows: IntArray, width: int, compute: Compute) -> _Column:
        first = np.asarray(compute(self._view(rows)))
        values = np.zeros(width, dtype=first.dtype)
        values[rows] = first
        self._forget(key)
        column = self._columns[key] = _Column(values, read_only(values), self._changes.generation)
        self._bytes += values.nbytes
        while self._bytes > _BYTES and len(self._columns) > 1:
            self._forget(next(iter(self._columns)))
        return column

    def _refresh(self, column: _Column, compute: Compute, compute_row: ComputeRow | None) -> None:
        changed = self._changes.since(column.generation)
        column.generation = self._changes.generation
        values = column.values
        if compute_row is not None and len(changed) <= _FEW:
            for row in changed:
                node = self._views[row]
                values[row] = 0 if node is None else compute_row(node)
            return
        live = np.array([row for row in changed if self._views[row] is not None], dtype=np.int64)
        if len(live) < len(changed):
            values[changed] = 0
        if len(live):
            values[live] = compute(self._view(live))

    def _forget(self, key: Hashable) -> None:
        gone = self._columns.pop(key, None)
        if gone is not None:
            self._bytes -= gone.values.nbytes


class Topologies:
    """The domains of label keys, for plugins that ask for them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._made_for = (-1, 0)
        """Generation of the nodes and width of the table: pods of an unknown node widen it too."""
        self._known: dict[str, Topology] = {}
        self._absent: Topology | None = None
        """Of a key that no node has."""

    def topology(self, key: str) -> Topology:
        present = (self._table.node_generation, self._table.width)
        if self._made_for != present or len(self._known) >= _KEYS:
            self._made_for = present
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
